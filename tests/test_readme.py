"""The examples of the pages and docstrings run as printed and print what they say."""

from __future__ import annotations

import doctest
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest

from tests.programs import program_of
from toptail import cli
from toptail.audit.verdict import STATUSES

ROOT = Path(__file__).parent.parent


def pages() -> list[Path]:
    """Every page that is written by hand."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "paper" / "README.md"]
    return found + sorted(
        [*(ROOT / "docs").rglob("*.md"), *(ROOT / "paper" / "docs").rglob("*.md")]
    )


RUN = [
    page
    for page in pages()
    if "```python\n" in page.read_text("utf-8")
    if not {"paper", "tutorials"} & set(page.relative_to(ROOT).parts)
]
"""Pages with Python examples. Tutorials run as notebooks (`tests.test_site`), and the paper's pages
in its own tests."""


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_the_python_examples_print_what_their_comments_say(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        promised = re.findall(r"print\(.*\)\s+# (.*)", code)
        assert promised
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
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
        "toptail.errors",
        "toptail.progress",
        "toptail.select.base",
        "toptail.testing",
    ],
)
def test_examples_in_the_docstrings_hold(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


def command_lines() -> Iterator[str]:
    """The command lines in the code blocks of all pages, without comments and placeholders."""
    for page in pages():
        if page.name == "CONTRIBUTING.md":  # its blocks are maps of modules
            continue
        for block in re.findall(r"```\w*\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                line = line.removeprefix("$ ")
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
    for page in pages():
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


def test_what_is_to_be_installed_can_be() -> None:
    """No package index has toptail: an extra is installed from a checkout, and exists."""
    sources = [p for part in ("src", "paper/src", "examples") for p in (ROOT / part).rglob("*.py")]
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    for path in (*pages(), *sources):
        text = path.read_text("utf-8")
        assert not re.search(r"pip\s+install\s+['\"]?toptail", text), path
        named = re.findall(r"install\s+(?:-e )?'\.\[([\w,]+)\]'|how_to_install\('(\w+)'\)", text)
        for names in named:
            assert set("".join(names).split(",")) <= extras, path
    assert set(cli._EXTRA.values()) <= extras


def test_the_verdicts_are_said_in_the_same_words_on_both_first_pages() -> None:
    """Up to which K: the smallest pool ends the search, not the largest."""
    readme, index = (
        re.findall(rf"^\| `({'|'.join(STATUSES)})` \| (.*) \|$", path.read_text("utf-8"), re.M)
        for path in (ROOT / "README.md", ROOT / "docs" / "index.md")
    )
    assert readme == index
    assert {status for status, _ in readme} == set(STATUSES)
    assert "up to the size of the smallest pool" in dict(readme)["safe"]
    safe = " ".join((ROOT / "docs" / "explanation" / "safe.md").read_text("utf-8").split())
    assert "any two K up to the size of the smallest pool" in safe


def test_the_papers_words_are_explained_where_they_are_first_used() -> None:
    """The five sentences say what TD-Q, raw and φ are."""
    told = (ROOT / "README.md").read_text("utf-8").partition("in five\nsentences")[2]
    sentences = re.findall(r"^\d\. (.*?)(?=^\d\. |^## )", told, re.MULTILINE | re.DOTALL)
    assert len(sentences) == 5
    assert all(sentence.count(". ") == 0 for sentence in sentences)
    told = " ".join(" ".join(sentences).split())
    for word in ("*TD-Q*, a critic that", "*raw*, a contrastive one that", "an embedding φ of"):
        assert word in told
    assert told.index("embedding φ") < told.index("keeping φ")


MOST_WORDS = 25_000


def test_the_pages_stay_short() -> None:
    """Words between spaces, tables and code included; reference and the paper's pages apart."""
    docs = ROOT / "docs"
    written = [p for p in docs.rglob("*.md") if p.relative_to(docs).parts[0] != "reference"]
    assert len(written) >= 30
    assert sum(len(page.read_text("utf-8").split()) for page in written) <= MOST_WORDS
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert len(readme) <= 120
    assert max(map(len, readme)) <= 120
    assert (ROOT / "examples" / "answers.jsonl").read_text("utf-8").splitlines()[0] == (
        " ".join(re.findall(r"```json\n(.*?)```", "\n".join(readme), re.DOTALL)[0].split())
    )
