"""What selectors are worth at each query, against their weights and against drawn pools."""

from __future__ import annotations

import numpy as np
import pytest

from tests.select.cases import KINDS
from toptail.pools import ScoredPools
from toptail.select import measure
from toptail.select.base import ScoreRule, Selector
from toptail.select.inputs import SelectorInputs
from toptail.select.measure import SelectorValues, measure_all
from toptail.select.selectors import Best, RandomPick, Soft

KS = (1, 2, 3, 6)


def options(queries: int = 12, small: bool = True) -> tuple[SelectorInputs, np.ndarray]:
    """Pools of two sizes with ties, answers and some scores of -inf."""
    rng = np.random.default_rng(2)
    size = np.where(np.arange(queries) % 3, 6, 8) if small else np.full(queries, 8)
    scores = {name: rng.normal(0.4, 0.8, (queries, 8)).round(1) for name in "abc"}
    scores["a"][rng.random((queries, 8)) < 0.1] = -np.inf
    value = rng.normal(size=(queries, 8))
    pools = ScoredPools.from_arrays(scores, value, size=size)
    return SelectorInputs(pools, {}, rng.integers(4, size=pools.rows)), pools.values["value"]


def expected(selector: Selector, offered: SelectorInputs, value: np.ndarray, k: int) -> np.ndarray:
    """Values by the weights of a pool, which the battery holds against a slow version."""
    result = np.empty(offered.pools.queries)
    for block in offered.pools.blocks():
        pool, worth = offered.pool(block), block.take(value)
        weights = selector.at(pool, k, np.random.default_rng(0))
        result[block.queries] = (weights * worth).sum(axis=1)
    return result


def tried(
    selectors: list[Selector], **how: float
) -> tuple[SelectorValues, SelectorInputs, np.ndarray]:
    offered, value = options()
    how = {"seed": 0, "scale": 1.0} | how
    return measure_all(offered, value, [RandomPick(), *selectors], KS, **how), offered, value  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [n for n, kind in KINDS.items() if kind.selector.exact])
def test_closed_forms_are_the_values_of_their_weights(name: str) -> None:
    found, offered, value = tried([KINDS[name].selector] if name != "random" else [])
    for at, each in enumerate(found.selectors):
        np.testing.assert_allclose(found.value[:, at], expected(each, offered, value, each.k))
    assert found.draws == 0
    assert (found.error == 0).all()


@pytest.mark.parametrize("name", [n for n, kind in KINDS.items() if not kind.selector.exact])
def test_drawn_values_are_right_within_their_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "FIRST_DRAWS", 400)
    found, offered, value = tried([KINDS[name].selector], scale=1e9)
    assert found.draws == 400
    for at, each in enumerate(found.selectors[1:], start=1):
        truth = expected(each, offered, value, each.k)
        assert abs(found.value[:, at].mean() - truth.mean()) < 4 * found.error[at] + 1e-12
        np.testing.assert_allclose(found.value[:, at], truth, atol=0.35)


def test_draws_go_on_until_the_error_is_small_or_enough_were_made() -> None:
    soft = Soft(score=ScoreRule.of("b"), beta=1.0)
    coarse, _, _ = tried([soft], scale=1e9)
    fine, _, _ = tried([soft], scale=1e-9)
    assert coarse.draws == measure.FIRST_DRAWS
    assert fine.draws == measure.MOST_DRAWS
    assert fine.error[1:].max() < coarse.error[1:].max()


def test_a_sample_of_queries_is_unbiased_and_keeps_to_what_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a = ScoreRule.of("a")
    selectors: list[Selector] = [Best(score=a), Soft(score=a, beta=2.0)]
    offered, value = options(600, small=False)
    how = {"seed": 0, "scale": 1e9}
    everything = measure_all(offered, value, [RandomPick(), *selectors], KS, **how)  # type: ignore[arg-type]
    means = []
    for seed in range(20):
        monkeypatch.setattr(measure, "MONTE_CARLO_ROWS", 800)
        how["seed"] = seed
        some = measure_all(offered, value, [RandomPick(), *selectors], KS, **how)  # type: ignore[arg-type]
        assert some.sampled == 100
        np.testing.assert_array_equal(some.value[:, :4], everything.value[:, :4])
        means.append(some.value[:, 4:].mean(axis=0))
    spread = np.std(means, axis=0) / np.sqrt(20)
    gap = np.mean(means, axis=0) - everything.value[:, 4:].mean(axis=0)
    assert (np.abs(gap) < 4 * spread + 0.005).all()


def test_the_same_seed_gives_the_same_to_the_last_bit() -> None:
    soft = Soft(score=ScoreRule.of("b"), beta=1.0)
    first, second, other = (tried([soft], seed=seed)[0].value for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
