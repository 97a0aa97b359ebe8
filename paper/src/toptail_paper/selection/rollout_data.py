"""What rollouts say: gains over random, whether they are powered, and which judges agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from toptail.audit.picks import picks_content
from toptail.errors import InputError
from toptail.lab.critics.registry import names
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import IntArray
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds, split_seed
from toptail.stats import spearman
from toptail.stats.best_of_k import Floats
from toptail.stats.resample import Estimate
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.study.naming import IDEALS, TRIVIAL
from toptail_paper.study.store import Stored
from toptail_paper.triples.bootstrap import TrajectoryBootstrap, summary

RANDOM = "random"
"""The selector that all others are compared with: the mean of the random candidates."""

_ARRAYS = (
    *("query", "trajectory", "group", "candidate", "returns"),
    *("random_candidate", "random_returns"),
)


@dataclass(frozen=True, eq=False)
class RolloutAudit:
    """Returns of what the selectors picked and of random candidates: ``rollouts.npz``."""

    query: IntArray
    """Number of each audited query, ``[A]``."""
    trajectory: IntArray
    """Trajectory of each, which intervals cluster by, ``[A]``."""
    group: NDArray[np.str_]
    """Distance group of each, ``[A]``."""
    selectors: tuple[str, ...]
    """Names of the S selectors, without ``random``; a critic has one per training seed, as in
    ``raw@42``."""
    candidate: IntArray
    """Candidate that each selector picks, ``[A, S]``; the pool's size is the logged action."""
    returns: Floats
    """Discounted success of the picks, ``[A, S, repeats]``."""
    random_candidate: IntArray
    """Random members of the pool, ``[A, C]``."""
    random_returns: Floats
    """Their discounted success, ``[A, C, repeats]``."""

    @classmethod
    def of(cls, stored: Stored) -> RolloutAudit:
        try:
            arrays: dict[str, Any] = {n: stored.arrays[n] for n in _ARRAYS}
            selectors = tuple(str(name) for name in stored.arrays["selectors"])
        except KeyError as error:
            raise InputError(
                f"This file of rollouts has no array {error}: make the rollouts again."
            ) from None
        for name in ("returns", "random_returns"):
            arrays[name] = arrays[name].astype(np.float64)
        return cls(**arrays, selectors=selectors)

    def stored(self, header: Mapping[str, Any]) -> Stored:
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        for name in ("returns", "random_returns"):
            arrays[name] = arrays[name].astype(np.float32)
        return Stored(header, {**arrays, "selectors": np.array(self.selectors)})

    @property
    def share_same(self) -> float:
        """Share of the queries in which every rollout had the same return."""
        returns = np.concatenate([self.returns, self.random_returns], axis=1)
        flat = returns.reshape(len(returns), -1)
        return float((flat == flat[:, :1]).all(axis=1).mean())

    def by_seed(self) -> dict[str, dict[int | None, int]]:
        """Scorer -> training seed, None without one -> number of its selector."""
        columns = group_seeds(self.selectors)
        return {
            name: {seed: self.selectors.index(column) for seed, column in seeds.items()}
            for name, seeds in columns.items()
        }

    def gains(self) -> dict[str, dict[int | None, float]]:
        """Scorer -> training seed -> mean gain over a random candidate."""
        gain = self.returns.mean(axis=2) - self.random_returns.mean(axis=(1, 2))[:, None]
        means = gain.mean(axis=0)
        return {
            name: {seed: float(means[at]) for seed, at in seeds.items()}
            for name, seeds in self.by_seed().items()
        }

    def picks(self) -> JudgedPicks:
        """One row per (query, scorer, repetition); a critic's value is the mean over its seeds.

        A repetition of ``random`` is the mean over the random candidates. All scorers of a
        query and a repetition share the key, as they share the continuation's random numbers.
        """
        columns = self.by_seed()
        means = [self.returns[:, list(seeds.values())].mean(axis=1) for seeds in columns.values()]
        value = np.stack([*means, self.random_returns.mean(axis=1)], axis=1)
        queries, selectors, repeats = value.shape
        query, selector, repeat = (i.ravel() for i in np.indices(value.shape))
        return JudgedPicks.from_arrow(
            {
                "query": self.query[query],
                "selector": pa.array([*columns, RANDOM]).take(pa.array(selector)),
                "replicate": repeat,
                "value": value.ravel(),
                "key": self.query[query] * repeats + repeat,
                "cluster": self.trajectory[query],
            },
            source=f"rollouts of {queries} queries and {selectors} selectors",
        )


def power(audit: RolloutAudit, e_min: float, resamples: int = 10_000) -> dict[str, Any]:
    r"""Gain of each selector over random, and whether all are known well enough.

    .. math:: \Delta = \frac1A \sum_q \big(\bar G_{q,\mathrm{pick}} - \bar G_{q,\mathrm{random}}
        \big)

    with means over repetitions; the paired 95 % interval resamples whole trajectories. The
    audit is admitted if every selector's half-width is below ``e_min`` (trivial scores have no say
    in it), unless all rollouts returned the same, which is no measurement. ``variance_ratio`` is
    what common random numbers gain: the variance over repetitions of the difference, had its two
    sides seen independent noise, over the variance that it has. ``largest_half_width`` is None
    where not computable;
    ``selectors`` has what `picks_content` says of each pair.
    """
    result = picks_content(audit.picks(), baseline=RANDOM, resamples=resamples)
    pairs = {row["a"]: row for row in result["comparisons"] if row["b"] == RANDOM}
    widths = [row["half_width"] for name, row in pairs.items() if name not in TRIVIAL]
    known = bool(widths) and all(width is not None for width in widths)
    largest = max(widths) if known else None
    return {
        "admitted": largest is not None and largest < e_min and audit.share_same < 1,
        "e_min": e_min,
        "largest_half_width": largest,
        "queries": len(audit.query),
        "clusters": result["clusters"],
        "repeats": audit.returns.shape[2],
        "selectors": pairs,
    }


def agreement(
    audit: RolloutAudit,
    values: Mapping[str, NDArray[Any]],
    pool: int = 0,
    resamples: int = 1_000,
    seed: int = 0,
) -> dict[str, dict[str, Any]]:
    """Spearman's rho of each judge's values against realized returns of the random candidates.

    ``within``: over the candidates of a query, mean over the queries in which both vary (their
    number beside it). ``across``: over all pairs of query and candidate together. The entry
    ``split_half`` is the returns' agreement with themselves, the mean of even against that of
    odd repetitions. It is no ceiling: with it at r, a perfect judge, which has no noise of its
    own and is compared with all repetitions, reaches about sqrt(2 r / (1 + r)). Intervals
    resample trajectories. A judge's values are ``[members, Q, P, N + 1]``; the mean over members is
    compared.
    """
    bootstrap = TrajectoryBootstrap(audit.trajectory, np.random.default_rng(seed), resamples)
    realized = audit.random_returns.mean(axis=2)
    query = audit.query[:, None]
    result = {}
    for judge, value in values.items():
        mean = np.asarray(value, np.float64).mean(axis=0)[query, pool, audit.random_candidate]
        result[judge] = _rho(bootstrap, mean, realized)
    if audit.random_returns.shape[2] > 1:  # one repetition has no halves
        even, odd = (audit.random_returns[..., i::2].mean(axis=2) for i in (0, 1))
        result["split_half"] = _rho(bootstrap, even, odd)
    return result


def _rho(bootstrap: TrajectoryBootstrap, a: Floats, b: Floats) -> dict[str, Any]:
    per_query = spearman(a, b)
    defined = ~np.isnan(per_query)
    within: Estimate = bootstrap.mean(np.where(defined, per_query, 0.0), defined)
    across = bootstrap.each(lambda rows: spearman(a[rows].ravel(), b[rows].ravel()))
    return {
        "within": {**summary(within), "queries": int(defined.sum())},
        "across": {**summary(across), "queries": len(per_query)},
    }


LOGGED = "logged"
"""The selector that takes the data's own action."""
RESERVED = (REFERENCE, LOGGED, RANDOM)
"""Selectors that are not scorers."""
POOL = 0
"""The pool whose candidates are rolled out."""
TRAINING_SEED = 42
"""The training seed whose actor is trained and whose critic is followed."""

ORDER, RANDOM_MEMBERS, NOISE = "order of queries", "random candidates", "continuation"
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
    return candidates_sha256(pools.with_logged()[:, POOL])


def audited_columns(scores: Iterable[str]) -> dict[str, list[str]]:
    """Scorer -> its columns whose picks are rolled out: those of all training seeds.

    An ideal critic is never rolled out, nor are critics that take the objective apart.
    """
    names_of = [split_seed(column)[0] for column in scores]
    for name in set(names_of) & set(RESERVED):
        raise InputError(
            f"The scores '{name}' cannot be a selector of that name, which is there already: give "
            "them another one."
        )
    left_out = (*IDEALS, *names("factor"))
    found = group_seeds(column for column in scores if split_seed(column)[0] not in left_out)
    return {name: list(seeds.values()) for name, seeds in found.items()}


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
    columns = audited_columns(scores).values()
    picks = {column: _top(scores[column][:, POOL]) for each in columns for column in each}
    if reference is not None:
        picks[REFERENCE] = _top(np.asarray(reference, np.float64).mean(axis=0)[:, POOL])
    return picks


def _top(scores: NDArray[Any]) -> IntArray:
    """Column of the highest of a pool's scores ``[Q, N + 1]``, without the logged action."""
    top: IntArray = np.argmax(scores[:, :-1], axis=1)
    return top
