"""Every diagnostic on critics whose result is known without a computer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from paper.tests.triples.world import GAMMA, NEGATIVES, resampled, scored
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
MEAN = np.full(4, DISTANCES.mean())


def certain(estimate: Estimate, value: float | list[float] | np.ndarray) -> None:
    """The trajectories are all alike, so that every resample must show the value itself."""
    np.testing.assert_allclose(estimate.point, value, atol=1e-12)
    expected = np.broadcast_to(value, estimate.draws.shape)
    np.testing.assert_allclose(estimate.draws, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("critic", "tau", "auc", "recall_1", "nearer", "rmse", "std", "bins"),
    [
        ("exact", 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, DISTANCES[::-1]),
        ("steps", 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, DISTANCES[::-1]),
        ("opposite", -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, DISTANCES),
        ("constant", NAN, 0.5, 1 / (NEGATIVES + 1), 0.5, NAN, NAN, MEAN),
        # f is 1 or 2 and δ = (1 - γ) f: RMSE sqrt(2.5)(1 - γ), std(f) = 1/2.
        ("separator", 0.0, 1.0, 1.0, 0.5, (1 - GAMMA) * np.sqrt(2.5) / 0.5, 1 - GAMMA, MEAN),
    ],
)
def test_every_diagnostic_of(
    critic: str,
    tau: float,
    auc: float,
    recall_1: float,
    nearer: float,
    rmse: float,
    std: float,
    bins: np.ndarray,
) -> None:
    certain(ordering(TRIPLES, critic, BOOT), tau)
    certain(retrieval_auc(TRIPLES, critic, BOOT), auc)
    certain(hard_negative_win_rate(TRIPLES, critic, BOOT), auc)
    certain(recall(TRIPLES, critic, 1, BOOT), recall_1)
    certain(recall(TRIPLES, critic, 2, BOOT), min(1.0, 2 * recall_1))
    certain(nearer_goal_win_rate(TRIPLES, critic, BOOT), nearer)
    certain(same_trajectory_win_rate(TRIPLES, critic, BOOT), 0.5)  # a coin toss for every critic
    bellman = bellman_consistency(TRIPLES, critic, BOOT)
    certain(bellman.rmse, rmse)
    certain(bellman.std, std)
    calibrated = calibration(TRIPLES, critic, BOOT, bins=4)
    certain(calibrated, bins)
    certain(calibration_gap(calibrated), bins[-1] - bins[0])
    assert calibration(TRIPLES, critic, BOOT).point.shape == (10,)
    quartiles = within_quartiles(TRIPLES, critic, K, BOOT)  # each has one distance
    certain(quartiles.value, DISTANCES.mean())
    certain(quartiles.regret, 0.0)
    assert np.isnan(quartiles.normalized.point).all()  # no headroom


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


def test_scores_against_distance() -> None:
    edges = [1, 2, 4, 5, 7]  # d = 1; 2 and 3; 4; nothing
    value = [1.0, (GAMMA**2 + GAMMA**3) / (2 * GAMMA), GAMMA**3, NAN]
    certain(distance_profile(TRIPLES, "exact", BOOT, edges), value)
    certain(distance_profile(TRIPLES, "separator", BOOT, edges), [1.0, 1.0, 1.0, NAN])
    # The offset of -1/0 values cancels: the same profile as that of γ^d.
    certain(distance_profile(TRIPLES, "steps", BOOT, edges), value)
    for critic in ("opposite", "constant"):  # nearest goals are not above random ones
        certain(distance_profile(TRIPLES, critic, BOOT, edges), [NAN] * 4)


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
    right, wrong, blind = (
        cross_query(TRIPLES, critic, K, BOOT) for critic in ("exact", "opposite", "separator")
    )
    np.testing.assert_allclose(right.normalized.point, [NAN, 0.0, 0.0], atol=1e-12)
    assert (wrong.normalized.point[1:] > 1.0).all()
    certain(blind.value, DISTANCES.mean())  # no order, so that search picks at random
    np.testing.assert_allclose(blind.normalized.draws[:, 1:], 1.0)


def test_another_judge_takes_the_place_of_the_proxy() -> None:
    same = cross_query(TRIPLES, "exact", K, BOOT, judge="same")
    np.testing.assert_allclose(same.normalized.point, [NAN, 0.0, 0.0], atol=1e-12)
    against = cross_query(TRIPLES, "exact", K, BOOT, judge="opposite")
    np.testing.assert_allclose(against.random.point, -DISTANCES.mean())
    assert (against.normalized.point[1:] > 1.0).all()
    certain(agreement(TRIPLES, "same", BOOT), 1.0)
    certain(agreement(TRIPLES, "opposite", BOOT), -1.0)


def test_saturation_counts_what_is_above_the_threshold() -> None:
    strict = saturation(TRIPLES, "separator", [1], BOOT, threshold=2.0)
    assert strict.share.point[0] == 0.0
    assert saturation(TRIPLES, "exact", [1], BOOT).share.point[0] == 0.0  # 0.9 is not above 0.9


def test_support_preference() -> None:
    on = np.tile([True, True, False, False], (len(TRIPLES), 1))
    off = 1.0 - on
    for scores, rates in ((off, [0.5, 1 - 1 / 6, 1.0]), (-off, [0.5, 1 / 6, 0.0])):
        certain(support_preference(scores, on, [1, 2, 3], BOOT).rate, rates)
    off[0, 0] = np.nan
    assert np.isnan(support_preference(off, on, [2], BOOT).excess.point).all()


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
    with pytest.raises(InputError, match="between 1 and 24"):
        within_quartiles(TRIPLES, "exact", [25], BOOT)
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
