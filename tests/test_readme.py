"""The examples of the pages and docstrings run as printed and print what they say."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

from tests.programs import program_of
from toptail import cli

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/explanation/verdict.md",
        "docs/howto/baseline.md",
        "docs/howto/choose.md",
        "docs/howto/partial.md",
    ],
)
def test_the_python_example_prints_what_its_comment_says(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(code.strip().splitlines()) <= 12
    promised = re.findall(r"print\(.*\)\s+# (.*)", code)
    printed = StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().splitlines() == promised


@pytest.mark.parametrize(
    "module",
    [
        "toptail",
        "toptail.audit.run",
        "toptail.pools.columns",
        "toptail.results",
        "toptail.judging.plan",
        "toptail.api",
        "toptail.progress",
        "toptail.select.base",
    ],
)
def test_examples_in_the_docstrings_hold(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


def command_lines() -> Iterator[str]:
    """The command lines in the code blocks of all pages, without comments and placeholders."""
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "paper" / "docs").rglob("*.md")]
    for page in (ROOT / "README.md", *pages):
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                if re.match(r"toptail(-paper)? ", line) and not re.search(r"…|\s\.\.\.", line):
                    yield re.split(r"\s+#|;|&&| > ", line)[0]


def test_every_command_line_of_the_pages_has_flags_that_exist() -> None:
    lines = list(command_lines())
    assert len(lines) > 50
    for line in lines:
        program, *words = shlex.split(line)
        found = program_of(words)
        assert program == found.name, line
        try:
            cli.parsed(words, found)
        except SystemExit:
            pytest.fail(line)


def links() -> Iterator[tuple[Path, str, str]]:
    """Local links of all pages: the page, the file and the heading that is linked to."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    pages += [ROOT / "paper" / "README.md", *(ROOT / "paper" / "docs").rglob("*.md")]
    for page in pages:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
            if ":" not in target:
                yield page, target, heading


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", title) for title in titles]
    return {re.sub(r"[^\w\- ]", "", title.lower().strip()).replace(" ", "-") for title in plain}


def test_every_local_link_leads_somewhere() -> None:
    found = list(links())
    assert len(found) > 200
    for page, target, heading in found:
        where = page.parent / target if target else page
        assert where.exists(), f"{page.name} links to {target}"
        if heading and where.suffix == ".md":
            assert heading in anchors(where), f"{page.name} links to {target}#{heading}"
