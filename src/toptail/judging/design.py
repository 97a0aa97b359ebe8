r"""Which candidates to judge: chances that make contrasts vary least, and draws by them.

With independent draws of chances p the variance of :math:`\sum_i c_i z_i` is
:math:`\sum_i c_i^2 \sigma_i^2 (1 - p_i)/p_i`, where :math:`\sigma_i` is how far predictions are
off. Summed over contrasts and for a given number of labels it is least for p in proportion to
:math:`\sigma_i \sqrt{\sum c_i^2}` (Neyman, 1934).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri

from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    KGrid,
    oracle,
    selection_weights,
    smallest_pool,
    steady_product,
    tie_starts,
)
from toptail.stats.sampled import Flags

LEAST_WHOLE: Final = 10
"""A plan judges at least so many queries as a whole: they give the headroom."""
_FLOOR: Final = 0.2
"""No chance lies below this share of their mean, which bounds the weight of a label."""
_MARGIN: Final = 3.0
"""Standard deviations between the expected number of labels and the largest that is allowed."""
_SHARE: Final = 0.5
"""The captured share at which the noise of the headroom is weighed."""
_HALF: Final = 1.959964
"""Normal quantile of a 95 % interval."""
_FEW: Final = 5
"""With fewer queries judged whole their headroom says too little."""


def contrast_sizes(scores: Floats, k: tuple[int, ...], first: Ints, second: Ints) -> Floats:
    """Sum of squared weights of the changes V(k[second]) - V(k[first]), by candidate ``[m, n]``.

    Tied scores share their weights evenly.
    """
    weights = selection_weights(scores.shape[1], k)
    change = (weights[second] - weights[first]).T
    order = np.argsort(scores, axis=1)
    starts = tie_starts(np.take_along_axis(scores, order, axis=1))
    result = np.empty(scores.shape)
    if starts is None:
        np.put_along_axis(result, order, (change**2).sum(axis=1)[None], axis=1)
        return result
    flat = np.tile(change, (len(scores), 1))
    counts = np.diff(starts, append=flat.shape[0])
    means = np.add.reduceat(flat, starts, axis=0) / counts[:, None]
    sizes = np.repeat((means**2).sum(axis=1), counts).reshape(scores.shape)
    np.put_along_axis(result, order, sizes, axis=1)
    return result


def chances(size: Floats, labels: float, least: float) -> Floats:
    """Chances in proportion to ``size``, between ``least`` times their mean and 1.

    They add up to ``labels``, where 0 < labels <= size.size.
    """
    low = least * labels / size.size
    root = np.maximum(size, 1e-12 * size.max()) if size.max() > 0 else np.ones(size.size)
    root = root / root.mean()
    small, large = 0.0, max(1.0, 1.0 / root.min())
    for _ in range(60):  # bisection: the sum grows with the scale
        scale = (small + large) / 2
        if np.clip(scale * root, low, 1.0).sum() < labels:
            small = scale
        else:
            large = scale
    return np.asarray(np.clip(small * root, low, 1.0))


def expected_largest(n: int) -> float:
    """Expected largest of ``n`` standard normal numbers.

    >>> round(expected_largest(2), 4)
    0.5642
    """
    rank = (np.arange(20_000) + 0.5) / 20_000
    return float(ndtri(rank ** (1.0 / n)).mean())


@dataclass(frozen=True)
class Assumptions:
    """Assumptions about values before they are judged, in units of the values."""

    spread: float = 1.0
    """Standard deviation of the values inside a query."""
    missed: float = 1.0
    """Standard deviation of the error of predictions (a cheap judge's, or a mean)."""
    headroom: float | None = None
    """Value of the best of a pool less the pool's mean; None: that of normal values."""
    headroom_spread: float = 0.4
    """Standard deviation of the headroom over queries, as a share of its mean."""


@dataclass(frozen=True, eq=False)
class Contrasts:
    """How much each candidate matters for the verdicts of a table's scorers."""

    pools: ScoredPools
    usable: Flags
    """Queries that the audit does not leave out ``[queries]``."""
    k_max: int
    """The largest K of the audit."""
    deciding: Floats
    """Root of the sum of squared weights of all steps of all scorers ``[rows]``."""
    gain: Floats
    """Squared weights of the gain at k_max, by scorer ``[scorers, rows]``."""

    @classmethod
    def of(cls, pools: ScoredPools, min_pool: int | None = None) -> Contrasts:
        """Add up the weights of all scorers, with seeds of a scorer as one."""
        several = pools.sizes[pools.sizes > 1]
        if not several.size:
            raise InputError(f"{pools.source}: every pool has one candidate; there is no choice.")
        least = max(2, smallest_pool(several, min_pool))
        usable = pools.sizes >= least
        if not usable.any():
            raise InputError(f"{pools.source}: {option('min_pool', least)} leaves no pool.")
        k_max = int(pools.sizes[usable].min())
        grid = KGrid.up_to(k_max)
        steps = len(grid.steps)
        first, second = grid.first[:steps], grid.second[:steps]
        at = grid.steps.index((1, k_max))
        deciding, gain = np.zeros(pools.rows), []
        for members in pools.scorers.values():
            own = np.zeros(pools.rows)
            for column in members.values():
                for block in pools.blocks():
                    if block.size < least:
                        continue
                    scores = block.take(pools.scores[column])
                    every = contrast_sizes(scores, grid.deciding, first, second)
                    last = contrast_sizes(scores, grid.deciding, first[[at]], second[[at]])
                    deciding[block.rows] += every.reshape(-1) / len(members)
                    own[block.rows] += last.reshape(-1) / len(members)
            gain.append(own)
        return cls(pools, usable, k_max, np.sqrt(deciding), np.array(gain))

    @property
    def rows(self) -> Flags:
        """Candidates that may be chosen ``[rows]``."""
        return np.repeat(self.usable, self.pools.sizes)

    def headroom(self, guess: Assumptions) -> float:
        """The assumed headroom, in units of the values."""
        if guess.headroom is not None:
            return guess.headroom
        return guess.spread * expected_largest(self.k_max)


@dataclass(frozen=True, eq=False)
class Design:
    """The chances with which candidates are chosen."""

    contrasts: Contrasts
    whole: int
    """How many queries are judged as a whole."""
    alone: Floats
    """Each candidate's chance to be chosen by its own draw ``[rows]``."""

    @property
    def p_whole(self) -> float:
        """The chance of a query to be judged as a whole."""
        return self.whole / int(self.contrasts.usable.sum())

    @property
    def p_judged(self) -> Floats:
        """The chance of each candidate to be judged, alone or with its query ``[rows]``."""
        return self.p_whole + (1.0 - self.p_whole) * self.alone

    @property
    def labels(self) -> tuple[float, float]:
        """Expected number of labels, and its standard deviation."""
        w, alone = self.p_whole, self.alone[self.contrasts.rows]
        sizes = self.contrasts.pools.sizes[self.contrasts.usable].astype(np.float64)
        lumps = self.whole * (1.0 - w) * sizes.var()
        return (
            float(self.p_judged[self.contrasts.rows].sum()),
            float(np.sqrt(lumps + ((1.0 - w) * alone * (1.0 - alone)).sum())),
        )

    def half_width(self, guess: Assumptions) -> float:
        """Expected half-width of the captured share at k_max, for the scorer with the widest.

        For normal values with the assumed spread, independent inside a query.
        """
        queries, headroom = int(self.contrasts.usable.sum()), self.contrasts.headroom(guess)
        p = self.p_judged[self.contrasts.rows]
        per_row = guess.spread**2 + guess.missed**2 * (1.0 - p) / p
        gain = self.contrasts.gain[:, self.contrasts.rows]
        change = float(steady_product(gain, per_row[:, None]).max()) / queries
        unit = (_SHARE * guess.headroom_spread * headroom) ** 2 / self.p_whole
        return float(_HALF * np.sqrt((change + unit) / queries) / headroom)


def design(
    contrasts: Contrasts, labels: int, guess: Assumptions, share: float | None = None
) -> Design:
    """The design for at most ``labels`` labels, a ``share`` of them in queries judged as a whole.

    By default the share with the least expected half-width.
    """
    rows, queries = int(contrasts.rows.sum()), int(contrasts.usable.sum())
    if labels >= rows:
        return Design(contrasts, queries, np.where(contrasts.rows, 1.0, 0.0))
    size = rows / queries
    few = int(np.ceil(1.25 * LEAST_WHOLE * size))
    if labels < few:
        raise InputError(
            f"{contrasts.pools.source}: {option('labels', labels)} are too few: {LEAST_WHOLE} "
            f"queries are judged as a whole, which takes {few:,} labels or more here."
        )
    if share is not None:
        return _design_with(contrasts, labels, max(LEAST_WHOLE, int(share * labels / size)))
    most = int(0.9 * labels / size)
    tried = np.unique(np.linspace(LEAST_WHOLE, max(LEAST_WHOLE, most), 12).astype(int))
    found = [_design_with(contrasts, labels, int(whole)) for whole in tried]
    return min(found, key=lambda each: each.half_width(guess))


def _design_with(contrasts: Contrasts, labels: int, whole: int) -> Design:
    """The design with ``whole`` whole queries that almost never needs more than ``labels``."""
    rows, queries = contrasts.rows, int(contrasts.usable.sum())
    w = whole / queries
    sizes = contrasts.pools.sizes[contrasts.usable].astype(np.float64)
    lumps = whole * (1.0 - w) * float(sizes.var())
    left = labels - w * rows.sum()
    # expected + margin * sqrt(lumps + expected) = left, which a variance of p(1 - p) stays below
    half = _MARGIN / 2
    root = -half + np.sqrt(half**2 + max(left - _MARGIN * np.sqrt(lumps), 1.0))
    alone = np.zeros(rows.size)
    alone[rows] = chances(
        contrasts.deciding[rows], float(np.clip(root**2 / (1.0 - w), 1.0, rows.sum())), _FLOOR
    )
    return Design(contrasts, whole, alone)


@dataclass(frozen=True, eq=False)
class Draw:
    """The candidates that were drawn for judging."""

    judged: Flags
    """Candidates to judge ``[rows]``."""
    own: Flags
    """Candidates that were chosen by draws of their own ``[rows]``."""


def draw(plan: Design, seed: int) -> Draw:
    """Draw candidates; a larger design with the same seed contains the draw of a smaller one.

    Every candidate has one random number between 0 and 1, which its chance must exceed, and the
    queries have one random order, of which the first are judged as a whole (permanent random
    numbers: Ohlsson, 1995).
    """
    pools, usable = plan.contrasts.pools, plan.contrasts.usable
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(usable))
    chosen = np.zeros(pools.queries, dtype=bool)
    chosen[order[: plan.whole]] = True
    own = (rng.random(pools.rows) < plan.alone) & plan.contrasts.rows
    return Draw(own | np.repeat(chosen, pools.sizes), own)


def drawn_within(
    contrasts: Contrasts, labels: int, guess: Assumptions, seed: int, share: float | None = None
) -> tuple[Design, Draw]:
    """A design and its draw; the rare draw with too many labels is repeated with a lower aim."""
    aim = labels
    while True:
        plan = design(contrasts, aim, guess, share)
        drawn = draw(plan, seed)
        if drawn.judged.sum() <= labels:
            return plan, drawn
        aim = int(0.98 * aim)


def assumptions_from(
    contrasts: Contrasts, pilot: Floats | None, cheap: Floats | None, spread: float | None
) -> Assumptions:
    """The assumptions to plan by, from the values of a pilot, a cheap judge or a stated spread.

    A ``pilot`` (values of some candidates, NaN elsewhere) shows the spread of values inside a
    query and, with a ``cheap`` judge, that judge's error. A cheap judge alone is assumed to err by
    as much as its own values spread. Without any of them values are assumed to be standard normal.
    """
    pools = contrasts.pools
    if spread is not None:
        if not 0 < spread < np.inf:
            raise InputError(f"{option('spread', spread)} must be a number above 0.")
        return Assumptions(spread, spread)
    base = cheap if pilot is None else pilot
    if base is None:
        return Assumptions()
    own = _spread(pools, base)
    if not own > 0:
        raise InputError(
            f"{pools.source}: the values to plan by do not differ inside any query; state how "
            f"they do with {option('spread')}."
        )
    missed = own
    if pilot is not None and cheap is not None:
        missed = min(own, _spread(pools, _unexplained(pools, pilot, cheap)))
    headroom = _headroom(contrasts, base)
    if headroom.size < _FEW or not headroom.mean() > 0:
        return Assumptions(own, missed)
    mean = float(headroom.mean())
    return Assumptions(own, missed, mean, float(headroom.std() / mean))


def _deviations(pools: ScoredPools, column: Floats) -> tuple[Floats, int]:
    """Deviations of known values from their query's mean, and the degrees of freedom."""
    query = np.repeat(np.arange(pools.queries), pools.sizes)
    known = ~np.isnan(column)
    count = np.bincount(query[known], minlength=pools.queries)
    mean = np.bincount(query[known], column[known], pools.queries) / np.maximum(count, 1)
    return np.where(known, column - mean[query], 0.0), int((count[count > 1] - 1).sum())


def _spread(pools: ScoredPools, column: Floats) -> float:
    deviations, free = _deviations(pools, column)
    return float(np.sqrt((deviations**2).sum() / max(free, 1)))


def _unexplained(pools: ScoredPools, pilot: Floats, cheap: Floats) -> Floats:
    """The pilot's values less what the cheap judge explains of them inside queries."""
    known = np.where(np.isnan(pilot), np.nan, cheap)
    y, x = _deviations(pools, pilot)[0], _deviations(pools, known)[0]
    square, both = np.einsum("i,ci->c", x, np.stack([x, y]))
    return pilot - (both / square if square > 0 else 0.0) * cheap


def _headroom(contrasts: Contrasts, column: Floats) -> Floats:
    """Headroom at k_max of the queries whose candidates all have a value."""
    pools = contrasts.pools
    whole = contrasts.usable & ~np.isnan(np.add.reduceat(column, pools.offsets[:-1]))
    if not whole.any():
        return np.empty(0)
    part, found = pools.select(whole), []
    kept = column[np.repeat(whole, pools.sizes)]
    for block in part.blocks():
        value = block.take(kept)
        found.append(oracle(value, [contrasts.k_max])[:, 0] - value.mean(axis=1))
    return np.concatenate(found)
