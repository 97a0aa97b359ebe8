"""The resamples are what they claim to be, and the intervals hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from paper.tests.triples.world import resampled, scored
from tests.tasks.conftest import hand_made
from tests.tasks.test_trajectories import TRIPLES, rng
from toptail.errors import InputError
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import Triples, sample_triples
from toptail_paper.triples.bootstrap import TrajectoryBootstrap, summary
from toptail_paper.triples.draws import hard_negatives, second_goals
from toptail_paper.triples.retrieval import recall, retrieval_auc
from toptail_paper.triples.value_order import calibration, ordering, tau_b


def test_resamples_are_draws_of_trajectories_with_replacement() -> None:
    boot = TrajectoryBootstrap([5, 9, 5, 2], np.random.default_rng(0), 20_000)
    assert boot.clusters == 3
    np.testing.assert_array_equal(boot.code, [1, 2, 1, 0])
    assert (boot.times.sum(axis=1) == 3).all()
    # Of 27 equally likely draws of three: 6 hold each once, 3 hold one of them three times.
    each_once = (boot.times == 1).all(axis=1).mean()
    thrice = (boot.times.max(axis=1) == 3).mean()
    np.testing.assert_allclose([each_once, thrice], [6 / 27, 3 / 27], atol=0.01)
    np.testing.assert_allclose(boot.times.mean(axis=0), 1.0, atol=0.03)
    for resample in range(5):
        rows = boot.rows(resample)
        counts = np.bincount(rows, minlength=4)
        np.testing.assert_array_equal(counts, boot.times[resample][boot.code])


def test_the_generator_decides_every_bit() -> None:
    a, b, c = (
        TrajectoryBootstrap(np.arange(30), np.random.default_rng(s), 50).times for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_one_trajectory_says_nothing_about_variation() -> None:
    boot = TrajectoryBootstrap(np.zeros(4), np.random.default_rng(0), 10)
    x = np.arange(4.0)
    entries = [
        summary(tau_b(x, x, boot)),
        summary(boot.mean(x)),
        summary(boot.each(lambda rows: x[rows].mean())),
        summary(boot.each(lambda rows: x[rows].mean(), np.ones(4, dtype=bool))),
    ]
    assert [entry["value"] for entry in entries] == [1.0, 1.5, 1.5, 1.5]
    assert all(entry["low"] is None and entry["high"] is None for entry in entries)


def test_a_resample_without_any_of_the_wanted_triples_is_unknown() -> None:
    boot = TrajectoryBootstrap([0, 1], np.random.default_rng(0), 200)
    keep = np.array([True, False])
    for estimate in (
        boot.each(lambda rows: float(rows.size), keep),
        boot.mean(np.array([7.0, np.nan]), keep),
    ):
        missing = boot.times[:, 0] == 0
        assert 0 < missing.sum() < 200
        np.testing.assert_array_equal(np.isnan(estimate.draws), missing)
        assert summary(estimate)["low"] is None


def clustered(rng: np.random.Generator, clusters: int, per: int) -> NDArray[np.float64]:
    """Four fifths of the variance are the trajectory's."""
    return (2.0 * rng.normal(size=(clusters, 1)) + rng.normal(size=(clusters, per))).reshape(-1)


def test_intervals_cover_when_trajectories_are_resampled_and_not_otherwise() -> None:
    rng = np.random.default_rng(0)
    trials, clusters, per = 150, 30, 6
    trajectory = np.repeat(np.arange(clusters), per)
    missed = {"trajectories": 0, "triples": 0}
    for _ in range(trials):
        x, y = clustered(rng, clusters, per), clustered(rng, clusters, per)  # tau is 0
        for name, label in (("trajectories", trajectory), ("triples", np.arange(x.size))):
            entry = summary(tau_b(x, y, TrajectoryBootstrap(label, rng, 200)))
            missed[name] += not entry["low"] <= 0.0 <= entry["high"]
    # 5 % of 150 is 7.5; percentile intervals of 30 clusters miss a little more often. Within
    # a trajectory the products correlate by 0.8² = 0.64: the error is sqrt(1 + 5 · 0.64) = 2
    # times what single triples suggest, and 1.96/2 is exceeded in a third of the trials (50).
    assert missed["trajectories"] <= 20
    assert missed["triples"] >= 30


def test_the_spread_of_a_mean_is_that_of_trajectory_means() -> None:
    rng = np.random.default_rng(3)
    x = clustered(rng, 50, 4)
    boot = TrajectoryBootstrap(np.repeat(np.arange(50), 4), rng, 4_000)
    by_trajectory = x.reshape(50, 4).mean(axis=1)
    np.testing.assert_allclose(boot.mean(x).draws.std(), by_trajectory.std() / 50**0.5, rtol=0.05)
    low, high = boot.mean(x).interval(0.95)
    np.testing.assert_allclose(high - low, 2 * 1.96 * by_trajectory.std() / 50**0.5, rtol=0.08)


def test_differences_are_paired() -> None:
    triples = scored()
    boot = resampled(triples)
    same = ordering(triples, "exact", boot) - ordering(triples, "steps", boot)
    np.testing.assert_array_equal(same.draws, 0.0)
    other = resampled(triples, seed=1)
    deciles = [calibration(triples, "exact", b, bins=3).draws for b in (boot, other)]
    assert deciles[0].shape == (50, 3)
    gap = retrieval_auc(triples, "exact", boot) - recall(triples, "constant", 1, boot)
    np.testing.assert_allclose(gap.draws, 0.75)


def test_one_trajectory_has_no_hard_negatives() -> None:
    with pytest.raises(InputError, match="at least two trajectories"):
        hard_negatives(TRIPLES.take(np.array([0, 2])), hand_made())


def test_hard_negatives_by_hand() -> None:
    data = hand_made((4, 2, 5))
    observations = np.zeros((11, 2), np.float32)
    observations[[0, 6, 1, 4, 7], 0] = [0.0, 0.4, 0.1, 1.0, 0.9]
    data = Trajectories(observations, data.actions, data.terminals)
    # Triple 0 at 0.0 (trajectory 0): 0.1 is on its own trajectory, so the nearest is 0.4.
    # Triple 1 at 0.4 (2): 0.1. Triple 2 at 0.1 (0): 0.4. Triple 3 at 1.0 (1): 0.9.
    # Triple 4 at 0.9 (2): 1.0.
    assert hard_negatives(TRIPLES, data).tolist() == [8, 3, 8, 10, 5]


def test_hard_negatives_against_a_slow_search() -> None:
    data = hand_made((40,) * 30)
    observations = rng(3).normal(size=(1200, 7)).round(1).astype(np.float32)  # with ties
    data = Trajectories(observations, data.actions, data.terminals)
    triples = sample_triples(data, 700, rng(4))
    found = hard_negatives(triples, data)
    states = observations[triples.rows].astype(np.float64)
    for i in range(0, 700, 7):
        best, best_distance = -1, np.inf
        for j in range(700):
            distance = float(np.sum((states[i] - states[j]) ** 2))
            if triples.trajectory[j] != triples.trajectory[i] and distance < best_distance:
                best, best_distance = j, distance
        assert found[i] == triples.goal_rows[best]


def test_second_goals_have_another_distance_uniformly() -> None:
    data = hand_made((4, 2, 5))
    triples = Triples(
        rows=np.array([0, 4, 6, 2]),
        goal_rows=np.array([2, 5, 8, 3]),
        trajectory=np.array([0, 1, 2, 0]),
        gamma=0.99,
    )
    counts: dict[tuple[int, int], int] = {}
    for seed in range(3000):
        goals = second_goals(triples, data, rng(seed), max_offset=4)
        assert goals[[1, 3]].tolist() == [-1, -1], "rows with one step left have no second goal"
        for place in (0, 2):
            row = int(triples.rows[place])
            key = (row, int(goals[place]) - row)
            counts[key] = counts.get(key, 0) + 1
    assert set(counts) == {(0, 1), (0, 3), (6, 1), (6, 3), (6, 4)}
    for row in (0, 6):
        seen = [count for (at, _), count in counts.items() if at == row]
        assert stats.chisquare(seen).pvalue > 1e-3
