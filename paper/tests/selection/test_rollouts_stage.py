"""The rollout stage of a small PointMaze study, from trained runs to its files."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.scorers.base import Scorer
from toptail.lab.tasks.files import Dataset, load_file
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig
from toptail.lab.training.data import TaskData
from toptail.lab.training.session import train_runs
from toptail_paper.cli import main
from toptail_paper.selection.config import (
    PoolSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail_paper.selection.expert_rollouts import ExpertStage
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollouts import RolloutSetup, RolloutStage
from toptail_paper.selection.stages import (
    Selection,
    make_pools,
    make_queries,
    score_critics,
)
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


def test_rollouts_by_the_collecting_policy_have_files_of_their_own(
    runs: Path, tmp_path: Path
) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    queries, pools = begin(study)
    score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    audit = ExpertStage(study, queries, pools, DATA.val).audit(most_per_group=2)
    assert audit.selectors == ("left", "right@42", "logged")
    folder = study.folder.path
    assert (folder / "rollouts_expert.npz").is_file()
    assert (folder / "picks_expert.parquet").is_file()
    assert not (folder / "rollouts.npz").exists()
    assert not (folder / "rollouts_expert.parts").exists()
    study = Selection.at(tmp_path, CONFIG, None)  # no run is needed to go on
    again = ExpertStage(study, queries, pools, DATA.val).audit(most_per_group=2)
    np.testing.assert_array_equal(again.random_returns, audit.random_returns)


def test_another_behaviour_model_than_that_of_the_pools_is_refused(
    runs: Path, tmp_path: Path
) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    queries, pools = begin(study)
    proposal = {**pools.header["proposal"], "params_sha256": "another"}
    other = replace(pools, header={**pools.header, "proposal": proposal})
    with pytest.raises(InputError, match="not the behaviour model that proposed"):
        RolloutStage(study, queries, other, DATA.val).audit()


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
    audited = len(whole.audit(most_per_group=2).query)
    expert = ExpertStage(studies[0], queries, pools, DATA.val).settings
    assert expert.per_group * expert.most * len(np.unique(queries.group)) == audited == 6
    assert expert.repeats == 1
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
