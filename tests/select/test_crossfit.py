"""Choosing on some clusters and valuing on others: by hand, and against a slow version."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.select.crossfit import Contest, Means, Procedure, cross_fit, errors_to_show, merged

ALL = Procedure((0, 1, 2))


def contest(sums: np.ndarray, rank: tuple[int, ...] = (0, 1, 2)) -> Contest:
    clusters = sums.shape[0]
    return Contest(sums, np.ones(clusters), np.ones(clusters), np.array(rank))


def noise(clusters: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(clusters, columns))


def test_a_clear_winner_is_chosen_everywhere_and_valued_at_its_mean() -> None:
    sums = noise(40, 3) * 0.01 + [0.0, 1.0, 0.5]
    found = cross_fit(contest(sums), {"all": ALL}, np.random.default_rng(0))
    assert found.final["all"] == 1
    assert found.picked["all"] == pytest.approx({1: 1.0})
    np.testing.assert_allclose(found.value, sums[:, 1].mean())


def test_no_query_is_valued_with_what_it_chose() -> None:
    """Each column is good at one half of the clusters: who looks there chooses it."""
    sums = np.zeros((2, 3))
    sums[0, 1], sums[1, 2] = 10.0, 10.0
    found = cross_fit(contest(sums), {"all": ALL}, np.random.default_rng(0), folds=2)
    np.testing.assert_allclose(found.value, 0.0)
    assert (sums.mean(axis=0)).max() == 5.0


def test_it_is_its_slow_version() -> None:
    sums, counts = noise(23, 4, 1), np.random.default_rng(2).integers(1, 4, 23).astype(float)
    data = Contest(sums, counts, np.ones(23), np.arange(4))
    found = cross_fit(
        data, {"all": Procedure((0, 1, 2, 3))}, np.random.default_rng(7), folds=4, repeats=3
    )
    rng, total = np.random.default_rng(7), 0.0
    for _ in range(3):
        fold = rng.permutation(np.arange(23) % 4)
        for each in range(4):
            train = [i for i in range(23) if fold[i] != each]
            means = [sum(sums[i, c] for i in train) for c in range(4)]
            best = means.index(max(means))
            total += sum(sums[i, best] for i in range(23) if fold[i] == each)
    np.testing.assert_allclose(found.value, total / 3 / counts.sum())


def test_of_equally_good_selectors_the_naive_value_is_too_high_and_the_honest_one_is_not() -> None:
    naive, honest = [], []
    for seed in range(60):
        sums = noise(50, 20, seed)
        data = Contest(sums, np.ones(50), np.ones(50), np.arange(20))
        how = {"all": Procedure(tuple(range(20)))}
        honest.append(cross_fit(data, how, np.random.default_rng(seed), repeats=3).value[0])
        naive.append(sums.mean(axis=0).max())
    assert np.mean(naive) > 0.2
    assert abs(np.mean(honest)) < 4 * np.std(honest) / np.sqrt(60)


def test_what_is_not_shown_to_be_better_is_not_chosen() -> None:
    how = Procedure((0, 1, 2), keeps=(1,), shown=3.0, margin=0.0)
    use = np.arange(100)
    unit = noise(100, 3) - noise(100, 3).mean(axis=0)
    assert contest(unit + np.array([0.0, 0.1, 0.2])).choose(how, use) == 0  # two standard errors
    assert contest(unit * 0.1 + [0.0, 1.0, 1.01]).choose(how, use) == 1
    assert contest(unit * 0.1 + [0.0, 1.0, 1.2]).choose(how, use) == 2


def test_the_simpler_one_wins_within_the_margin_and_the_better_of_equally_simple_ones() -> None:
    sums = noise(100, 4) * 1e-6 + [0.0, 0.95, 0.96, 1.0]
    use = np.arange(100)
    for margin, expected in ((0.0, 3), (0.045, 2), (0.06, 2)):
        how = Procedure((0, 1, 2, 3), keeps=(1,), margin=margin)
        data = Contest(sums, np.ones(100), np.ones(100), np.array([0, 1, 1, 2]))
        assert data.choose(how, use) == expected


def test_constants_choose_the_first_and_have_no_interval() -> None:
    data = contest(np.ones((20, 3)))
    found = cross_fit(data, {"all": ALL}, np.random.default_rng(0))
    assert found.final["all"] == 0
    means = Means.of(
        data, found, {"all": ALL}, np.random.default_rng(0), folds=5, resamples=100, level=0.95
    )
    ends = means.interval("all")
    assert ends["low"] == pytest.approx(1.0)
    assert ends["high"] == pytest.approx(1.0)
    assert means.differences([("oracle", "all")])[0]["low"] == pytest.approx(1.0)


def test_where_the_choice_is_clear_the_interval_is_the_plain_one() -> None:
    sums = noise(200, 3) + np.array([0.0, 20.0, 0.0])
    data, how = contest(sums), {"all": ALL}
    rng = np.random.default_rng(0)
    found = cross_fit(data, how, rng)
    means = Means.of(data, found, how, rng, folds=5, resamples=600, level=0.95)
    ends = means.interval("all")
    half = 1.97 * sums[:, 1].std(ddof=1) / np.sqrt(200)
    assert (ends["high"] - ends["low"]) / 2 == pytest.approx(half, rel=0.1)


def test_joined_clusters_keep_every_sum() -> None:
    data = Contest(noise(50, 3), np.full(50, 2.0), np.ones(50), np.arange(3))
    small = merged(data, np.random.default_rng(0), most=7)
    assert small.counts.size == 7
    np.testing.assert_allclose(small.sums.sum(axis=0), data.sums.sum(axis=0))
    assert small.counts.sum() == 100
    assert merged(data, np.random.default_rng(0), most=50) is data


def test_more_families_need_more_to_be_shown() -> None:
    assert errors_to_show(0.95, 1) == pytest.approx(1.96, abs=0.001)
    assert errors_to_show(0.95, 50) > 3.2
