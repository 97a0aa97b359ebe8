"""What values will be like, guessed from a pilot, a cheap judge or a stated spread."""

from __future__ import annotations

import numpy as np

from toptail.audit.plan import Contrasts, Guess
from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, oracle

_FEW = 5
"""With fewer queries judged whole their headroom says too little."""


def guess_of(
    about: Contrasts, pilot: Floats | None, cheap: Floats | None, spread: float | None
) -> Guess:
    """What is assumed before judging.

    A pilot (values of some candidates) says how values spread inside a query, and beside a
    cheap judge how far that one is off; a cheap judge alone is taken to be off by as much as it
    spreads itself; else the stated spread, or normal values, for which no unit is needed.
    """
    pools = about.pools
    if spread is not None:
        if not 0 < spread < np.inf:
            raise InputError(f"{option('spread', spread)} must be a number above 0.")
        return Guess(spread, spread)
    base = cheap if pilot is None else pilot
    if base is None:
        return Guess()
    own = _spread(pools, base)
    if not own > 0:
        raise InputError(
            f"{pools.source}: the values to plan by do not differ inside any query; state how "
            f"they do with {option('spread')}."
        )
    missed = own
    if pilot is not None and cheap is not None:
        missed = min(own, _spread(pools, _unexplained(pools, pilot, cheap)))
    headroom = _headroom(about, base)
    if headroom.size < _FEW or not headroom.mean() > 0:
        return Guess(own, missed)
    mean = float(headroom.mean())
    return Guess(own, missed, mean, float(headroom.std() / mean))


def _deviations(pools: ScoredPools, column: Floats) -> tuple[Floats, int]:
    """Deviations of what is known from its query's mean, and how many are free."""
    query = np.repeat(np.arange(pools.queries), pools.sizes)
    known = ~np.isnan(column)
    count = np.bincount(query[known], minlength=pools.queries)
    mean = np.bincount(query[known], column[known], pools.queries) / np.maximum(count, 1)
    return np.where(known, column - mean[query], 0.0), int((count[count > 1] - 1).sum())


def _spread(pools: ScoredPools, column: Floats) -> float:
    """Standard deviation inside a query."""
    deviations, free = _deviations(pools, column)
    return float(np.sqrt((deviations**2).sum() / max(free, 1)))


def _unexplained(pools: ScoredPools, pilot: Floats, cheap: Floats) -> Floats:
    """The pilot's values less what the cheap judge explains of them inside queries."""
    known = np.where(np.isnan(pilot), np.nan, cheap)
    y, x = _deviations(pools, pilot)[0], _deviations(pools, known)[0]
    square, both = np.einsum("i,ci->c", x, np.stack([x, y]))
    return pilot - (both / square if square > 0 else 0.0) * cheap


def _headroom(about: Contrasts, column: Floats) -> Floats:
    """Headroom at k_max of the queries of which everything is known."""
    pools = about.pools
    whole = about.usable & ~np.isnan(np.add.reduceat(column, pools.offsets[:-1]))
    if not whole.any():
        return np.empty(0)
    part, found = pools.select(whole), []
    kept = column[np.repeat(whole, pools.sizes)]
    for block in part.blocks():
        value = block.take(kept)
        found.append(oracle(value, [about.k_max])[:, 0] - value.mean(axis=1))
    return np.concatenate(found)
