"""The generated parts of the documentation site, and the tutorials as notebooks."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest

import toptail
from tools import notebook, reference
from toptail.audit.settings import Rule, Settings
from toptail.cli import TOPTAIL
from toptail.results import Stored, schema
from toptail_paper.cli import PAPER

ROOT = Path(__file__).parent.parent
RUN = [ROOT / "README.md", *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
"""Pages whose commands run and print what they say."""
SLOW = {"critic": [pytest.mark.slow], "scores": [pytest.mark.slow, pytest.mark.smoke]}


def test_the_reference_has_every_command_with_its_help() -> None:
    page = reference.commands()
    for program in (TOPTAIL, PAPER):
        assert f"Usage: {program.name} COMMAND" in page
        for name in program.commands:
            assert f"### {program.name} {name}" in page
    assert "--fail-on" in page


def test_the_reference_has_every_name_that_is_exported() -> None:
    page = reference.python()
    for name in set(toptail.__all__) - {"__version__"}:
        assert f"heading: toptail.{name}\n" in page


def test_the_reference_has_what_results_hold_and_what_the_pages_name() -> None:
    page = reference.python()
    for name in (*reference.INSIDE, *reference.BESIDE):
        module, _, last = name.rpartition(".")
        assert getattr(import_module(module), last).__doc__, name
        assert f"heading: {name}\n" in page
    howto = (ROOT / "docs" / "howto" / "python.md").read_text()
    for name in ("CheckResult", "assert_safe", "schema", "called_by", "ScorerResult", "Interval"):
        assert f".{name}\n" in page
        assert name in howto


def shown() -> dict[str, Callable[..., object]]:
    """Every function and method with a docstring of its own that the page of the API shows."""
    found: dict[str, Callable[..., object]] = {}
    exported = [f"toptail.{name}" for name in toptail.__all__ if name != "__version__"]
    for name in (*exported, *reference.INSIDE, *reference.BESIDE):
        module, _, last = name.rpartition(".")
        thing = getattr(import_module(module), last)
        if not isinstance(thing, type):
            found[name] = thing
            continue
        for member, method in inspect.getmembers(thing):
            written = inspect.isfunction(method) or inspect.ismethod(method)
            if written and method.__doc__ and not member.startswith("_"):
                found[f"{name}.{member}"] = method
    return found


def described(function: Callable[..., object]) -> dict[str, str]:
    """The rows of the table of parameters: what stands as a name -> its description."""
    text = inspect.cleandoc(function.__doc__ or "")
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^(\S.*)\n((?:[ \n].*\n?)*)", section[1], re.MULTILINE) if section else []
    return {name: " ".join(words.split()) for name, words in rows}


def test_the_reference_says_of_each_parameter_what_it_is() -> None:
    """Names that share a row get the type of the first; 'As in ...' sends the reader away."""
    for name, function in shown().items():
        rows, taken = described(function), list(inspect.signature(function).parameters)
        if rows or name.removeprefix("toptail.") in reference.FUNCTIONS:
            assert list(rows) == [each for each in taken if each != "self"], name
        for words in rows.values():
            assert len(words.split()) >= 3, name
            assert not words.startswith("As in"), name


def test_the_reference_shows_defaults_as_what_they_are() -> None:
    """The page shows what is written: a number or a text, and not the name of a constant."""
    for name, function in shown().items():
        written = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(written, ast.FunctionDef)
        for default in (*written.args.defaults, *written.args.kw_defaults):
            parts = [] if default is None or isinstance(default, ast.Call) else ast.walk(default)
            assert not [part for part in parts if isinstance(part, ast.Name | ast.Attribute)], name


def test_the_functions_have_the_defaults_of_the_rule() -> None:
    for function in (toptail.audit, toptail.audit_picks):
        defaults = inspect.signature(function).parameters
        assert defaults["level"].default == Rule.level
        assert defaults["seed"].default == Settings.seed
        assert defaults["resamples"].default == Settings.resamples
    harm = toptail.Thresholds()
    assert (harm.delta, harm.rho, harm.unit) == (Rule.delta, Rule.rho, Settings.unit)


def test_pools_come_before_picks() -> None:
    page = reference.fields("audit")
    assert page.index("\n## pools\n") < page.index("\n## picks\n") < page.index("\n## verdict\n")


@pytest.mark.parametrize("name", get_args(Stored))
def test_the_reference_has_every_field_of_a_schema(name: Stored) -> None:
    page = reference.fields(name)
    for part, content in schema(name)["$defs"].items():
        assert f"\n## {part}\n" in page
        for field, inside in content.get("properties", {}).items():
            assert f"| `{field}` |" in page
            assert inside["description"]


def test_a_page_that_prints_something_else_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)  # 3\n```\n")
    with pytest.raises(RuntimeError, match="does not print"):
        notebook.executed(page)


def test_the_beginning_of_a_line_may_be_promised(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ python -c 'print(\"one two\")'\none …\n```\n")
    notebook.executed(page)
    page.write_text(page.read_text().replace("one …", "two …"))
    with pytest.raises(RuntimeError, match="does not print"):
        notebook.executed(page)


def test_cells_follow_each_other_as_in_a_notebook(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n```python\n# one.py\nx = 2\n```\n\nText.\n\n"
        "```python\nfrom one import x\n\nx\n```\n\n```console\n$ python -c 'print(4)'\n4\n```\n"
    )
    cells = json.loads(notebook.executed(page))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code", "code"]
    assert cells[1]["source"].startswith("%%writefile one.py\n")
    assert cells[3]["outputs"][0]["data"] == {"text/plain": "2"}
    assert cells[4]["source"] == "!python -c 'print(4)'"
    assert cells[4]["outputs"][0]["text"] == "4\n"


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=SLOW.get(page.stem, ()), id=page.stem) for page in RUN],
)
def test_a_tutorial_runs_as_printed(page: Path) -> None:
    made = json.loads(notebook.executed(page))
    shown = [output for cell in made["cells"] for output in cell.get("outputs", ())]
    assert shown
    assert made["metadata"]["kernelspec"]["language"] == "python"
    if page.parent.name == "tutorials":
        assert any("image/png" in output.get("data", {}) for output in shown)


@pytest.mark.smoke
@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Strictly: every link, heading and page of the navigation. Tutorials are tested above."""
    if find_spec("mkdocs") is None or find_spec("mkdocstrings") is None:
        if os.environ.get("CI"):
            pytest.fail("MkDocs is missing: `make test-smoke` installs it.")
        pytest.skip("MkDocs is not installed; `make test-smoke` and `make docs` install it")
    paths = [str(ROOT), str(ROOT / "src"), str(ROOT / "paper" / "src")]
    paths += filter(None, [os.environ.get("PYTHONPATH")])
    how = {"TOPTAIL_SKIP_NOTEBOOKS": "1", "NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env=os.environ | how | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    python = (tmp_path / "site" / "reference" / "python.html").read_text(encoding="utf-8")
    for name in ("AuditResult.to_pandas", "PicksResult.from_dict", "ChoiceResult.log"):
        assert f'id="toptail.results.{name}"' in python  # inherited
    assert re.search(r"<h3[^>]*>\s*(<[^>]*>)?\s*toptail\.audit\b", python)
