"""The value of every selector at each query: one pass for closed forms, draws for the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.pools import Block, ScoredPools
from toptail.pools.scored import BLOCK
from toptail.progress import Tick, no_tick
from toptail.select.base import Pool, RankSelector, Selector, SetSelector, ordered, rank_weights
from toptail.select.inputs import SelectorInputs
from toptail.select.selectors import Best, Soft, Threshold
from toptail.stats.best_of_k import Floats, Ints, selection_weights
from toptail.stats.resample import available_threads

MONTE_CARLO_ROWS: Final = 1 << 18
"""Selectors without a closed form are measured on queries with about this many candidates."""
FIRST_DRAWS: Final = 16
MOST_DRAWS: Final = 256
TOLERANCE: Final = 0.005
"""Draws go on until the standard error that they leave is below this share of the headroom."""


@dataclass(frozen=True, eq=False)
class SelectorValues:
    """The value of selectors, each with its parameters and K, at each query."""

    selectors: list[Selector]
    """C of them, the random pick first."""
    value: Floats
    """``[Q, C]``; where a selector was measured on some queries only, unbiased for the mean."""
    error: Floats
    """Standard error of the mean that is due to draws ``[C]``; 0 for closed forms."""
    coverage: Floats
    """Share of queries that get an answer ``[C]``."""
    draws: int = 0
    """Subsets drawn at each query for selectors without a closed form."""
    sampled: int = 0
    """The number of queries at which those were measured."""


def measure_all(
    inputs: SelectorInputs,
    value: Floats,
    selectors: Sequence[Selector],
    ks: Sequence[int],
    *,
    seed: int,
    scale: float,
    abstain: float = 0.0,
    tick: Tick = no_tick,
) -> SelectorValues:
    """Measure every selector at every K above 1; all are the random pick at K = 1.

    ``value [rows]`` are the candidates' values, ``abstain`` is the value of no answer, and
    ``scale`` the headroom, of which :data:`TOLERANCE` is a share.
    """
    random, *others = selectors
    every = [random, *(each.with_k(k) for each in others for k in ks if k > 1)]
    count = len(every)
    empty = np.empty((inputs.pools.queries, count))
    out = SelectorValues(every, empty, np.zeros(count), np.ones(count))
    _measure_exact(inputs, value, out, abstain, tick)
    drawn = [at for at, each in enumerate(every) if isinstance(each, SetSelector)]
    if not drawn:
        return out
    draws, sampled = _measure_drawn(inputs, value, out, drawn, seed, scale, tick)
    return replace(out, draws=draws, sampled=sampled)


def _measure_exact(
    inputs: SelectorInputs, value: Floats, out: SelectorValues, abstain: float, tick: Tick
) -> None:
    """Fill in closed forms, block by block on all cores; blocks write to their own rows."""
    shared: dict[tuple[Any, ...], list[int]] = {}
    for at, each in enumerate(out.selectors):
        if isinstance(each, RankSelector):
            shared.setdefault(_sorting(each), []).append(at)
    groups = list(shared.values())
    blocks = list(inputs.pools.blocks(BLOCK))
    answered = np.zeros((len(blocks), len(out.selectors)))

    def measure(number: int) -> None:
        block = blocks[number]
        pool, worth = inputs.pool(block), block.take(value)
        out.value[block.queries, 0] = worth.mean(axis=1)
        for ats in groups:
            found, share = _of_group(pool, worth, [out.selectors[at] for at in ats], abstain)
            out.value[block.queries[:, None], ats] = found
            answered[number, ats] = share

    with ThreadPoolExecutor(available_threads()) as threads:
        for done, _ in enumerate(threads.map(measure, range(len(blocks))), start=1):
            tick("exact values", done / len(blocks))
    ats = [at for group in groups for at in group]
    out.coverage[ats] = answered[:, ats].sum(axis=0) / inputs.pools.queries


def _sorting(selector: RankSelector) -> tuple[Any, ...]:
    """Selectors with the same key are measured together: same orders, same threshold."""
    limit = (selector.least,) if isinstance(selector, Threshold) else ()
    return (*selector.sorting, *limit)


def _of_group(
    pool: Pool, worth: Floats, selectors: Sequence[Any], abstain: float
) -> tuple[Floats, Floats]:
    """Values ``[m, G]`` of selectors that share their orders; how many queries they answer."""
    n = pool.shape[1]
    weights = np.stack([rank_weights(each, n, each.k) for each in selectors], axis=1)
    first = selectors[0]
    orders = first.orders(pool)
    if not isinstance(first, Threshold):
        found = sum(order.sorted(worth) @ weights for order in orders) / len(orders)
        return np.asarray(found), np.full(len(selectors), float(len(worth)))
    taken = [key >= first.least for key in first.score.keys(pool)]
    pairs = list(zip(orders, taken, strict=True))
    kept = [order.sorted(np.where(take, worth, abstain)) @ weights for order, take in pairs]
    share = [order.sorted(take.astype(np.float64)) @ weights for order, take in pairs]
    answered = np.asarray(sum(share) / len(share)).sum(axis=0)
    return np.asarray(sum(kept) / len(kept)), answered


def _measure_drawn(
    inputs: SelectorInputs,
    value: Floats,
    out: SelectorValues,
    drawn: list[int],
    seed: int,
    scale: float,
    tick: Tick,
) -> tuple[int, int]:
    """Fill in means over drawn subsets, at a sample of queries where there are many.

    Returns the number of draws, and of queries in the sample.
    """
    rng = np.random.default_rng([seed, 1])
    pools = inputs.pools
    count = max(1, min(pools.queries, int(MONTE_CARLO_ROWS / pools.sizes.mean())))
    chosen = np.sort(rng.permutation(pools.queries)[:count])
    sums = np.zeros((2, count, len(drawn)))
    selectors: list[Any] = [out.selectors[at] for at in drawn]
    draws, wanted = 0, FIRST_DRAWS
    while wanted > draws:
        _add_draws(inputs, value, selectors, chosen, sums, wanted - draws, rng, tick)
        draws = wanted
        mean = sums[0] / draws
        spread = np.maximum(sums[1] / draws - mean**2, 0.0) / (draws - 1)
        error = np.sqrt(spread.sum(axis=0)) / count
        needed = draws * (float(error.max()) / max(TOLERANCE * scale, 1e-300)) ** 2
        wanted = draws if draws > FIRST_DRAWS else int(min(np.ceil(needed), MOST_DRAWS))
    out.error[drawn] = error
    # What was measured on a sample moves a closed form that is known at all queries: unbiased
    # for the mean over any queries, and as variable as it must be.
    control = [_control(out, each) for each in selectors]
    known = out.value[:, control]
    out.value[:, drawn] = known
    out.value[np.ix_(chosen, np.array(drawn))] += (mean - known[chosen]) * (pools.queries / count)
    return draws, count


def _control(out: SelectorValues, selector: Selector) -> int:
    """A similar closed form: the best of K by one of its scores, or the random pick."""
    score = getattr(selector, "score", None)
    plain = [
        at
        for at, each in enumerate(out.selectors)
        if isinstance(each, Best) and each.k == selector.k and each.score == score
    ]
    return plain[0] if plain else 0


def _add_draws(
    inputs: SelectorInputs,
    value: Floats,
    selectors: Sequence[SetSelector],
    chosen: Ints,
    sums: Floats,
    draws: int,
    rng: np.random.Generator,
    tick: Tick,
) -> None:
    """Add values of drawn subsets, and their squares, to ``sums [2, chosen, C]``."""
    keep = np.zeros(inputs.pools.queries, dtype=bool)
    keep[chosen] = True
    place = np.cumsum(keep) - 1
    blocks = list(_sampled(inputs.pools, keep))
    soft, others = _draw_groups(selectors)

    def measure(work: tuple[Block, np.random.Generator]) -> None:
        block, stream = work
        pool, worth = inputs.pool(block), block.take(value)
        m, n = pool.shape
        every = np.tile(np.arange(n), (m, 1))
        for _ in range(draws):
            found = np.empty((m, len(selectors)))
            for ats in soft:
                found[:, ats] = _soft_values([selectors[at] for at in ats], pool, worth, stream)
            subset = stream.permuted(every, axis=1)
            for k, ats in others.items():
                part = pool.at(subset[:, :k])
                gained = np.take_along_axis(worth, subset[:, :k], axis=1)
                for at in ats:
                    found[:, at] = (selectors[at].of_all(part) * gained).sum(axis=1)
            sums[0, place[block.queries]] += found
            sums[1, place[block.queries]] += found**2

    with ThreadPoolExecutor(available_threads()) as threads:
        work = zip(blocks, rng.spawn(len(blocks)), strict=True)
        for done, _ in enumerate(threads.map(measure, work), start=1):
            tick("drawn subsets", done / len(blocks))


def _draw_groups(
    selectors: Sequence[SetSelector],
) -> tuple[list[list[int]], dict[int, list[int]]]:
    """Positions of selectors that share draws.

    Soft selectors with one score and temperature share their noise, others with one K their subset.
    """
    soft: dict[tuple[Any, ...], list[int]] = {}
    others: dict[int, list[int]] = {}
    for at, each in enumerate(selectors):
        if isinstance(each, Soft):
            soft.setdefault((each.score, each.beta), []).append(at)
        else:
            others.setdefault(each.k, []).append(at)
    return list(soft.values()), others


def _soft_values(
    selectors: Sequence[Any], pool: Pool, worth: Floats, rng: np.random.Generator
) -> Floats:
    """One draw of soft selectors that differ in K ``[m, G]``.

    A share of exp(beta score) is the best by beta score + Gumbel noise: given the noise every
    subset is counted exactly, in place of one drawn.
    """
    weights = selection_weights(pool.shape[1], [each.k for each in selectors]).T
    first = selectors[0]
    found = []
    for key in first.score.keys(pool):
        noise = rng.gumbel(size=key.shape)
        # At beta 0 a score of -inf is one like any other's, but for being ruled out.
        raised = first.beta * key if first.beta else np.where(np.isneginf(key), key, 0.0)
        found.append(ordered(raised + noise).sorted(worth) @ weights)
    return np.asarray(sum(found) / len(found))


def _sampled(pools: ScoredPools, keep: Any) -> Iterator[Block]:
    for block in pools.blocks(BLOCK >> 2):
        kept = keep[block.queries]
        if kept.any():
            queries = block.queries[kept]
            rows = (pools.offsets[queries][:, None] + np.arange(block.size)).reshape(-1)
            yield Block(queries, rows, block.size)
