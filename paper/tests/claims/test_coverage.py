"""No number of the paper is empty here without a reason beside it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toptail.errors import InputError
from toptail_paper.claims import published as coverage
from toptail_paper.claims.published import PaperCell, Reason, all_cells, summary, write_cells
from toptail_paper.claims.reported import WITHOUT_CELLS, cells, labels
from toptail_paper.cli import main
from toptail_paper.commands.reproduce import Reproduce

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def _page(name: str) -> Path:
    return (ROOT.parent if name == "README.md" else ROOT) / name


@pytest.fixture(scope="module")
def found() -> list[PaperCell]:
    return all_cells(RESULTS)


def test_every_cell_is_measured_or_has_a_reason(found: list[PaperCell]) -> None:
    assert [cell for cell in found if cell.gap] == []


def test_every_cell_of_the_paper_is_asked(found: list[PaperCell]) -> None:
    for label in (*labels(), "noise"):
        asked = {(c.task, c.row, c.metric): c.paper for c in found if c.label == label}
        paper = cells(label, {"PointMaze": {}})
        assert asked == {
            (task, row, metric): cell["mean"]
            for task, rows in paper.items()
            for row, metrics in rows.items()
            for metric, cell in metrics.items()
        }


def test_numbers_are_those_of_the_stored_tables(found: list[PaperCell]) -> None:
    some = [cell for cell in found if cell.here is not None][::29]
    assert len(some) > 10
    for cell in some:
        folder = RESULTS / cell.source / "tables"
        tables = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
        (table,) = [table for table in tables if table["label"] == cell.label]
        stored = table["rows"][cell.task][cell.row][cell.metric]
        assert (cell.here, cell.why) == (stored["mean"], "")
        assert cell.interval is None or list(cell.interval) == [stored["low"], stored["high"]]


def test_without_its_reason_a_missing_cell_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(RESULTS / "controlled", tmp_path / "controlled")
    monkeypatch.setattr(coverage, "REASONS", ())
    gaps = {cell.label for cell in all_cells(tmp_path) if cell.gap}
    assert gaps == {*labels(), "judges", "deployment"} - {
        *("tab:toy-support", "tab:toy-within", "tab:r-sweep"),
    }
    write_cells(tmp_path)
    text = (tmp_path / "cells.md").read_text("utf-8")
    assert text.count("**neither measured nor explained**") == sum(
        cell.gap for cell in all_cells(tmp_path)
    )
    assert "without a reason" in summary(all_cells(tmp_path))
    table = tmp_path / "controlled" / "tables" / "toy-support.json"
    content = json.loads(table.read_text("utf-8"))
    content["rows"]["controlled"]["raw"]["regret"]["mean"] = None
    table.write_text(json.dumps(content), encoding="utf-8")
    assert "tab:toy-support" in {cell.label for cell in all_cells(tmp_path) if cell.gap}


def test_a_task_that_arrives_fills_its_cells(tmp_path: Path) -> None:
    folder = tmp_path / "semantics"
    (folder / "tables").mkdir(parents=True)
    for name in ("claims.json", "config.json"):
        shutil.copy(RESULTS / "semantics" / name, folder / name)
    table = json.loads((RESULTS / "semantics/tables/bellman.json").read_text("utf-8"))
    table["rows"] = {"AntSoccer": table["rows"]["AntMaze"]}
    (folder / "tables" / "bellman.json").write_text(json.dumps(table), encoding="utf-8")
    own = [c for c in all_cells(tmp_path) if (c.label, c.task) == ("tab:bellman", "AntSoccer")]
    assert len(own) == 4
    assert all(cell.here is not None and not cell.why for cell in own)


def test_a_reason_is_about_what_it_names() -> None:
    cell = PaperCell("tab:main", "AntMaze", "raw", "tau", 0.1, None, None, "")
    assert Reason("x").fits(cell)
    assert Reason("x", "tab:main", "AntMaze", "raw", "tau").fits(cell)
    for place in ("label", "task", "row", "metric"):
        assert not Reason("x", **{place: "another"}).fits(cell)


def test_the_page_is_as_it_is_stored_and_the_docs_quote_it(found: list[PaperCell]) -> None:
    text = (RESULTS / "cells.md").read_text("utf-8")
    assert text.startswith(f"# The paper's numbers, and ours\n\n{summary(found)}.\n")
    assert text.count("\n| ") - text.count("| task |") == len(found)
    assert all(f"`{label}`" in text for label in WITHOUT_CELLS)
    measured = sum(cell.here is not None for cell in found)
    for name in ("README.md", "docs/results/ledger.md"):
        assert f"{measured} of {len(found)} numbers" in " ".join(_page(name).read_text().split())


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(RESULTS / "controlled", tmp_path / "controlled")
    assert main(["reproduce", "ledger", "--cells", "--out", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{summary(all_cells(tmp_path))}." in printed
    assert (tmp_path / "cells.md").is_file()
    with pytest.raises(InputError, match="belongs to the label 'ledger'"):
        Reproduce("tab:main", cells=True).run()
