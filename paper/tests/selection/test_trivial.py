"""Selection without a critic: the straight line, the most likely action, a random pick."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import kendalltau

import toptail
from paper.tests.selection.small import small_config, write_runs
from paper.tests.selection.stored_stages import TASK, Stages
from paper.tests.selection.test_stages import start
from paper.tests.selection.test_tables import measure
from paper.tests.semantics.fake_runs import write_run
from tests.training.toy import toy_config, toy_dataset
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.lab.training.runs import load_run
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_data import power
from toptail_paper.selection.run import Stages as Run
from toptail_paper.selection.stages import Selection, critic_scorers, score_critics
from toptail_paper.selection.tables import MeasuredPicks, pick_norm_table
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


# The norm of the pick as K grows: by hand, against all subsets, and from trained critics.


def rows(stages: Stages) -> dict[str, Any]:
    found = pick_norm_table(measure(stages))
    assert found is not None
    task: dict[str, Any] = found["rows"]["PointMaze"]
    return task


def test_by_hand(tmp_path: Path) -> None:
    """Of norms 1, 2, 3, 6 in the order of the scores the best of 2 has (2 + 2·3 + 3·6) / 6."""
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.reference()
    stages.score("raw@42", np.tile([0.0, 1.0, 2.0, 3.0, 9.0], (3, 1, 1)))
    stages.norm("raw@42", np.tile([1.0, 2.0, 3.0, 6.0, 99.0], (3, 1, 1)))
    raw = rows(stages)["raw"]
    assert raw["random_norm"]["mean"] == pytest.approx(3.0)
    assert raw["pick_norm_2"]["mean"] == pytest.approx(26 / 6 / 3)
    assert raw["pick_norm_4"]["mean"] == pytest.approx(2.0)
    assert "pick_norm_1" not in raw


def test_against_all_subsets(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=2, pools=2, size=8)
    stages.reference()
    for seed in (42, 43):
        stages.score(f"cosine@{seed}", np.round(stages.noisy(0.5), 1))  # with ties
        stages.norm(f"cosine@{seed}", np.exp(stages.noisy(0.2)))
    stages.score("tdq@42", stages.noisy(0.9))
    found = rows(stages)
    assert list(found) == ["cosine"]  # the other one has no embeddings
    data = read_selection(stages.path)
    for k in (2, 4, 8):
        for seed in (42, 43):
            score, norm = (x[f"cosine@{seed}"][..., :8] for x in (data.scores, data.norms))
            slow = []
            for s, n in zip(score.reshape(-1, 8), norm.reshape(-1, 8), strict=True):
                for chosen in map(list, combinations(range(8), k)):
                    best = s[chosen] == s[chosen].max()
                    slow.append(n[chosen][best].mean())
            ratio = np.mean(slow) / norm.mean()
            assert found["cosine"][f"pick_norm_{k}"]["seeds"][str(seed)] == pytest.approx(ratio)
    cell = found["cosine"]["pick_norm_8"]
    assert cell["low"] < cell["mean"] < cell["high"]


def test_the_table_is_written_and_shown(finished: Path) -> None:
    shown = (finished / "report.html").read_text("utf-8")
    assert "Does the norm of the pick grow with K?" in shown
    assert "K = 64" in shown
    grown = read_json(finished / "tables" / "pick-norm.json")["rows"]["PointMaze"]
    assert list(grown) == ["raw"]
    assert grown["raw"]["pick_norm_64"]["low"] > 1


def test_norms_of_other_pools_are_refused(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    stages.made_from["pools"] = "others"
    stages.norm("raw@42", np.ones((3, 1, 5)))
    with pytest.raises(InputError, match=r"norms/raw@42\.npz"):
        read_selection(stages.path)


def test_critics_with_embeddings_leave_their_norms_beside_their_scores(tmp_path: Path) -> None:
    runs = write_runs(tmp_path / "runs")
    write_run(toy_config(critic="raw"), 42, runs)
    study = Selection.at(tmp_path / "out", small_config(), runs)
    queries, pools = start(study)
    scorers = critic_scorers(study, ["raw", "two_head_joint"])
    paths = score_critics(study, queries, pools, scorers)
    assert {column.partition("@")[0] for column in paths} == {
        *("raw", "two_head_joint", "two_head_joint.f_cos"),
    }
    assert list(study.folder.normed()) == ["raw@42"]
    stored = Stored.read(study.folder.norms("raw@42"))
    assert stored.header["origin"]["readout"] == "norm"
    norms = stored.array(study.folder.norms("raw@42"), "norms")
    critic = load_run(runs / study.config.task / "raw" / "seed-42", study.config.task)
    actions = pools.with_logged()
    for query in (0, len(queries) - 1):
        own = actions[query].reshape(-1, actions.shape[-1])
        given = (np.repeat(x[query][None], len(own), 0) for x in (queries.states, queries.goals))
        state, goal = given
        with jax.default_matmul_precision("highest"):
            phi = critic.critic.embed(critic.params, state, own, goal).phi  # type: ignore[attr-defined]
        slow = np.sqrt((np.asarray(phi) ** 2).sum(-1)).mean(0)
        np.testing.assert_allclose(norms[query].ravel(), slow, rtol=1e-5)
    before = study.folder.norms("raw@42").stat().st_mtime_ns
    score_critics(study, queries, pools, scorers)
    assert study.folder.norms("raw@42").stat().st_mtime_ns == before
