"""The committed plans: each can be read, each kind runs end to end at its smallest."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toptail.errors import InputError
from toptail_paper.cli import main
from toptail_paper.grids.cells import SeedCell
from toptail_paper.grids.grid import DeclaredGrid, Sizes, read_grid
from toptail_paper.grids.page import write_settled
from toptail_paper.grids.readings import GridData
from toptail_paper.grids.recorded_data import grid_runs
from toptail_paper.grids.rules import counted_cells
from toptail_paper.grids.run import RESULTS, grid_jobs, run_grid

ROOT = Path(__file__).parents[2]
PLANS = sorted((ROOT / "plans").glob("*.json"))
DATA = ROOT.parent / "tests" / "tasks" / "data"


@pytest.fixture(autouse=True)
def data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPTAIL_DATA", str(DATA))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
@pytest.mark.parametrize("small", [False, True])
def test_every_plan_says_what_it_trains_and_what_it_would_answer(path: Path, small: bool) -> None:
    declared = read_grid(path, small=small)
    assert declared.question.endswith("?")
    assert declared.answer.yes.endswith(".")
    assert declared.answer.no.endswith(".")
    assert set(declared.seeds).isdisjoint({42, 43, 44})
    if not small:
        assert counted_cells(declared.answer, [(cell.settings, {}) for cell in declared.cells()])


@pytest.mark.parametrize(
    ("name", "metrics"),
    [
        ("memory_causal", {"memory_auc", "seen_auc", "seen_query_tau"}),
        *(
            pytest.param(name, metrics, marks=pytest.mark.slow)
            for name, metrics in (
                ("tdq_manipulation", {"auc", "hard_negative_auc", "recall_5"}),
                ("cosine", {"query_tau", "query_regret", "median_selected"}),
                ("fingerprint", {"auc", "recall_1", "tau", "gap", "regret"}),
                (
                    "fingerprint_antmaze",
                    {"auc", "recall_1", "recall_5", "tau", "hard_negative_auc"},
                ),
                ("hybrid", {"auc", "tau"}),
                ("search", {"gain_near", "gain_box", "gain_wide_70", "gain_ascent", "gain_best"}),
                ("positives", {"predicted_tau", "predicted_nearer_goal"}),
                ("deployment", {"actor_0.03", "loop_box", "map_mean", "map_high"}),
            )
        ),
    ],
)
def test_each_kind_of_plan_runs_at_its_smallest(
    name: str, metrics: set[str], tmp_path: Path
) -> None:
    declared = read_grid(ROOT / "plans" / f"{name}.json", small=True)
    found = run_grid(declared, tmp_path, "as typed", small=True)
    assert found["answer"] is None
    cells = [entry for cells in found["cells"].values() for entry in cells.values()]
    assert len(cells) == len(list(declared.cells()))
    for entry in cells:
        assert metrics <= entry["metrics"].keys()
        for metric in metrics - {"query_regret"}:
            assert entry["metrics"][metric]["seeds"].keys() == {str(s) for s in declared.seeds}
            assert entry["metrics"][metric]["low"] is not None
    assert json.loads((tmp_path / RESULTS).read_text())["cells"] == found["cells"]
    assert not (tmp_path / "training").exists()
    page = (tmp_path / "results.md").read_text()
    assert page.startswith(f"# {declared.question}")
    assert "answers nothing" in page
    shown = set(re.findall(r"\(figures/(\w+)\.svg\)", page))
    assert shown == ({"numbers", "map"} if name == "deployment" else {"numbers"})
    assert shown == {path.stem for path in (tmp_path / "figures").iterdir()}


@pytest.mark.slow
def test_the_2d_world_is_trained_once_for_all_boxes_and_decomposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads((ROOT / "plans" / "norm_drift.json").read_text())
    content["small"] |= {"grid": {"layer_norm": ["off"], "hidden": [8]}, "steps": [2]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(content))
    assert read_grid(path, small=True).price == 2
    words = ["grid", str(path), "--out", str(tmp_path / "out"), "--small"]
    assert main(words) == 0
    assert "answers nothing" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / RESULTS).read_text())
    boxes = [cells["raw[hidden=8,layer_norm=off,steps=2]"] for cells in found["cells"].values()]
    assert len(boxes) == 2
    for entry in boxes:
        assert {"regret", "share/norm_cap", "share/support_only", "norm_ratio"} <= set(
            entry["metrics"]
        )
    whole, wide = (entry["metrics"]["regret"]["mean"] for entry in boxes)
    assert whole != wide


def grid_of(**changes: Any) -> DeclaredGrid:
    path = ROOT / "plans" / "cosine.json"
    declared = read_grid(path, small=True)
    return DeclaredGrid(**{**{name: getattr(declared, name) for name in vars(declared)}, **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"seeds": (0, 43)}, "Seed 43 is reported"),
        ({"seeds": (1, 1)}, "seeds must be different"),
        ({"steps": (4, 2)}, "steps must ascend"),
        ({"reads": ("tea leaves",)}, "'tea leaves' cannot be read"),
        ({"grid": {"temperatur": (0.1,)}}, "no critic has a setting 'temperatur'"),
        ({"grid": {"temperature": tuple(range(1, 20_000))}}, "at most 10,000 are asked for"),
        ({"shared": {"colour": 1}}, "'colour' is no setting"),
        ({"sizes": {"tripels": 1}}, "'tripels' is no size"),
        ({"sizes": {"triples": 0}}, "triples"),
        ({"data": ("controlled",)}, "the 2-D world is read by 'decomposition'"),
        ({"reads": ("decomposition",)}, "the 2-D world is read by 'decomposition'"),
    ],
)
def test_a_plan_that_cannot_be_asked_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=f"(?i){says}"):
        grid_of(**changes)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"question": "?"}, "does not declare a grid"),
        ({"kind": 1}, "a grid has no 'kind'"),
        ({"answer": {"rule": "coin"}}, "there is no rule 'coin'"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    content: dict[str, Any], says: str, tmp_path: Path
) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=says):
        read_grid(tmp_path / "plan.json")


def test_a_setting_without_effect_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    declared = grid_of(critics=("raw",))
    with pytest.raises(InputError, match="has no effect on raw"):
        grid_runs(declared, declared.data[0], tmp_path)


def test_constant_coordinates_are_constant_along_a_trajectory_and_differ_between() -> None:
    name = "pointmaze-medium-navigate-v0[coordinates=3]"
    data = GridData.load(name, Sizes(triples=40, negatives=5))
    split = data.task.data.train
    assert data.width == 2
    assert split.observations.shape[1] == 5
    own = split.observations[:, 2:]
    for start, end in zip(split.starts, split.ends, strict=True):
        assert (own[start : end + 1] == own[start]).all()
    assert len(np.unique(own[split.starts], axis=0)) == len(split.starts)
    with pytest.raises(InputError, match="'coordinates' alone"):
        GridData.load("pointmaze-medium-navigate-v0[colour=3]", Sizes())


def test_what_was_read_is_not_read_again_and_a_failure_is_kept(tmp_path: Path) -> None:
    declared = grid_of(grid={"temperature": (0.1,)}, seeds=(5,))
    (cell,) = declared.cells()
    unit = SeedCell.of(tmp_path, declared, cell, 5)
    unit.store({}, "failed: parameters are not finite")
    found = run_grid(declared, tmp_path, small=True)
    entry = found["cells"][cell.data][cell.name]
    assert entry["marked"] == {"5": "failed: parameters are not finite"}
    assert entry["metrics"] == {}
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["units"] == {"trained": 0, "reused": 1}


def test_jobs_are_batches_of_trainings_and_the_command_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.loads((ROOT / "plans" / "cosine.json").read_text())
    content["small"]["grid"] = {"layer_norm": ["on", "off"]}
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(content))
    words = ["grid", str(path), "--out", str(tmp_path / "out"), "--small"]
    monkeypatch.setattr("sys.argv", ["toptail-paper", *words])
    assert main([*words, "--list-jobs"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2
    assert main(lines[0]["command"][1:]) == 0
    assert not (tmp_path / "out" / RESULTS).exists()
    assert main([*words, "--so-far"]) == 0
    half = json.loads((tmp_path / "out" / RESULTS).read_text())
    assert "Missing:" in (tmp_path / "out" / "results.md").read_text()
    assert len(half["missing"]) == 1
    assert main(words) == 0
    assert "answers nothing" in capsys.readouterr().out
    found = json.loads((tmp_path / "out" / RESULTS).read_text())
    whole = run_grid(read_grid(path, small=True), tmp_path / "whole", small=True)
    assert found["cells"] == whole["cells"]
    assert "missing" not in found
    for data, own in half["cells"].items():
        assert own.items() <= whole["cells"][data].items()


def test_nothing_is_said_so_far_where_nothing_was_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["grid", str(ROOT / "plans" / "hybrid.json"), "--out", str(tmp_path)]
    assert main([*words, "--so-far"]) == 2
    assert "has no finished cell" in capsys.readouterr().err


def test_a_job_needs_only_its_own_data(tmp_path: Path) -> None:
    declared = grid_of(data=("pointmaze-medium-navigate-v0", "nowhere.npz"), seeds=(5,))
    grid_jobs(declared, tmp_path)[0].run()
    with pytest.raises(InputError, match="nowhere"):
        run_grid(declared, tmp_path, small=True)


@pytest.mark.slow
def test_jobs_of_the_2d_world_are_its_critics(tmp_path: Path) -> None:
    small = read_grid(ROOT / "plans" / "norm_drift.json", small=True)
    declared = replace(small, grid={**small.grid, "layer_norm": ("on", "off")})
    jobs = grid_jobs(declared, tmp_path)
    assert len(jobs) == len(declared.labels())
    for job in jobs:
        assert len(job.outputs) == sum(1 for _ in declared.cells()) * len(declared.seeds) // len(
            jobs
        )
        assert job.run()
    found = run_grid(declared, tmp_path, small=True)
    assert json.loads((tmp_path / "record.json").read_text())["units"]["trained"] == 0
    assert found["cells"] == run_grid(declared, tmp_path / "whole", small=True)["cells"]


def test_final_networks_are_kept_and_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = grid_of(grid={"temperature": (0.1,)}, seeds=(5,))
    first = run_grid(declared, tmp_path / "one", small=True, networks=tmp_path / "kept")
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".safetensors"]
    monkeypatch.setattr("toptail_paper.grids.recorded_data.train_batch", None)
    again = run_grid(declared, tmp_path / "two", small=True, networks=tmp_path / "kept")
    assert again["cells"] == first["cells"]


def test_the_page_of_a_stored_answer_shows_its_numbers_and_what_was_marked(tmp_path: Path) -> None:
    stored = json.loads((ROOT / "results" / "settled" / "cosine.json").read_text())
    page = write_settled(tmp_path, stored["plan"], stored).read_text()
    assert f"**no: {stored['answer']['says']}**" in page.replace("\\", "")
    (cells,) = stored["cells"].values()
    name, entry = next((n, e) for n, e in cells.items() if e["marked"])
    row = next(line for line in page.replace("\\", "").splitlines() if line.startswith(f"| {name}"))
    auc = entry["metrics"]["auc"]
    assert f"{auc['mean']:.3f} [{auc['low']:.3f}, {auc['high']:.3f}]" in row
    assert entry["marked"]["0"] in page.replace("\\", "")
