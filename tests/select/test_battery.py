"""Every selector passes one battery, and agrees with its slow version over all K-subsets."""

from __future__ import annotations

from inspect import isabstract

import numpy as np
import pytest

from tests.select.cases import KINDS, Kind
from tests.select.slow import over_subsets
from toptail.errors import InputError
from toptail.select import base, selectors
from toptail.select import catalog as kinds
from toptail.select.base import Pool, ScoreRule, Selector
from toptail.select.selectors import Best, Chi2, RandomPick, Soft, WeightedVote

N = 6


def pools(name: str) -> Pool:
    """Twenty pools of six: numbers, coarse numbers with ties, or some scores of -inf."""
    rng = np.random.default_rng(5)
    columns = {c: rng.normal(0.4, 0.8, (20, N)) for c in "abc"}
    if name == "tied":
        columns = {c: np.round(x) for c, x in columns.items()}
    if name == "ruled out":
        for column in columns.values():
            column[rng.random(column.shape) < 0.4] = -np.inf
        columns["a"][0] = -np.inf
    return Pool(columns, rng.integers(3, size=(20, N)))


def slow_weights(kind: Kind, pool: Pool, k: int) -> np.ndarray:
    rows = []
    for at in range(pool.shape[0]):
        assert pool.answer is not None
        columns = {name: column[at].tolist() for name, column in pool.columns.items()}
        rows.append(over_subsets(kind.slow, {**columns, "answer": pool.answer[at].tolist()}, k))
    return np.array(rows)


def weights(selector: Selector, pool: Pool, k: int) -> np.ndarray:
    return selector.at(pool, k, np.random.default_rng(0))


def test_every_kind_is_in_the_battery() -> None:
    own = [each for each in vars(selectors).values() if isinstance(each, type)]
    found = {e for e in own if issubclass(e, Selector) and e.__module__ == selectors.__name__}
    concrete = {each for each in found if not isabstract(each)}
    assert {type(kind.selector) for kind in KINDS.values()} == concrete
    assert set(kinds.KINDS.values()) <= concrete


@pytest.mark.parametrize("k", [1, 2, 3, 5, N])
@pytest.mark.parametrize("data", ["numbers", "tied", "ruled out"])
@pytest.mark.parametrize("name", KINDS)
def test_it_is_its_slow_version_over_all_subsets(name: str, data: str, k: int) -> None:
    kind, pool = KINDS[name], pools(data)
    expected = slow_weights(kind, pool, k)
    np.testing.assert_allclose(weights(kind.selector, pool, k), expected, atol=1e-9)


@pytest.mark.parametrize("name", [n for n, k in KINDS.items() if not k.selector.exact])
def test_drawn_subsets_are_close_to_all(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, pool = KINDS[name], pools("tied")
    expected = slow_weights(kind, pool, 3)
    for draws, close in ((19, 0.08), (2000, 0.01)):
        monkeypatch.setattr(base, "DRAWS", draws)
        monkeypatch.setattr(base, "comb", lambda *_: 10**9)
        error = np.abs(weights(kind.selector, pool, 3) - expected).mean()
        assert 0 < error < close


@pytest.mark.parametrize("name", KINDS)
def test_of_one_candidate_it_is_random(name: str) -> None:
    kind, pool = KINDS[name], pools("numbers")
    found = weights(kind.selector, pool, 1)
    if kind.selector.abstains:
        np.testing.assert_allclose(found[pool.columns["a"] >= 0.5], 1 / N)
    else:
        np.testing.assert_allclose(found, 1 / N)


@pytest.mark.parametrize("name", KINDS)
def test_weights_are_chances(name: str) -> None:
    for data in ("numbers", "tied", "ruled out"):
        for k in (1, 4, N):
            found = weights(KINDS[name].selector, pools(data), k)
            assert (found >= 0).all()
            sums = found.sum(axis=1)
            if KINDS[name].selector.abstains:
                assert (sums <= 1 + 1e-12).all()
                assert (sums < 0.999).any()
            else:
                np.testing.assert_allclose(sums, 1)


@pytest.mark.parametrize("name", KINDS)
def test_constant_scores_give_every_candidate_the_same(name: str) -> None:
    pool = Pool({c: np.full((3, N), 0.7) for c in "abc"}, np.zeros((3, N), dtype=np.int64))
    for k in (1, N):
        found = weights(KINDS[name].selector, pool, k)
        np.testing.assert_allclose(found, 1 / N)


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    pool = pools("tied")
    moved = np.tile(np.random.default_rng(1).permutation(N), (20, 1))
    found = weights(KINDS[name].selector, pool.at(moved), N)
    expected = np.take_along_axis(weights(KINDS[name].selector, pool, N), moved, axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", KINDS)
def test_an_increasing_map_changes_nothing_where_that_is_promised(name: str) -> None:
    pool = pools("numbers")
    mapped = Pool({c: np.exp(3 * x) for c, x in pool.columns.items()}, pool.answer)
    same = all(
        np.allclose(
            weights(KINDS[name].selector, pool, k), weights(KINDS[name].selector, mapped, k)
        )
        for k in (2, 4, N)
    )
    assert same == KINDS[name].monotone


@pytest.mark.parametrize("name", KINDS)
def test_it_is_stored_and_read_again(name: str) -> None:
    selector = KINDS[name].selector.with_k(4)
    content = selector.to_dict()
    function = getattr(selector, "function", None)
    again = kinds.selector_of(content, "memory", function)
    assert again == selector
    assert content["k"] == 4


def test_soft_and_chi2_lead_from_random_to_best() -> None:
    pool, a = pools("numbers"), ScoreRule.of("a")
    best = weights(Best(score=a), pool, N)
    for cold, hot in (
        (Soft(score=a, beta=1e4), Soft(score=a, beta=0.0)),
        (Chi2(score=a, beta=1e-9), Chi2(score=a, beta=1e6)),
    ):
        np.testing.assert_allclose(weights(cold, pool, N), best, atol=1e-6)
        np.testing.assert_allclose(weights(hot, pool, N), 1 / N, atol=1e-5)


def test_a_weighted_vote_without_beta_adds_up_scores_and_refuses_negative_ones() -> None:
    vote = WeightedVote(score=ScoreRule.of("a"), k=4)
    answers = ["x", "x", "y", "z"]
    found = vote.weights({"a": [0.3, 0.3, 0.5, 0.1], "answer": answers})
    np.testing.assert_allclose(found, [0.5, 0.5, 0, 0])
    with pytest.raises(InputError, match="negative"):
        vote.weights({"a": [0.3, 0.3, -0.5, 0.1], "answer": answers})


def test_joining_scores_is_more_than_one_score() -> None:
    a = ScoreRule.of("a")
    every = ScoreRule("abc", ("a", "b", "c"), "mean")
    assert RandomPick().total_complexity < Best(score=a).total_complexity
    assert Best(score=a).total_complexity < Best(score=every).total_complexity
