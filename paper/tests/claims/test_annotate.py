"""The paper's cells go into stored tables by label; the ledger is written beside them."""

from __future__ import annotations

import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from paper.tests.controlled.synthetic import write_folder
from toptail.errors import InputError
from toptail_paper.claims import CLAIMS, annotate
from toptail_paper.claims.reported import WITHOUT_CELLS, cells, labels
from toptail_paper.study.study import study_in

RESULTS = Path(__file__).parents[2] / "results"
STORED = sorted(
    path.parent.relative_to(RESULTS).as_posix()
    for path in RESULTS.rglob("claims.json")
    if (path.parent / "config.json").is_file()
)
"""Every folder of a study with a ledger; what has no settings is a ledger over tasks."""


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def copy(stored: str, target: Path) -> tuple[Path, str]:
    """The files of a stored study that the paper's room reads, and the study."""
    source = RESULTS / stored
    shutil.copytree(source / "tables", target / "tables")
    for name in ("curves.json", "theory.json", "landscape.json", "record.json"):
        if (source / name).is_file():
            shutil.copy(source / name, target / name)
    return target, study_in(source).name


def test_every_study_has_a_stored_ledger() -> None:
    assert {study_in(RESULTS / stored).name for stored in STORED} == set(CLAIMS)


@pytest.mark.parametrize("stored", STORED)
class TestStoredResults:
    def test_the_ledger_comes_out_as_it_is_stored(self, stored: str, tmp_path: Path) -> None:
        annotate(*copy(stored, tmp_path))
        entries, before = (read(f / "claims.json") for f in (tmp_path, RESULTS / stored))
        numbers = ("number", "interval")
        for entry, other in zip(entries, before, strict=True):
            for key in numbers:
                assert entry[key] == pytest.approx(other[key], abs=1e-9)
            assert {k: v for k, v in entry.items() if k not in numbers} == {
                k: v for k, v in other.items() if k not in numbers
            }
        text, kept = (
            (f / "claims.md").read_text(encoding="utf-8") for f in (tmp_path, RESULTS / stored)
        )
        assert text == kept

    def test_the_papers_cells_are_those_of_the_stored_tables(
        self, stored: str, tmp_path: Path
    ) -> None:
        folder, study = copy(stored, tmp_path)
        for file in (folder / "tables").glob("*.json"):
            file.write_text(json.dumps(read(file) | {"paper": {}}), encoding="utf-8")
        annotate(folder, study)
        for file in (folder / "tables").glob("*.json"):
            assert read(file) == read(RESULTS / stored / "tables" / file.name)

    def test_a_table_that_has_them_is_not_written_again(self, stored: str, tmp_path: Path) -> None:
        folder, study = copy(stored, tmp_path)
        before = {f: f.stat().st_mtime_ns for f in (folder / "tables").iterdir()}
        annotate(folder, study)
        assert {f: f.stat().st_mtime_ns for f in (folder / "tables").iterdir()} == before


def test_a_folder_with_little_in_it_leaves_claims_open(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", everything=False)
    entries = annotate(folder, "controlled")
    assert 0 < len(entries) < 12
    assert "Not decided by this run" in (folder / "claims.md").read_text(encoding="utf-8")


def test_what_the_ledger_needs_of_the_drawn_run_is_kept_small(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run")
    before = annotate(folder, "controlled")
    assert set(read(folder / "landscape.json")["pick_norm"]) == {"tdq", "raw", "cosine", "hybrid"}
    (folder / "landscape.npz").unlink()
    assert annotate(folder, "controlled") == before
    assert "landscape" in {entry["id"] for entry in before}
    head = (folder / "claims.md").read_text(encoding="utf-8").splitlines()[2]
    assert "The training length was fitted to the paper" in head


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
    content = json.loads((files("toptail_paper.claims") / "reported.json").read_text("utf-8"))
    assert set(content) - set(labels()) == {"noise", "prose"}
    assert all(cells(label, {"PointMaze": {}}) for label in (*labels(), "noise"))
    assert not set(labels()) & set(WITHOUT_CELLS)


def test_every_claim_about_a_table_or_figure_has_a_label_of_the_paper() -> None:
    known = {*labels(), *WITHOUT_CELLS}
    claimed = {claim.label for claims in CLAIMS.values() for claim in claims}
    assert {label for label in claimed if re.match("(tab|fig):", label)} <= known
