"""Selection without a critic: the straight line, the most likely action, a random pick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import toptail
from paper.tests.selection.small import small_config, write_runs
from paper.tests.selection.stored_stages import TASK, Stages
from tests.training.toy import toy_dataset
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import power
from toptail_paper.selection.run import Stages as Run
from toptail_paper.selection.stages import Selection
from toptail_paper.selection.tables import MeasuredPicks
from toptail_paper.selection.trivial import likely, straight, trivial_scores
from toptail_paper.selection.write import write_results, write_scored_pools
from toptail_paper.study.naming import in_order, scorer_name
from toptail_paper.study.store import Stored


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Stages:
    return Stages(tmp_path_factory.mktemp("small"), per_group=2, pools=3, size=5)


def test_a_straight_line_counts_what_the_action_moves_towards_the_goal(small: Stages) -> None:
    pools = CandidatePools.read(small.folder.pools)
    scores = straight(small.queries, pools)
    for q, p, n in np.ndindex(*pools.scored_shape):
        action = small.queries.actions[q] if n == 5 else pools.actions[q, p, n]
        (x, y), (gx, gy) = small.queries.states[q], small.queries.goals[q]
        assert scores[q, p, n] == pytest.approx(action[0] * (gx - x) + action[1] * (gy - y))


def test_a_walkers_torques_have_no_direction() -> None:
    assert set(trivial_scores(TASK)) == {"straight", "likely"}
    for task in ("antmaze-medium-navigate-v0", "humanoidmaze-medium-navigate-v0", "mine"):
        assert set(trivial_scores(task)) == {"likely"}


def test_likely_is_the_distance_to_the_kth_sample(small: Stages) -> None:
    """By sorting all distances of a query's 15 samples: k is 4, the root of 15."""
    pools = CandidatePools.read(small.folder.pools)
    scores = likely(small.queries, pools)
    for q, p, n in np.ndindex(*pools.scored_shape):
        others = [pools.actions[q, i, j] for i in range(3) for j in range(5) if (i, j) != (p, n)]
        action = pools.logged[q] if n == 5 else pools.actions[q, p, n]
        far = sorted(float(np.hypot(*(action.astype(float) - other))) for other in others)
        assert scores[q, p, n] == pytest.approx(-far[3], rel=1e-5)


def test_likely_finds_the_denser_of_two_modes(tmp_path: Path) -> None:
    """Two thirds of the actions near (1, 0) and a third near (-1, 0); the mean is near neither."""
    stages = Stages(tmp_path, per_group=1, pools=2, size=30)
    stored = Stored.read(stages.folder.pools)
    mode = np.where(np.arange(30) % 3 < 2, 1.0, -1.0)
    actions = 0.2 * stages.rng.normal(size=(3, 2, 30, 2))
    actions[..., 0] += mode
    arrays = {**stored.arrays, "actions": actions.astype(np.float32)}
    pools = CandidatePools.of(stages.folder.pools, Stored(stored.header, arrays))
    picks = likely(stages.queries, pools)[..., :-1].argmax(axis=-1)
    assert (mode[picks] == 1).all()


def test_a_random_pick_is_the_mean_of_many_random_orders(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=3, pools=2, size=6)
    values = np.round(stages.value)  # ties, and a pool in which nothing differs
    values[0] = 1.0
    stages.judge("reference", values[None])
    stages.score("mine", stages.value)
    measured = MeasuredPicks(read_selection(stages.path), resamples=20)
    row = measured.rows["random"]
    assert list(measured.rows) == ["mine", "random"]
    assert row["nregret_6"]["mean"] == pytest.approx(1.0)
    assert row["pool_nregret_6"]["mean"] == pytest.approx(1.0)
    assert (row["tau_b_6"]["mean"], row["tau_b_6"]["undefined"]) == (0.0, 1)
    assert row["off_support_rate"]["mean"] == row["base_rate"]["mean"]
    assert row["off_over_base"]["mean"] == pytest.approx(1.0)
    drawn = np.random.default_rng(1).normal(size=(2_000, *values[1:, :, :6].shape))
    order = [
        kendalltau(drawn[i, q, p], values[1 + q, p, :6]).statistic
        for i, q, p in np.ndindex(200, 8, 2)
    ]
    assert np.mean(order) == pytest.approx(0.0, abs=0.03)
    picked = np.take_along_axis(values[None, 1:, :, :6], drawn.argmax(-1)[..., None], axis=-1)
    judged = measured.judged["reference", "random"]
    assert judged.value[1:].mean() == pytest.approx(picked.mean(), abs=0.01)


def test_the_stage_scores_stores_them_and_every_table_has_their_rows(tmp_path: Path) -> None:
    study = Selection.at(tmp_path, small_config(), write_runs(tmp_path / "runs"))
    Run(study, toy_dataset()).run(["pools", "reference", "scores"])
    pools = CandidatePools.read(study.folder.pools)
    stored = Stored.read(study.folder.scores("likely")).arrays["scores"]
    np.testing.assert_array_equal(stored, likely(Run(study, toy_dataset()).queries, pools))
    write_results(study.folder.path, resamples=20)
    rows = read_json(study.folder.path / "tables" / "fixed-query.json")["rows"]["walks"]
    assert set(rows) == {"two_head_joint", "two_head_joint.f_cos", "likely", "random"}


def test_they_stand_between_critics_and_ideals() -> None:
    names = ["random", "q_star", "straight", "mine", "tdq", "likely"]
    assert in_order(names) == ["tdq", "mine", "straight", "likely", "random", "q_star"]
    assert scorer_name("straight") == "Straight line to the goal"


def test_they_have_no_say_in_the_power_of_rollouts(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=4)
    stages.roll_out({"tdq": 0.01, "likely": 0.0})
    data = read_selection(stages.path)
    assert data.rollouts is not None
    returns = data.rollouts.returns
    returns[:, 1] += stages.rng.normal(size=returns[:, 1].shape)
    found = power(data.rollouts, 1.0)
    assert found["selectors"]["likely"]["half_width"] > found["largest_half_width"]
    assert found["largest_half_width"] == found["selectors"]["tdq"]["half_width"]


def test_stored_pools_have_what_untrained_scores_are_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail_paper.selection.write.PART_BYTES", 500)  # six pools a part
    stages = Stages(tmp_path, per_group=2, pools=3, size=5)
    stages.reference()
    stages.judge("exact", stages.value[None])
    for column in ("tdq@42", "hybrid@42", "straight"):
        stages.score(column, stages.noisy(0.5))
    path = write_scored_pools(stages.path)
    assert len(list(path.iterdir())) == 3
    pools = toptail.read(path)
    assert list(pools.scores) == ["straight", "tdq@42"]  # hybrid is not kept
    assert list(pools.values) == [*(f"value_reference_{i}" for i in range(3)), "value_exact"]
    assert list(pools.further) == ["action_0", "action_1"]
    wanted = stages.scores["tdq@42"][..., :5].reshape(-1)
    np.testing.assert_allclose(pools.scores["tdq@42"], wanted, rtol=1e-3, atol=1e-3)
    actions = CandidatePools.read(stages.folder.pools).actions
    table = pq.read_table(path)
    found = np.stack([table["action_0"], table["action_1"]], axis=-1).reshape(actions.shape)
    assert table["query"].to_pylist()[::5][4] == "1/1"
    assert table["cluster"].to_pylist()[::5] == np.repeat(stages.queries.trajectory, 3).tolist()
    np.testing.assert_allclose(found, actions, rtol=1e-3, atol=1e-3)
    stages.score("tdq@42", 1e6 * stages.value)
    with pytest.raises(InputError, match="'tdq@42' has numbers too large for 16 bits"):
        write_scored_pools(stages.path)
