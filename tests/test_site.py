"""The generated parts of the documentation site, and the tutorials as notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

import toptail
from tools import notebook, reference
from toptail.cli import TOPTAIL
from toptail.results import schema
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
        assert f".{name}\n" in page


@pytest.mark.parametrize("name", ["audit", "choice"])
def test_the_reference_has_every_field_of_a_schema(name: Literal["audit", "choice"]) -> None:
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
    cells = json.loads(notebook.executed(page))["cells"]
    assert any(cell.get("outputs") for cell in cells)
