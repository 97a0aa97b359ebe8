"""The rollout stage of a small PointMaze study, from trained runs to its files."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import toptail
from toptail.errors import InputError
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.scorers.base import Scorer
from toptail.lab.tasks.files import Dataset, load_file
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig
from toptail.lab.training.data import TaskData
from toptail.lab.training.session import train_runs
from toptail.pools import ScoredPools
from toptail_paper.cli import main
from toptail_paper.selection.config import (
    PoolSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.planned_rollouts import PlannedRollouts, audit_planned, planned
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollouts import RolloutSetup, RolloutStage
from toptail_paper.selection.stages import (
    Selection,
    add_values,
    make_pools,
    make_queries,
    score_critics,
)
from toptail_paper.selection.write import write_audits
from toptail_paper.study.store import Stored

TASK = "pointmaze-medium-navigate-v0"
FILES = Path(__file__).parents[3] / "tests" / "tasks" / "data"
DATA = Dataset(load_file(FILES / f"{TASK}.npz"), load_file(FILES / f"{TASK}-val.npz"), None)
CONFIG = SelectionConfig(
    TASK,
    queries=QueryConfig(per_group=3, near=(1, 5), medium=(6, 12), far=(13, 20)),
    pools=PoolSettings(count=2, size=5),
    support=SupportSettings(nearest=5),
    rollouts=RolloutSettings(
        per_group=2, repeats=2, candidates=3, randoms=2, horizon=8, ddim_steps=3
    ),
    ks=(1, 4),
)
MODEL = (("hidden", (8,)), ("levels", 4), ("time_dim", 4))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    model = DiffusionRun(TASK, "diffusion", 2, 8, log_every=2, settings=MODEL)
    train_runs(model, TaskData.place(DATA), [42], out)
    return out


def begin(study: Selection) -> tuple[FrozenQueries, CandidatePools]:
    queries = make_queries(study, DATA.val)
    return queries, make_pools(study, queries, DATA.train)


def scorer(column: str, sign: float) -> Scorer:
    """Prefers actions that go right, or left."""
    return Scorer(column, lambda _states, actions, _goals: sign * actions[:, 0], {"by": column})


def test_the_stage_rolls_out_the_picks_of_the_stored_scores(runs: Path, tmp_path: Path) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    queries, pools = begin(study)
    with pytest.raises(InputError, match="neither scores nor values"):
        RolloutStage(study, queries, pools, DATA.val).audit()
    score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    score_critics(study, queries, pools, [scorer("right@43", -1.0)])  # another training seed
    audit = RolloutStage(study, queries, pools, DATA.val).audit(most_per_group=2)
    assert audit.selectors == ("left", "right@42", "right@43", "logged")
    first = pools.actions[audit.query, 0, :, 0]
    np.testing.assert_array_equal(audit.candidate[:, 0], first.argmin(axis=1))
    np.testing.assert_array_equal(audit.candidate[:, 1], first.argmax(axis=1))
    np.testing.assert_array_equal(audit.candidate[:, 2], audit.candidate[:, 0])
    assert 0 < audit.returns.max() < 1
    header = Stored.read(study.folder.rollouts).header
    assert header["policy"] == pools.header["proposal"]["params_sha256"]
    assert (header["horizon"], header["ddim_steps"], header["repeats"]) == (8, 3, 2)

    # Without runs the stored rollouts are read, unless other ones are asked for.
    stored = RolloutStage(Selection.at(tmp_path, CONFIG), queries, pools, DATA.val).audit()
    np.testing.assert_array_equal(stored.returns, audit.returns)
    study.folder.rollouts.unlink()
    with pytest.raises(InputError, match="Rolling out needs trained runs"):
        RolloutStage(Selection.at(tmp_path, CONFIG), queries, pools, DATA.val).audit()


def test_another_behaviour_model_than_that_of_the_pools_is_refused(
    runs: Path, tmp_path: Path
) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    queries, pools = begin(study)
    proposal = {**pools.header["proposal"], "params_sha256": "another"}
    other = replace(pools, header={**pools.header, "proposal": proposal})
    with pytest.raises(InputError, match="not the behaviour model that proposed"):
        RolloutStage(study, queries, other, DATA.val).audit()


# ------------------------------------------------------------------------------ planned rollouts

MORE = replace(CONFIG, queries=QueryConfig(per_group=12, near=(1, 5), medium=(6, 12), far=(13, 20)))


@pytest.fixture(scope="module")
def scored(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Selection:
    """Two critics and a judge who values going right."""
    study = Selection.at(tmp_path_factory.mktemp("planned"), MORE, runs)
    queries, pools = begin(study)
    score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    values = pools.with_logged()[..., 0][None]
    add_values(study, queries, pools, "reference", values, {"by": "going right"})
    return study


def planned_of(study: Selection, labels: int) -> PlannedRollouts:
    queries, pools = begin(study)
    return RolloutStage(study, queries, pools, DATA.val).planned(labels)


def test_planned_rollouts_are_a_plans_candidates_and_their_returns(
    scored: Selection, tmp_path: Path
) -> None:
    shutil.copytree(scored.folder.path, tmp_path / TASK)
    study = replace(scored, folder=SelectionFolder(tmp_path / TASK))
    found = planned_of(study, 100)
    assert 60 < len(found.query) <= 100
    assert found.returns.shape == (len(found.query), 2)
    assert 0 < found.p_judged.min() < found.p_judged.max() <= 1
    header = Stored.read(study.folder.planned).header
    assert (header["labels"], header["cheap"]) == (100, "reference")
    # A return is that of the same pair in other rollouts: noise depends on query and repetition.
    queries, pools = begin(study)
    picked = RolloutStage(study, queries, pools, DATA.val).audit(most_per_group=2)
    known = {(q, c): r for q, c, r in zip(found.query, found.candidate, found.returns, strict=True)}
    both = [
        (known[q, c], picked.returns[i, s])
        for i, q in enumerate(picked.query)
        for s, c in enumerate(picked.candidate[i])
        if (q, c) in known
    ]
    assert len(both) > 3
    for ours, theirs in both:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    # Stored ones are read, without runs; another number of them is another file.
    again = planned_of(replace(study, runs=None), 100)
    np.testing.assert_array_equal(again.returns, found.returns)
    with pytest.raises(InputError, match=r"labels \(100 and 90\)"):
        planned_of(study, 90)


def test_the_audit_of_planned_rollouts_is_that_of_all_where_all_are_asked_for(
    scored: Selection, tmp_path: Path
) -> None:
    shutil.copytree(scored.folder.path, tmp_path / TASK)
    study = replace(scored, folder=SelectionFolder(tmp_path / TASK))
    every = planned_of(study, 36 * 5)
    data = read_selection(study.folder.path)
    full = audit_planned(data, every, resamples=200)
    value = every.returns.mean(axis=1).reshape(36, 5)
    scores = {name: data.scores[name][:, 0, :5] for name in ("right@42", "left")}
    alone = ScoredPools.from_arrays(scores, value, cluster=data.trajectory)
    slow = toptail.audit(alone, resamples=200, k=[4]).to_dict()
    for name in ("right", "left"):
        np.testing.assert_allclose(full["scorers"][name]["value"], slow["scorers"][name]["value"])
        assert (
            full["scorers"][name]["verdict"]["status"]
            == (slow["scorers"][name]["verdict"]["status"])
        )
    # Some of them give the same curve on average, over plans of other seeds.
    found = []
    for seed in range(12):
        some = planned(data, 100, seed)
        some = replace(some, returns=value[some.query, some.candidate][:, None])
        found.append(audit_planned(data, some, resamples=100)["scorers"]["right"]["value"])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    off = np.abs(np.mean(found, axis=0) - full["scorers"]["right"]["value"])
    assert (off < 5 * error + 1e-9).all()


@pytest.mark.usefixtures("whole_audits")
def test_tables_write_the_audit_of_planned_rollouts(scored: Selection, tmp_path: Path) -> None:
    shutil.copytree(scored.folder.path, tmp_path / TASK)
    study = replace(scored, folder=SelectionFolder(tmp_path / TASK))
    planned_of(study, 100)
    written = write_audits(read_selection(study.folder.path), resamples=100)
    assert set(written["planned"]["scorers"]) == {"right", "left"}
    assert written["planned"]["judging"]["cheap"]["name"] == "cheap"
    assert (study.folder.path / "audit_planned" / "report.html").is_file()


def test_planned_rollouts_need_scores(runs: Path, tmp_path: Path) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    begin(study)
    with pytest.raises(InputError, match="has no scores: score the candidates first"):
        planned_of(study, 100)


__all__ = ["runs"]


def test_parts_in_any_order_are_the_stage(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    studies = [Selection.at(tmp_path / name, CONFIG, runs) for name in ("whole", "parts")]
    for study in studies:
        queries, pools = begin(study)
        score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    whole, parts = (RolloutStage(study, queries, pools, DATA.val) for study in studies)
    whole.audit(most_per_group=2)
    for part in (2, 0, 1, 0):  # one of them twice, as after a lost worker
        parts.part(part, 3)

    def again(*_: object) -> None:
        raise AssertionError("something is rolled out twice")

    monkeypatch.setattr(RolloutSetup, "judge", again)
    parts.part(1, 3)
    parts.audit(most_per_group=2)
    first, second = (study.folder for study in studies)
    assert first.rollouts.read_bytes() == second.rollouts.read_bytes()
    assert not (second.path / "rollouts.parts").exists()


def test_the_study_lists_its_rollouts_between_scores_and_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["study", "selection", "--task", "pointmaze-medium-navigate-v0", "--per-group", "20"]
    words += ["--runs", str(tmp_path), "--out", str(tmp_path / "out"), "--list-jobs"]
    words += ["--stage", "scores,rollouts,tables"]
    monkeypatch.setattr(sys, "argv", ["toptail", *words])
    assert main() == 0
    scores, *parts, stage, _tables = map(json.loads, capsys.readouterr().out.splitlines())
    assert [line["name"].split(" of ")[0] for line in parts] == [
        *("rollouts 1", "rollouts 2", "rollouts 3")
    ]
    assert all(line["needs"] == [scores["id"]] for line in parts)
    assert len({line["id"] for line in parts}) == 3
    assert stage["needs"] == [scores["id"], *(line["id"] for line in parts)]
    sys.argv.extend(("--planned-rollouts", "9"))
    assert main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
