"""What is kept of a finished ``toptail-paper all``."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

KEEP = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "keep_results.py"))["keep"]
TASK = "antmaze-medium-navigate-v0"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A finished task, with one run, its data, and large files."""
    out = tmp_path / "out"
    study = out / "selection" / TASK
    files = {
        study / "config.json": {"study": "selection"},
        study / "record.json": {"command": f"toptail-paper study --out {out}/selection"},
        study / "tables" / "fixed-query.json": {"rows": {}},
        study / "audit_rollouts" / "audit.json": {"kind": "picks"},
        out / "runs" / TASK / "raw" / "seed-42" / "record.json": {"seed": 42},
        out / "data" / f"{TASK}.npz.json": {"goals_per_episode": [1, 2], "file": f"{out}/data/x"},
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    for name in ("pools.npz", "scores/raw@42.npz", "report.html"):
        (study / name).parent.mkdir(exist_ok=True)
        (study / name).write_bytes(b"x")
    np.savez(study / "queries.npz", rows=np.zeros(1000))
    return out


def test_tables_and_records_are_kept_and_large_files_are_not(out: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    folder = results / "selection" / TASK
    kept = {path.relative_to(folder).as_posix() for path in KEEP(out, results)}
    assert kept == {
        *("config.json", "record.json", "queries.npz", "runs.json", "data.json"),
        *("tables/fixed-query.json", "audit_rollouts/audit.json"),
    }
    assert json.loads((folder / "runs.json").read_text()) == {f"{TASK}/raw/seed-42": {"seed": 42}}
    data = json.loads((folder / "data.json").read_text())
    assert data == {TASK: {"train": {"goals_per_episode": 1.5, "file": "data/x"}}}
    smaller, larger = (place / "queries.npz" for place in (folder, out / "selection" / TASK))
    assert np.array_equal(np.load(smaller)["rows"], np.load(larger)["rows"])
    assert smaller.stat().st_size < larger.stat().st_size / 10
    assert all(str(tmp_path) not in path.read_text() for path in folder.rglob("*.json"))


def test_paths_of_the_machine_that_a_folder_was_copied_from_become_relative(
    out: Path, tmp_path: Path
) -> None:
    there = out / "selection" / TASK / "record.json"
    words = "study --runs /far/out/runs --task x --out /far/out/selection --seed 1/2"
    there.write_text(json.dumps({"command": words, "source": "/far/out/data/x.npz"}))
    KEEP(out, tmp_path / "results")
    kept = json.loads((tmp_path / "results" / "selection" / TASK / "record.json").read_text())
    assert kept["command"] == "study --runs runs --task x --out selection --seed 1/2"
    assert kept["source"] == "data/x.npz"


def test_long_files_have_no_indents_and_audits_nine_digits(out: Path, tmp_path: Path) -> None:
    content = {"x": [1 / 3, None, 7, "a"] * 10_000, "y": {"z": 1e-20 / 3}}
    study = out / "selection" / TASK
    for name in ("curves.json", "audit/audit.json"):
        (study / name).parent.mkdir(exist_ok=True)
        (study / name).write_text(json.dumps(content))
    KEEP(out, tmp_path / "results")
    curves, audit = (
        (tmp_path / "results" / "selection" / TASK / name).read_text()
        for name in ("curves.json", "audit/audit.json")
    )
    assert curves.count("\n") == audit.count("\n") == 1
    assert json.loads(curves) == content
    assert json.loads(audit)["x"][:4] == [0.333333333, None, 7, "a"]
    assert json.loads(audit)["y"] == {"z": 3.33333333e-21}
