r"""Where the regret of search comes from: the target, its estimation, or extrapolation.

A critic has an ideal: what it would score if its objective were learned perfectly. Three selectors
search the same pool, and each has a regret R against the best of K by value:

- the ideal;
- *mixed*: places in the pool's order are the ideal's, but the candidates on support stand in their
  own places in the critic's order (the highest on-support place goes to the critic's first among
  them, and so on). Off the support, and between the two, everything is as the ideal has it;
- the critic.

.. math:: R_{critic} = \underbrace{R_{ideal}}_{target}
          + \underbrace{R_{mixed} - R_{ideal}}_{estimation}
          + \underbrace{R_{critic} - R_{mixed}}_{extrapolation}

Only orders enter, so that critic and ideal may have any two scales. The terms may be negative: an
error may undo another. Taking the steps the other way round (the critic's places, the ideal's order
among the candidates on support) gives other shares of the same sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.stats.best_of_k import Floats, average_ties, best_of_k, oracle, tie_starts
from toptail.stats.rank import dense_ranks


class SearchError(NamedTuple):
    """The terms of the regret at each K, per query, ``[m, len(k)]`` each; lower is better."""

    target: Floats
    """Regret of the ideal: what the objective itself costs."""
    estimation: Floats
    """What is added by the critic's order of the candidates on support."""
    extrapolation: Floats
    """What is then added by where it puts the candidates off support."""
    total: Floats
    """Regret of the critic, the sum of the three."""
    estimation_last: Floats
    """Estimation where the candidates off support are misplaced before."""
    extrapolation_first: Floats
    """Extrapolation where the order on support is still the ideal's."""


def search_error(
    critic: ArrayLike, ideal: ArrayLike, values: ArrayLike, support: ArrayLike, k: Sequence[int]
) -> SearchError:
    """Split the regret of the best of K by ``critic``.

    All are ``[m, n]``: m queries with n candidates each, larger is better; ``support`` is true
    where a candidate is on support. An ideal that says nothing of a candidate gives it minus
    infinity. A NaN makes that query's terms NaN. Expectations over subsets and ties are exact, as
    in :func:`best_of_k`.

    Examples
    --------
    The ideal takes the second best. The critic swaps the two candidates on support, and prefers a
    bad one off support to both:

    >>> split = search_error([[1, 2, 3]], [[3, 2, 1]], [[5, 6, 0]], [[True, True, False]], [3])
    >>> [float(term[0, 0]) for term in split[:4]]
    [1.0, -1.0, 6.0, 6.0]
    """
    f, best, v = (np.asarray(x, dtype=np.float64) for x in (critic, ideal, values))
    on = np.asarray(support, dtype=bool)
    if not f.shape == best.shape == v.shape == on.shape or f.ndim != 2:
        raise ValueError(f"{f.shape}, {best.shape}, {v.shape} and {on.shape} do not match")
    top = oracle(v, k)
    target, total = top - best_of_k(best, v, k), top - best_of_k(f, v, k)
    unknown = np.isnan(target) | np.isnan(total)
    mixed, other = (
        np.where(unknown, np.nan, top - _arranged(v, places, order, on, k))
        for places, order in ((best, f), (f, best))
    )
    return SearchError(target, mixed - target, total - mixed, total, total - other, other - target)


def _arranged(
    values: Floats, places: Floats, order: Floats, on: NDArray[np.bool_], k: Sequence[int]
) -> Floats:
    """Best of K by ``places`` after the candidates on support changed theirs.

    Their places are taken by the same candidates in their order by ``order``; candidates that this
    holds equal share their places.
    """
    strict = _without_ties_on_support(places, on)
    # Off-support candidates sort behind all others, so that both sorts agree on where they are.
    by_order, by_place = (np.lexsort((x, ~on), axis=-1) for x in (order, strict))
    known = np.take_along_axis(on, by_order, axis=1)
    held = np.where(known, np.take_along_axis(order, by_order, axis=1), np.nan)
    taken = np.take_along_axis(values, by_order, axis=1)
    taken = average_ties(taken, tie_starts(held))  # no NaN equals another: only those on support
    arranged = np.empty_like(values)
    np.put_along_axis(arranged, by_place, taken, axis=1)
    return best_of_k(strict, np.where(on, arranged, values), k)


def _without_ties_on_support(scores: Floats, on: NDArray[np.bool_]) -> Floats:
    """Ranks in the order of the scores, where equal candidates on support have different places.

    Which of them stands higher does not matter, since their places are filled anew. Where one off
    support is equal to them, all stay equal.
    """
    rank, _ = dense_ranks(scores)
    group = rank + np.arange(len(rank))[:, None] * rank.shape[1]
    has_off = np.bincount(group[~on], minlength=rank.size)[group] > 0
    number = np.where(has_off, 0, np.arange(rank.shape[1]))
    return np.asarray(rank * float(rank.shape[1]) + number)
