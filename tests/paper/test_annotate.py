"""The paper's cells go into stored tables by label; the ledger is written beside them."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.controlled.synthetic import write_folder
from toptail.errors import InputError
from toptail.lab.paper import CLAIMS, annotate, tally
from toptail.lab.paper.reported import WITHOUT_CELLS, cells, labels

RESULTS = Path(__file__).parents[2] / "results"
STORED = {
    "controlled": RESULTS / "controlled",
    "semantics": RESULTS / "semantics",
    "selection": RESULTS / "selection" / "pointmaze-medium-navigate-v0",
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def copy(study: str, target: Path) -> Path:
    """The files of a stored study that the paper's room reads."""
    shutil.copytree(STORED[study] / "tables", target / "tables")
    for name in ("curves.json", "theory.json", "landscape.npz", "record.json"):
        if (STORED[study] / name).is_file():
            shutil.copy(STORED[study] / name, target / name)
    return target


@pytest.mark.parametrize("study", CLAIMS)
class TestStoredResults:
    def test_the_ledger_comes_out_as_it_is_stored(self, study: str, tmp_path: Path) -> None:
        entries = annotate(copy(study, tmp_path), study)
        stored = read(STORED[study] / "claims.json")
        if not (tmp_path / "landscape.npz").is_file():  # too large to be kept with the results
            stored = [entry for entry in stored if entry["id"] != "landscape"]
        same = ("id", "sentence", "where", "status", "run")
        assert [[e[key] for key in same] for e in read(tmp_path / "claims.json")] == [
            [e[key] for key in same] for e in stored
        ]
        assert tally(entries) == tally(stored)
        for entry, before in zip(entries, stored, strict=True):
            assert entry["number"] == pytest.approx(before["number"], abs=1e-9)
            if before["interval"] is not None:
                assert entry["interval"] == pytest.approx(before["interval"], abs=1e-9)

    def test_the_papers_cells_are_those_of_the_stored_tables(
        self, study: str, tmp_path: Path
    ) -> None:
        folder = copy(study, tmp_path)
        for file in (folder / "tables").glob("*.json"):
            file.write_text(json.dumps(read(file) | {"paper": {}}), encoding="utf-8")
        annotate(folder, study)
        for file in (folder / "tables").glob("*.json"):
            assert read(file) == read(STORED[study] / "tables" / file.name)

    def test_a_table_that_has_them_is_not_written_again(self, study: str, tmp_path: Path) -> None:
        folder = copy(study, tmp_path)
        before = {f: f.stat().st_mtime_ns for f in (folder / "tables").iterdir()}
        annotate(folder, study)
        assert {f: f.stat().st_mtime_ns for f in (folder / "tables").iterdir()} == before


def test_a_folder_with_little_in_it_leaves_claims_open(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", everything=False)
    entries = annotate(folder, "controlled")
    assert 0 < len(entries) < 12
    assert "Not decided by this run" in (folder / "claims.md").read_text(encoding="utf-8")


def test_a_study_that_the_paper_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no study 'mine'; its studies are controlled"):
        annotate(tmp_path, "mine")


def test_labels_to_cells() -> None:
    assert cells("tab:value-oracle", {})["AntMaze"]["oracle"]["spearman"] == {"mean": 0.57}
    assert cells("judges", {})["PointMaze"]["reference"]["spearman"] == {"mean": 0.88}
    assert cells("deployment", {})["PointMaze"]["tdq"]["closed_loop/K=64"] == {"mean": 0.0}
    assert cells("seen", {}) == {}
    assert cells("tab:function-class", {"AntMaze": {}}) == {}
    assert list(cells("tab:function-class", {"PointMaze": {}})) == ["PointMaze"]


def test_every_label_of_the_paper_has_cells_or_a_reason() -> None:
    content = json.loads((files("toptail.lab.paper") / "reported.json").read_text("utf-8"))
    assert set(content) - set(labels()) == {"noise", "prose"}
    assert all(cells(label, {"PointMaze": {}}) for label in (*labels(), "noise"))
    assert not set(labels()) & set(WITHOUT_CELLS)


def test_every_claim_about_a_table_or_figure_has_a_label_of_the_paper() -> None:
    known = {*labels(), *WITHOUT_CELLS}
    claimed = {claim.label for claims in CLAIMS.values() for claim in claims}
    assert {label for label in claimed if re.match("(tab|fig):", label)} <= known
