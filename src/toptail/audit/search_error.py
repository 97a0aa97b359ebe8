"""Where the regret of search over pooled candidates comes from, with its resamples."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.stats import oracle, search_error
from toptail.stats.best_of_k import Floats, Ints


def pooled_search_error(
    critic: ArrayLike,
    ideal: ArrayLike,
    values: ArrayLike,
    support: ArrayLike,
    k: int,
    bootstrap: TrajectoryBootstrap,
) -> tuple[Estimate, Estimate]:
    """:func:`toptail.stats.search_error` of the best of K of candidates of all queries together.

    All are ``[n]``, as the labels of ``bootstrap`` are. Returns the terms, in the order of
    `SearchError`, and the headroom: the best of K by value, less a random candidate.
    """
    columns = [np.asarray(x) for x in (critic, ideal, values, support)]

    def terms(rows: Ints) -> Floats:
        f, own, value, on = (x[rows][None] for x in columns)
        split = [term[0, 0] for term in search_error(f, own, value, on, (k,))]
        return np.array([*split, oracle(value, (k,))[0, 0] - value.mean()])

    both = bootstrap.each(terms)
    return both[:-1], both[-1]
