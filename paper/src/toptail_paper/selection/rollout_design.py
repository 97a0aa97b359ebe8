"""The design of the simulator's audit: which queries, which candidates, whose picks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.critics.registry import IDEALS, names
from toptail.lab.store.units import KEPT
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import IntArray
from toptail.pools.columns import split_seed
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.selection.rollout_results import RANDOM

LOGGED = "logged"
"""The selector that takes the data's own action."""
RESERVED = (REFERENCE, LOGGED, RANDOM)
"""Selectors that are not scorers."""
POOL = 0
"""The pool whose candidates are rolled out."""
TRAINING_SEED = 42
"""The training seed whose picks are rolled out."""

ORDER, RANDOM_MEMBERS, NOISE = "order of queries", "random candidates", "continuation"
PLAN = "planned candidates"
"""What a stream of random numbers is for."""


def stream(queries: FrozenQueries, use: str) -> int:
    """A seed that follows from the queries' hash.

    The declaration names that hash, so it also fixes the order of the queries, the random
    candidates and the continuation's noise: there is no seed left to choose.
    """
    text = f"{queries.sha256} {use}".encode()
    return int(hashlib.sha256(text).hexdigest()[:8], 16) >> 1


def audited_queries(queries: FrozenQueries, per_group: int) -> IntArray:
    """The first ``per_group`` queries of each distance group, in a random order that is fixed.

    More queries are added behind the first ones: a larger number holds all of a smaller one.
    """
    place = np.random.default_rng(stream(queries, ORDER)).permutation(len(queries))
    order = np.argsort(place)
    kept = [order[queries.group[order] == name][:per_group] for name in queries.config.groups()]
    return np.concatenate(kept).astype(np.int64)


def random_candidates(queries: FrozenQueries, size: int, count: int) -> IntArray:
    """``count`` different members of each query's pool of ``size``: ``[Q, count]``."""
    if count > size:
        raise InputError(f"A pool of {size} candidates does not hold {count} random ones.")
    rng = np.random.default_rng(stream(queries, RANDOM_MEMBERS))
    members = np.tile(np.arange(size), (len(queries), 1))
    return rng.permuted(members, axis=1)[:, :count]


def candidates_sha256(candidates: NDArray[Any]) -> str:
    """Hash of the actions that can be rolled out, ``[Q, N + 1, a]``."""
    return hashlib.sha256(np.ascontiguousarray(candidates, np.float32).data).hexdigest()


def pools_sha256(pools: CandidatePools) -> str:
    """`candidates_sha256` of the audited pool; kept pools without their actions say it."""
    if not pools.has_actions:
        return str(pools.header[KEPT]["candidates"])
    return candidates_sha256(pools.with_logged()[:, POOL])


def audited_columns(scores: Iterable[str]) -> dict[str, str]:
    """Scorer -> its column whose picks are rolled out.

    A column with a training seed counts if it is the audited one, a column without one (a user's
    own scorer) always does, an ideal critic never, nor do critics that take the objective apart.
    """
    found: dict[str, str] = {}
    for column in scores:
        name, seed = split_seed(column)
        if name in (*IDEALS, *names("factor")) or seed not in (None, str(TRAINING_SEED)):
            continue
        if name in RESERVED or name in found:
            raise InputError(
                f"The column '{column}' cannot be the selector '{name}', which is there already: "
                "give the scores another name."
            )
        found[name] = column
    return found


def selector_picks(
    scores: Mapping[str, NDArray[Any]], reference: NDArray[Any] | None
) -> dict[str, IntArray]:
    """The candidate that each selector picks from the audited pool: ``[Q]`` of 0 … N − 1.

    ``scores`` are ``[Q, P, N + 1]``, of which `audited_columns` count. Critics that
    take the objective apart are not rolled out: the audit's power is that of its widest interval,
    and they would have a say in it. The selector ``reference`` maximizes the mean of its values,
    ``[members, Q, P, N + 1]``. The logged action is not part of the pool. Of equal scores the first
    wins, which among exchangeable candidates is a random one.
    """
    picks = {
        name: _top(scores[column][:, POOL]) for name, column in audited_columns(scores).items()
    }
    if reference is not None:
        picks[REFERENCE] = _top(np.asarray(reference, np.float64).mean(axis=0)[:, POOL])
    return picks


def _top(scores: NDArray[Any]) -> IntArray:
    """Column of the highest of a pool's scores ``[Q, N + 1]``, without the logged action."""
    top: IntArray = np.argmax(scores[:, :-1], axis=1)
    return top
