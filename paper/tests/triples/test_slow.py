"""Point and every resample against slow versions that build the resampled triples one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from paper.tests.triples.world import NEGATIVES, noisy
from tests.audit.test_audit import output
from tests.stats import slow
from toptail.stats.resample import Estimate
from toptail_paper.triples.bootstrap import TrajectoryBootstrap, seed_mean, summary
from toptail_paper.triples.retrieval import (
    distance_profile,
    hard_negative_win_rate,
    nearer_goal_win_rate,
    recall,
    retrieval_auc,
    same_trajectory_win_rate,
)
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.search import (
    cross_query,
    saturation,
    support_preference,
    within_quartiles,
)
from toptail_paper.triples.value_order import agreement, bellman_consistency, calibration, ordering

NAME = "any@7"
Rows = list[int]


def boot(triples: ScoredTriples, seed: int = 1) -> TrajectoryBootstrap:
    return TrajectoryBootstrap(triples.trajectory, np.random.default_rng(seed), 8)


def brute(triples: ScoredTriples, times: np.ndarray) -> list[Rows]:
    """All triples, then each resample's: a trajectory drawn twice brings its triples twice."""
    labels = sorted(set(triples.trajectory.tolist()))
    resamples = [list(range(len(triples)))]
    for counts in times:
        rows: Rows = []
        for label, count in zip(labels, counts, strict=True):
            for _ in range(count):
                rows += [i for i in range(len(triples)) if triples.trajectory[i] == label]
        resamples.append(rows)
    return resamples


def check(estimate: Estimate, resamples: list[Rows], statistic: Callable[[Rows], object]) -> None:
    expected = [np.asarray(statistic(rows), dtype=np.float64) for rows in resamples]
    np.testing.assert_allclose(estimate.point, expected[0], atol=1e-12)
    np.testing.assert_allclose(estimate.draws, expected[1:], atol=1e-12)


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else float("nan")


def win(a: float, b: float) -> float:
    return 1.0 if a > b else 0.5 if a == b else 0.0


@pytest.mark.parametrize("seed", range(4))
def test_every_diagnostic(seed: int) -> None:
    t = noisy(seed=seed)
    b = boot(t)
    resamples = brute(t, b.times)
    f, value = t.scores[NAME].tolist(), [0.9**d for d in t.distance.tolist()]
    negative, hard = t.negatives[NAME].tolist(), t.hard_negatives[NAME].tolist()
    second, judge = t.second_goals[NAME].tolist(), t.values["judge"].tolist()

    check(
        ordering(t, NAME, b),
        resamples,
        lambda rows: slow.tau_b([f[i] for i in rows], [value[i] for i in rows]),
    )
    check(
        agreement(t, "judge", b),
        resamples,
        lambda rows: slow.spearman([value[i] for i in rows], [judge[i] for i in rows]),
    )
    check(
        calibration(t, NAME, b, bins=3),
        resamples,
        lambda rows: slow.decile_means([f[i] for i in rows], [value[i] for i in rows], 3),
    )

    def auc(rows: Rows) -> float:
        return mean([win(f[i], x) for i in rows for j in rows for x in negative[j]])

    check(retrieval_auc(t, NAME, b), resamples, auc)
    check(
        hard_negative_win_rate(t, NAME, b),
        resamples,
        lambda rows: mean([win(f[i], hard[i]) for i in rows]),
    )
    for k in (1, NEGATIVES):

        def recalled(rows: Rows, k: int = k) -> float:
            return mean([slow.recall_at_k([f[i], *negative[i]], 0, k) for i in rows])

        check(recall(t, NAME, k, b), resamples, recalled)

    assert t.second_goal_rows is not None
    has_two = (t.second_goal_rows >= 0).tolist()
    assert 0 < sum(has_two) < len(t)
    check(
        same_trajectory_win_rate(t, NAME, b),
        resamples,
        lambda rows: mean([win(f[i], second[i]) for i in rows if has_two[i]]),
    )
    check(  # in this world the second goal is always the farther one
        nearer_goal_win_rate(t, NAME, b),
        resamples,
        lambda rows: mean([win(f[i], second[i]) for i in rows if has_two[i]]),
    )


@pytest.mark.parametrize("seed", range(4))
def test_distance_profile(seed: int) -> None:
    t = noisy(seed=seed, per=6)
    b = boot(t)
    f, negative, d = t.scores[NAME], t.negatives[NAME], t.distance

    def profile(rows: Rows) -> list[float]:
        random = mean([x for i in rows for x in negative[i].tolist()])
        bins = [
            [f[i] for i in rows if low <= d[i] < high] for low, high in ((1, 3), (3, 5), (5, 6))
        ]
        above = [mean(scores) - random for scores in bins]
        return [x / above[0] if above[0] > 0 else float("nan") for x in above]

    check(distance_profile(t, NAME, b, [1, 3, 5, 6]), brute(t, b.times), profile)


@pytest.mark.parametrize("seed", range(4))
def test_bellman(seed: int) -> None:
    t = noisy(seed=seed)
    b = boot(t)

    def errors(rows: Rows) -> tuple[float, float]:
        rows = [i for i in rows if t.goal_rows[i] - t.rows[i] >= 2]
        f = [float(t.scores[NAME][i]) for i in rows]
        delta = [
            x + 0.25 - 0.9 * float(t.next_scores[NAME][i]) for x, i in zip(f, rows, strict=True)
        ]
        if len(set(f)) < 2:
            return float("nan"), float("nan")
        spread = mean([(x - mean(f)) ** 2 for x in f]) ** 0.5
        rmse = mean([x**2 for x in delta]) ** 0.5
        return rmse / spread, mean([(x - mean(delta)) ** 2 for x in delta]) ** 0.5 / spread

    result = bellman_consistency(t, NAME, b)
    check(result.rmse, brute(t, b.times), lambda rows: errors(rows)[0])
    check(result.std, brute(t, b.times), lambda rows: errors(rows)[1])


def selection(scores: list[float], values: list[float], k: int) -> tuple[float, float, float]:
    """Chosen, oracle and random; NaN with fewer than K candidates."""
    if len(scores) < k:
        return float("nan"), float("nan"), mean(values)
    return slow.best_of_k(scores, values, k), slow.best_of_k(values, values, k), mean(values)


@pytest.mark.parametrize("judge", [None, "judge"])
def test_pooled_selection(judge: str | None) -> None:
    t = noisy(seed=2)
    b = boot(t)
    f = t.scores[NAME].tolist()
    v = (t.value if judge is None else t.values[judge]).tolist()
    k = [1, 3, 7]
    result = cross_query(t, NAME, k, b, judge)

    def curves(rows: Rows) -> np.ndarray:
        pool = [f[i] for i in rows], [v[i] for i in rows]
        return np.array([selection(*pool, count) for count in k]).T

    def normalized(rows: Rows) -> list[float]:
        chosen, oracle, random = curves(rows)
        room = oracle - random
        return [
            r / h if h > 1e-9 else float("nan") for r, h in zip(oracle - chosen, room, strict=True)
        ]

    resamples = brute(t, b.times)
    check(result.value, resamples, lambda rows: curves(rows)[0])
    check(result.oracle, resamples, lambda rows: curves(rows)[1])
    check(result.random, resamples, lambda rows: curves(rows)[2])
    check(result.regret, resamples, lambda rows: curves(rows)[1] - curves(rows)[0])
    check(result.normalized, resamples, normalized)


def test_selection_within_quartiles() -> None:
    t = noisy(trajectories=6, per=8, seed=5)
    b = boot(t)
    f, v = t.scores[NAME].tolist(), t.value.tolist()
    cuts = [float(np.quantile(v, q)) for q in (0.25, 0.5, 0.75)]
    pools = [sum(x > cut for cut in cuts) for x in v]
    assert set(pools) == {0, 1, 2, 3}
    k = [1, 2]

    def curves(rows: Rows) -> np.ndarray:
        parts = []
        for pool in range(4):
            mine = [i for i in rows if pools[i] == pool]
            if not mine:
                return np.full((3, 2), np.nan)
            chosen = [f[i] for i in mine], [v[i] for i in mine]
            parts.append(np.array([selection(*chosen, count) for count in k]).T)
        return np.asarray(sum(parts) / 4)

    result = within_quartiles(t, NAME, k, b)
    resamples = brute(t, b.times)
    check(result.value, resamples, lambda rows: curves(rows)[0])
    check(result.oracle, resamples, lambda rows: curves(rows)[1])
    check(result.random, resamples, lambda rows: curves(rows)[2])


def test_saturation() -> None:
    t = noisy(seed=3)
    b = boot(t)
    f, k = t.scores[NAME].tolist(), [1, 4]

    def picks(rows: Rows, count: int) -> tuple[float, float]:
        """Every pool of K: its top score is the pick's."""
        if len(rows) < count:
            return float("nan"), float("nan")
        tops = sorted(max(f[i] for i in pool) for pool in combinations(rows, count))
        at = next(j for j in range(len(tops)) if Fraction(j + 1, len(tops)) >= Fraction(1, 2))
        return tops[at], mean([float(top > 0.6) for top in tops])

    result = saturation(t, NAME, k, b, threshold=0.6)
    check(result.median, brute(t, b.times), lambda rows: [picks(rows, c)[0] for c in k])
    check(result.share, brute(t, b.times), lambda rows: [picks(rows, c)[1] for c in k])


def test_support_preference() -> None:
    t = noisy(seed=4)
    b = boot(t)
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (len(t), 6)).astype(np.float64)
    on = rng.random((len(t), 6)) < 0.6
    k = [1, 2, 5]

    def rates(rows: Rows) -> list[float]:
        return [
            mean([slow.best_of_k(scores[i].tolist(), (1.0 - on[i]).tolist(), c) for i in rows])
            for c in k
        ]

    def base(rows: Rows) -> float:
        return mean([float(not x) for i in rows for x in on[i]])

    result = support_preference(scores, on, k, b)
    check(result.rate, brute(t, b.times), rates)
    check(result.base, brute(t, b.times), lambda rows: [base(rows)])
    check(result.excess, brute(t, b.times), lambda rows: np.array(rates(rows)) - base(rows))


def test_huge_scores_do_not_overflow() -> None:
    t = noisy(seed=1)
    b = boot(t)
    huge: dict[str, Any] = {
        family: {NAME: (getattr(t, family)[NAME] - 0.5) * 2 * 1.5e308}
        for family in ("scores", "negatives", "hard_negatives", "second_goals")
    }
    big = replace(t, **huge)
    for diagnostic in (ordering, retrieval_auc, hard_negative_win_rate, nearer_goal_win_rate):
        np.testing.assert_array_equal(diagnostic(big, NAME, b).draws, diagnostic(t, NAME, b).draws)
    edges = [1, 3, 6]
    big_profile, profile = (distance_profile(x, NAME, b, edges) for x in (big, t))
    np.testing.assert_allclose(big_profile.draws, profile.draws, atol=1e-9)


def test_seeds_are_averaged_resample_by_resample() -> None:
    a, b = (Estimate(np.array(x), np.array([x, x + 2.0])) for x in (1.0, 3.0))
    both = seed_mean([a, b])
    assert float(both.point) == 2.0
    np.testing.assert_array_equal(both.draws, [2.0, 4.0])
    assert summary(both, level=0.5) == {"value": 2.0, "low": 2.5, "high": 3.5}


TRIPLES = """
import sys
import numpy as np
from toptail_paper.triples.bootstrap import TrajectoryBootstrap

rng = np.random.default_rng(0)
bootstrap = TrajectoryBootstrap(rng.integers(0, 600, 9_000), rng, 300)
sums = bootstrap.totals(rng.normal(size=(9_000, 40)))
pairs = bootstrap.pairs(rng.normal(size=(bootstrap.clusters, bootstrap.clusters)))
sys.stdout.write(sums.draws.tobytes().hex() + pairs.draws.tobytes().hex())
"""


@pytest.mark.slow
def test_resampled_trajectories_have_the_same_bits_with_any_number_of_threads() -> None:
    assert output(TRIPLES, 1) == output(TRIPLES, 3)
