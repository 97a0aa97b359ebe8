"""Every diagnostic on critics whose result is known without a computer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper.tests.triples.world import CRITICS, GAMMA, NEGATIVES, resampled, scored
from toptail.errors import InputError
from toptail.stats.resample import Estimate
from toptail_paper.triples.bootstrap import summary
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
    pooled_selection,
    saturation,
    support_preference,
    within_quartiles,
)
from toptail_paper.triples.value_order import (
    agreement,
    bellman_consistency,
    calibration,
    calibration_gap,
    centered_ordering,
    ordering,
    readout_ordering,
)

TRIPLES = scored()
BOOT = resampled(TRIPLES)
NAN = float("nan")
K = [1, 2, 8]
DISTANCES = GAMMA ** np.arange(1.0, 5.0)


def certain(estimate: Estimate, value: float | list[float] | np.ndarray) -> None:
    """The trajectories are all alike, so that every resample must show the value itself."""
    np.testing.assert_allclose(estimate.point, value, atol=1e-12)
    expected = np.broadcast_to(value, estimate.draws.shape)
    np.testing.assert_allclose(estimate.draws, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("critic", "tau"),
    [("exact", 1.0), ("steps", 1.0), ("opposite", -1.0), ("constant", NAN), ("separator", 0.0)],
)
def test_ordering(critic: str, tau: float) -> None:
    certain(ordering(TRIPLES, critic, BOOT), tau)


def test_readouts_are_ordered_by_themselves() -> None:
    certain(readout_ordering(TRIPLES, "exact:raw", BOOT), 1.0)
    certain(readout_ordering(TRIPLES, "exact:norm", BOOT), 0.0)


def test_centering_takes_away_what_the_query_alone_explains() -> None:
    means = TRIPLES.query_means["exact"]
    assert np.isnan(centered_ordering(TRIPLES, "exact", means, BOOT).point)  # nothing is left
    certain(centered_ordering(TRIPLES, "exact", 2 * means, BOOT), -1.0)
    certain(centered_ordering(TRIPLES, "exact", np.zeros(len(TRIPLES)), BOOT), 1.0)
    broken = np.zeros(len(TRIPLES))
    broken[5] = np.nan
    unknown = summary(centered_ordering(TRIPLES, "exact", broken, BOOT))
    assert unknown == {"value": None, "low": None, "high": None}


@pytest.mark.parametrize(
    ("critic", "deciles"),
    [
        ("exact", DISTANCES[::-1]),
        ("opposite", DISTANCES),
        ("constant", np.full(4, DISTANCES.mean())),
        ("separator", np.full(4, DISTANCES.mean())),
    ],
)
def test_calibration(critic: str, deciles: np.ndarray) -> None:
    bins = calibration(TRIPLES, critic, BOOT, bins=4)
    certain(bins, deciles)
    certain(calibration_gap(bins), deciles[-1] - deciles[0])
    assert calibration(TRIPLES, critic, BOOT).point.shape == (10,)


@pytest.mark.parametrize(
    ("critic", "auc", "recall_1", "nearer"),
    [
        ("exact", 1.0, 1.0, 1.0),
        ("steps", 1.0, 1.0, 1.0),
        ("opposite", 0.0, 0.0, 0.0),
        ("constant", 0.5, 1 / (NEGATIVES + 1), 0.5),
        ("separator", 1.0, 1.0, 0.5),
    ],
)
def test_retrieval(critic: str, auc: float, recall_1: float, nearer: float) -> None:
    certain(retrieval_auc(TRIPLES, critic, BOOT), auc)
    certain(hard_negative_win_rate(TRIPLES, critic, BOOT), auc)
    certain(recall(TRIPLES, critic, 1, BOOT), recall_1)
    certain(recall(TRIPLES, critic, 2, BOOT), min(1.0, 2 * recall_1))
    certain(nearer_goal_win_rate(TRIPLES, critic, BOOT), nearer)
    certain(same_trajectory_win_rate(TRIPLES, critic, BOOT), 0.5)  # a coin toss for every critic


def test_scores_against_distance() -> None:
    edges = [1, 2, 4, 5, 7]  # d = 1; 2 and 3; 4; nothing
    value = [1.0, (GAMMA**2 + GAMMA**3) / (2 * GAMMA), GAMMA**3, NAN]
    certain(distance_profile(TRIPLES, "exact", BOOT, edges), value)
    certain(distance_profile(TRIPLES, "separator", BOOT, edges), [1.0, 1.0, 1.0, NAN])
    # The offset of -1/0 values cancels: the same profile as that of γ^d.
    certain(distance_profile(TRIPLES, "steps", BOOT, edges), value)
    for critic in ("opposite", "constant"):  # nearest goals are not above random ones
        certain(distance_profile(TRIPLES, critic, BOOT, edges), [NAN] * 4)


@pytest.mark.parametrize(
    ("critic", "rmse", "std"),
    [
        ("exact", 0.0, 0.0),
        ("steps", 0.0, 0.0),
        ("opposite", 0.0, 0.0),
        ("constant", NAN, NAN),
        # f is 1 or 2 and δ = (1 - γ) f: RMSE sqrt(2.5)(1 - γ), std(f) = 1/2.
        ("separator", (1 - GAMMA) * np.sqrt(2.5) / 0.5, 1 - GAMMA),
    ],
)
def test_bellman_consistency(critic: str, rmse: float, std: float) -> None:
    result = bellman_consistency(TRIPLES, critic, BOOT)
    certain(result.rmse, rmse)
    certain(result.std, std)


def test_an_offset_moves_the_rmse_and_not_the_spread() -> None:
    moved = replace(
        TRIPLES,
        scores={"exact": TRIPLES.scores["exact"] + 10.0},
        next_scores={"exact": TRIPLES.next_scores["exact"] + 10.0},
    )
    result = bellman_consistency(moved, "exact", BOOT)
    spread = (GAMMA ** np.arange(2.0, 5.0)).std()
    certain(result.rmse, 10.0 * (1 - GAMMA) / spread)
    certain(result.std, 0.0)


def test_bellman_needs_goals_two_steps_away() -> None:
    near = replace(
        TRIPLES,
        goal_rows=TRIPLES.rows + 1,
        negative_rows=None,
        negatives={},
        hard_negatives={},
        hard_negative_rows=None,
        second_goals={},
        second_goal_rows=None,
    )
    with pytest.raises(InputError, match="two or more steps away"):
        bellman_consistency(near, "exact", BOOT)


def test_search_over_all_queries() -> None:
    right, wrong, blind, same = (
        cross_query(TRIPLES, critic, K, BOOT)
        for critic in ("exact", "opposite", "separator", "constant")
    )
    np.testing.assert_allclose(right.regret.point, 0.0, atol=1e-12)
    np.testing.assert_allclose(right.normalized.point, [NAN, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(right.random.point, DISTANCES.mean())
    for uninformed in (blind, same):  # no order, so that search picks at random
        certain(uninformed.value, DISTANCES.mean())
        np.testing.assert_allclose(uninformed.normalized.draws[:, 1:], 1.0)
    # Two of 96 triples, 24 at each distance: the farther of both by counting pairs.
    pairs = [(min(a // 24, b // 24)) for a in range(96) for b in range(a)]
    lowest = np.mean(DISTANCES[::-1][pairs])
    np.testing.assert_allclose(wrong.value.point[1], lowest)
    assert (wrong.normalized.point[1:] > 1.0).all()


def test_another_judge_takes_the_place_of_the_proxy() -> None:
    same = cross_query(TRIPLES, "exact", K, BOOT, judge="same")
    np.testing.assert_allclose(same.normalized.point, [NAN, 0.0, 0.0], atol=1e-12)
    against = cross_query(TRIPLES, "exact", K, BOOT, judge="opposite")
    np.testing.assert_allclose(against.random.point, -DISTANCES.mean())
    assert (against.normalized.point[1:] > 1.0).all()
    certain(agreement(TRIPLES, "same", BOOT), 1.0)
    certain(agreement(TRIPLES, "opposite", BOOT), -1.0)


def test_within_a_quartile_of_one_distance_nothing_can_be_lost() -> None:
    for critic in CRITICS:
        pools = within_quartiles(TRIPLES, critic, K, BOOT)
        certain(pools.value, DISTANCES.mean())
        certain(pools.regret, 0.0)
        assert np.isnan(pools.normalized.point).all()  # no headroom
    with pytest.raises(InputError, match="between 1 and 24"):
        within_quartiles(TRIPLES, "exact", [25], BOOT)


def test_saturation() -> None:
    result = saturation(TRIPLES, "separator", [1, 2, 96], BOOT, threshold=1.5)
    # One half has score 1, the other 2; of two, both are low with chance (48·47)/(96·95).
    np.testing.assert_allclose(result.median.point, [1.0, 2.0, 2.0])
    np.testing.assert_allclose(result.share.point, [0.5, 1 - 48 * 47 / (96 * 95), 1.0])
    strict = saturation(TRIPLES, "separator", [1], BOOT, threshold=2.0)
    assert strict.share.point[0] == 0.0  # above, not at, the threshold
    assert saturation(TRIPLES, "exact", [1], BOOT).share.point[0] == 0.0  # 0.9 is not above 0.9


def test_support_preference() -> None:
    on = np.tile([True, True, False, False], (len(TRIPLES), 1))
    near, off = on.astype(np.float64), 1.0 - on
    for scores, rates in (
        (off, [0.5, 1 - 1 / 6, 1.0]),  # of two, both on support: 1 of 6 pairs
        (near, [0.5, 1 / 6, 0.0]),
        (np.zeros(on.shape), [0.5, 0.5, 0.5]),
    ):
        result = support_preference(scores, on, [1, 2, 3], BOOT)
        certain(result.rate, rates)
        certain(result.base, [0.5])
        certain(result.excess, np.array(rates) - 0.5)
    broken = off.copy()
    broken[0, 0] = np.nan
    assert np.isnan(support_preference(broken, on, [2], BOOT).excess.point).all()


def test_the_base_rate_is_the_pools_own() -> None:
    on = np.tile([True, True, True, False], (len(TRIPLES), 1))
    result = support_preference(np.zeros(on.shape), on, [1, 4], BOOT)
    certain(result.base, [0.25])
    certain(result.excess, [0.0, 0.0])


def test_what_does_not_fit_is_refused_in_one_sentence() -> None:
    scores, on = np.zeros((len(TRIPLES), 4)), np.zeros((len(TRIPLES), 4), dtype=bool)
    with pytest.raises(InputError, match="one shape"):
        support_preference(scores[:, :3], on, [1], BOOT)
    with pytest.raises(InputError, match="booleans"):
        support_preference(scores, scores, [1], BOOT)
    with pytest.raises(InputError, match="for 96 queries"):
        support_preference(scores[:5], on[:5], [1], BOOT)
    for k in ([], [0], [5]):
        with pytest.raises(InputError, match="between 1 and 4"):
            support_preference(scores, on, k, BOOT)
    for k in ([], [0], [97]):
        with pytest.raises(InputError, match="between 1 and 96"):
            cross_query(TRIPLES, "exact", k, BOOT)
        with pytest.raises(InputError, match="between 1 and 96"):
            saturation(TRIPLES, "exact", k, BOOT)
    for at in (0, 4):
        with pytest.raises(InputError, match=f"recall@{at} needs k between 1 and 3"):
            recall(TRIPLES, "exact", at, BOOT)
    broken = np.zeros(96)
    broken[3] = np.inf
    for pair in ((broken, np.zeros(96)), (np.zeros(96), -broken), (np.zeros(95), np.zeros(96))):
        with pytest.raises(InputError, match="must be finite numbers, one for each of the 96"):
            pooled_selection(*pair, [1], BOOT)
    with pytest.raises(InputError, match=r"have shape \(\), expected one for each of 96"):
        centered_ordering(TRIPLES, "exact", 0.0, BOOT)
    with pytest.raises(InputError, match="made for other triples"):
        ordering(TRIPLES, "exact", resampled(scored(13)))
    with pytest.raises(InputError, match="no 'mine' among the hard negatives; stored are: exact"):
        TRIPLES.column("hard_negatives", "mine")


def test_quartiles_are_quarters_of_the_triples() -> None:
    index = np.arange(32)  # distances 1..32, each once
    triples = ScoredTriples(
        index * 100, index * 100 + index + 1, index, GAMMA, {"far": index.astype(np.float64)}
    )
    pools = within_quartiles(triples, "far", [8], resampled(triples))
    np.testing.assert_allclose(pools.oracle.point, [np.mean(GAMMA ** np.array([1, 9, 17, 25.0]))])
    np.testing.assert_allclose(pools.value.point, [np.mean(GAMMA ** np.array([8, 16, 24, 32.0]))])


def test_a_profile_is_not_divided_by_rounding() -> None:
    # Nearest and random goals have the same mean score, 0.4, which sums only reach to rounding.
    level = np.arange(len(TRIPLES)) % 8 // 4
    scores = {"level": np.where(level == 1, 0.6, 0.2)}
    negatives = {"level": np.tile([0.3, 0.4, 0.5], (len(TRIPLES), 1))}
    same = replace(TRIPLES, scores=scores, negatives=negatives)
    certain(distance_profile(same, "level", BOOT, [1, 2, 5]), [NAN, NAN])
