"""The rule of choice, cross-fitting and resampled choices: by hand, and against slow versions."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.select.crossfit import (
    NOTHING,
    ORACLE,
    ClusterSums,
    ResampledChoices,
    SelectionRule,
    cross_fit,
    errors_to_show,
)

ALL = SelectionRule((0, 1, 2))
RULE = SelectionRule((0, 1, 2), keeps=(1,), shown=3.0)
"""Random, plain, another one."""


def contest(sums: np.ndarray, rank: tuple[int, ...] = (0, 1, 2)) -> ClusterSums:
    clusters = sums.shape[0]
    return ClusterSums(sums, np.ones(clusters), np.ones(clusters), np.array(rank))


def noise(clusters: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(clusters, columns))


def unit(columns: int = 3) -> np.ndarray:
    """Independent columns of 100 clusters with mean 0 and a standard error of 0.1."""
    drawn = noise(100, columns)
    return np.asarray((drawn - drawn.mean(axis=0)) / drawn.std(axis=0, ddof=1))


def resampled(
    data: ClusterSums, how: dict[str, SelectionRule], resamples: int = 400
) -> ResampledChoices:
    return ResampledChoices.of(data, how, np.random.default_rng(0), resamples=resamples, level=0.95)


# ------------------------------------------------------------------------------ the rule


def test_what_is_not_shown_to_be_better_is_not_chosen() -> None:
    assert contest(unit() + np.array([0.0, 0.1, 0.2])).choose(RULE) == 0  # 1.4 standard errors
    assert contest(unit() * 0.1 + [0.0, 1.0, 1.01]).choose(RULE) == 1
    assert contest(unit() * 0.1 + [0.0, 1.0, 1.2]).choose(RULE) == 2


def test_plain_is_kept_only_where_it_is_itself_shown_to_beat_a_random_pick() -> None:
    """The third beats random; whether it beats plain is not shown, and plain is below random."""
    sums = unit() * [0.1, 1.0, 0.1] + [0.0, -0.05, 0.1]
    assert contest(sums).choose(RULE) == 2
    wide = SelectionRule(
        (0, 1, 2), keeps=(1,), shown=3.0, margin=0.5
    )  # random is within the margin
    assert contest(sums).choose(wide) == 2


def test_one_that_is_shown_to_beat_plain_wins_over_a_higher_mean_that_is_not() -> None:
    how = SelectionRule((0, 1, 2, 3), keeps=(1,), shown=3.0)
    sums = unit(4) * [0.1, 0.1, 0.1, 3.0] + [0.0, 1.0, 1.2, 1.5]
    assert contest(sums, (0, 1, 2, 2)).choose(how) == 2


def test_some_other_selector_is_chosen_where_the_highest_mean_is_not_shown_to_beat_random() -> None:
    sums = unit() * [0.1, 0.1, 9.0] + [0.0, 0.3, 0.4]
    assert contest(sums).choose(RULE) == 1


def test_the_simpler_one_wins_within_the_margin_and_the_better_of_equally_simple_ones() -> None:
    sums = unit(4) * 0.1 + [0.0, 0.95, 0.96, 1.0]
    for margin, expected in ((0.0, 3), (0.045, 2), (0.06, 2)):
        how = SelectionRule((0, 1, 2, 3), keeps=(), margin=margin)
        assert contest(sums, (0, 1, 1, 2)).choose(how) == 3  # without a rule the highest
        how = SelectionRule((0, 1, 2, 3), keeps=(1,), shown=4.0, margin=margin)
        lower = sums - [0, 0.5, 0, 0]
        assert contest(lower, (0, 1, 1, 2)).choose(how) == expected


def test_the_margin_never_leads_to_what_the_winner_is_shown_to_beat() -> None:
    """Plain with fewer candidates is within the margin, and surely worse."""
    sums = unit() * 0.01 + [0.0, 1.0, 0.98]
    how = SelectionRule((0, 1, 2), keeps=(1,), shown=3.0, margin=0.05)
    assert contest(sums, (0, 2, 1)).choose(how) == 1
    close = unit() * 0.1 + [0.0, 1.0, 0.98]
    assert contest(close, (0, 2, 1)).choose(how) == 2


def test_standard_errors_are_those_of_paired_differences() -> None:
    sums, counts = noise(23, 4, 1), np.random.default_rng(2).integers(1, 4, 23).astype(float)
    data = ClusterSums(sums, counts, np.ones(23), np.arange(4))
    for other in range(4):
        for at in range(4):
            lead = sums[:, at] - sums[:, other]
            apart = lead - counts * lead.sum() / counts.sum()
            expected = np.sqrt(23 * apart.var(ddof=1) * 22 / 22) / counts.sum()
            assert data.errors(other)[at] == pytest.approx(expected, rel=0.01, abs=1e-12)


def test_more_selectors_need_more_to_be_shown_and_few_clusters_more_still() -> None:
    def needed(columns: int, clusters: int) -> float:
        data = contest(noise(clusters, columns), tuple(range(columns)))
        how = SelectionRule(tuple(range(columns)), keeps=(1,))
        rng = np.random.default_rng(0)
        return errors_to_show(data, how, rng, resamples=4_000, level=0.95)

    assert needed(2, 400) == pytest.approx(2.24, abs=0.12)  # one difference, both ways round
    assert needed(40, 400) > needed(2, 400) + 0.8
    assert needed(40, 20) > needed(40, 400) + 0.3


# -------------------------------------------------------------------------- cross-fitting


def test_a_clear_winner_is_valued_at_its_mean() -> None:
    sums = noise(40, 3) * 0.01 + [0.0, 1.0, 0.5]
    found = cross_fit(contest(sums), ALL, np.random.default_rng(0), folds=5, repeats=10)
    assert found == pytest.approx(sums[:, 1].mean())


def test_no_query_is_valued_with_what_it_chose() -> None:
    """Each column is good at one half of the clusters: who looks there chooses it."""
    sums = np.zeros((2, 3))
    sums[0, 1], sums[1, 2] = 10.0, 10.0
    assert cross_fit(contest(sums), ALL, np.random.default_rng(0), folds=2, repeats=10) == 0.0
    assert (sums.mean(axis=0)).max() == 5.0


def test_it_is_its_slow_version() -> None:
    sums, counts = noise(23, 4, 1), np.random.default_rng(2).integers(1, 4, 23).astype(float)
    data = ClusterSums(sums, counts, np.ones(23), np.arange(4))
    how = SelectionRule((0, 1, 2, 3))
    found = cross_fit(data, how, np.random.default_rng(7), folds=4, repeats=3)
    rng, total = np.random.default_rng(7), 0.0
    for _ in range(3):
        fold = rng.permutation(np.arange(23) % 4)
        for each in range(4):
            train = [i for i in range(23) if fold[i] != each]
            means = [sum(sums[i, c] for i in train) for c in range(4)]
            best = means.index(max(means))
            total += sum(sums[i, best] for i in range(23) if fold[i] == each)
    assert found == pytest.approx(total / 3 / counts.sum())


def test_of_equally_good_selectors_the_naive_value_is_too_high_and_the_others_are_not() -> None:
    naive, fitted, corrected = [], [], []
    how = SelectionRule(tuple(range(20)))
    for seed in range(60):
        sums = noise(50, 20, seed)
        data = ClusterSums(sums, np.ones(50), np.ones(50), np.arange(20))
        fitted.append(cross_fit(data, how, np.random.default_rng(seed), folds=5, repeats=3))
        corrected.append(resampled(data, {"all": how}, 100).lead("all", NOTHING)["value"])
        naive.append(sums.mean(axis=0).max())
    assert np.mean(naive) > 0.2
    assert abs(np.mean(fitted)) < 4 * np.std(fitted) / np.sqrt(60)
    assert abs(np.mean(corrected)) < np.mean(naive) / 2


# ------------------------------------------------------------------------------ intervals


def test_constants_choose_the_first_and_have_no_interval() -> None:
    found = resampled(contest(np.ones((20, 3))), {"all": ALL}, 100)
    assert found.final["all"] == 0
    assert set(found.lead("all", NOTHING).values()) == {1.0}
    assert found.lead(ORACLE, "all")["low"] == pytest.approx(1.0)


def test_of_one_selector_the_interval_is_the_plain_one_and_of_many_it_is_wider() -> None:
    sums = noise(200, 12) + np.where(np.arange(12) == 1, 20.0, 0.0)
    data = contest(sums, tuple(range(12)))
    error = sums[:, 1].std(ddof=1) / np.sqrt(200)
    for among, errors in (((1,), 1.97), (tuple(range(12)), 2.87)):  # 2.87: 12 independent ones
        found = resampled(data, {"all": SelectionRule(among)}, 2_000)
        assert found.share("all") == {1: 1.0}
        ends = found.lead("all", NOTHING)
        assert ends["value"] == pytest.approx(sums[:, 1].mean())
        assert (ends["high"] - ends["low"]) / 2 == pytest.approx(errors * error, rel=0.06)


def test_where_the_choice_is_a_toss_up_the_value_is_lower_than_the_mean() -> None:
    sums = unit(12) + 0.001 * np.arange(12)
    data = ClusterSums(sums, np.ones(100), np.ones(100), np.arange(12))
    found = resampled(data, {"all": SelectionRule(tuple(range(12)))}, 1_000)
    assert len(found.share("all")) == 12
    assert sum(found.share("all").values()) == pytest.approx(1.0)
    ends, best = found.lead("all", NOTHING), sums.mean(axis=0).max()
    assert ends["low"] < ends["value"] < best - 0.05
    assert found.lead("all", NOTHING, corrected=False) == {**ends, "value": pytest.approx(best)}


@pytest.mark.slow
def test_ends_hold_for_every_selector_together() -> None:
    """Twenty columns with mean 0: how often one of the intervals misses it."""
    how = {str(at): SelectionRule((at,)) for at in range(20)} | {
        "all": SelectionRule(tuple(range(20)))
    }
    missed = 0
    for seed in range(200):
        found = resampled(contest(noise(60, 20, seed), tuple(range(20))), how, 200)
        ends = [found.lead(str(at), NOTHING) for at in range(20)]
        missed += any(each["low"] > 0 or each["high"] < 0 for each in ends)
    assert missed / 200 <= 0.09


def test_a_selector_gains_nothing_over_itself() -> None:
    found = resampled(contest(noise(60, 3)), {"all": ALL, "plain": SelectionRule((1,))})
    assert found.lead("plain", "plain") == {"value": 0.0, "low": 0.0, "high": 0.0}


def test_what_is_not_known_is_not_a_number_and_leaves_the_others_alone() -> None:
    data = ClusterSums(noise(30, 3), np.ones(30), np.full(30, np.nan), np.arange(3))
    found = resampled(data, {"all": ALL})
    assert np.isnan(list(found.lead("all", ORACLE).values())).all()
    assert np.isfinite(list(found.lead("all", NOTHING).values())).all()


def test_joined_clusters_keep_every_sum() -> None:
    data = ClusterSums(noise(50, 3), np.full(50, 2.0), np.ones(50), np.arange(3))
    small = data.merged(np.random.default_rng(0), most=7)
    assert small.counts.size == 7
    np.testing.assert_allclose(small.sums.sum(axis=0), data.sums.sum(axis=0))
    assert small.counts.sum() == 100
    assert data.merged(np.random.default_rng(0), most=50) is data
