"""The rollout stage of a small PointMaze study, from trained runs to its files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.proposals.diffusion_runs import DiffusionRun
from toptail.lab.studies.scorers import Scorer
from toptail.lab.studies.selection.config import (
    PoolSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail.lab.studies.selection.pools import CandidatePools
from toptail.lab.studies.selection.rollout_stage import make_rollouts
from toptail.lab.studies.selection.stages import make_pools, make_queries, score_critics
from toptail.lab.studies.selection.study import Selection
from toptail.lab.studies.store import Stored
from toptail.lab.tasks.files import Dataset, load_file
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig
from toptail.lab.training.session import train_runs
from toptail.lab.training.task_data import TaskData

TASK = "pointmaze-medium-navigate-v0"
FILES = Path(__file__).parent.parent / "tasks" / "data"
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
        make_rollouts(study, queries, pools, DATA.val)
    score_critics(study, queries, pools, [scorer("right@42", 1.0), scorer("left", -1.0)])
    score_critics(study, queries, pools, [scorer("right@43", -1.0)])  # another training seed
    audit = make_rollouts(study, queries, pools, DATA.val, most_per_group=2)
    assert audit.selectors == ("left", "right", "logged")
    first = pools.actions[audit.query, 0, :, 0]
    np.testing.assert_array_equal(audit.candidate[:, 0], first.argmin(axis=1))
    np.testing.assert_array_equal(audit.candidate[:, 1], first.argmax(axis=1))
    assert 0 < audit.returns.max() < 1
    header = Stored.read(study.folder.rollouts).header
    assert header["policy"] == pools.header["proposal"]["params_sha256"]
    assert (header["horizon"], header["ddim_steps"], header["repeats"]) == (8, 3, 2)

    # Without runs the stored rollouts are read, unless other ones are asked for.
    stored = make_rollouts(Selection.at(tmp_path, CONFIG), queries, pools, DATA.val)
    np.testing.assert_array_equal(stored.returns, audit.returns)
    study.folder.rollouts.unlink()
    with pytest.raises(InputError, match="Rolling out needs trained runs"):
        make_rollouts(Selection.at(tmp_path, CONFIG), queries, pools, DATA.val)


def test_another_behaviour_model_than_that_of_the_pools_is_refused(
    runs: Path, tmp_path: Path
) -> None:
    study = Selection.at(tmp_path, CONFIG, runs)
    queries, pools = begin(study)
    proposal = {**pools.header["proposal"], "params_sha256": "another"}
    other = replace(pools, header={**pools.header, "proposal": proposal})
    with pytest.raises(InputError, match="not the behaviour model that proposed"):
        make_rollouts(study, queries, other, DATA.val)
