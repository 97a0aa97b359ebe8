"""Two tables against each other: is a scorer's pick worth less than it was in an older table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toptail.audit.paired import Pairs, ratio_ends
from toptail.audit.per_query import Judgement
from toptail.audit.record import jsonable
from toptail.audit.run import judgement
from toptail.audit.settings import Settings
from toptail.audit.standing import Baseline, Setting, compared
from toptail.errors import InputError, check_share, option
from toptail.pools import ScoredPools
from toptail.pools.columns import codes, listed
from toptail.pools.container import named, queries
from toptail.stats.best_of_k import Floats, Ints, best_of_k, oracle, rounding, split_oracle
from toptail.stats.resample import cluster_sums

MARGIN: Final = 0.02
"""A loss of at most this share of the old headroom counts as no loss, unless told otherwise."""
_SMALLEST: Final = 0.05
"""The share of the shared queries whose small pools do not decide K."""
_BLOCK: Final = 1 << 17
"""Candidates in a block: its temporaries stay in the cache."""
_SCALES: Final = 5.0
"""Values whose ranges differ by more than this factor are pointed out."""


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two tables."""

    pools: ScoredPools
    """Its candidates and scores."""
    judged: Judgement
    """What they are worth."""
    value: str
    """The value column, for telling judges apart."""

    @classmethod
    def of(cls, pools: ScoredPools, values: str | None, replicates: Sequence[str] | None) -> Side:
        """The table, judged as :func:`toptail.audit` judges it."""
        return cls(pools, *judgement(pools, values, listed(replicates)))

    def select(self, keep: Ints) -> Side:
        """Some of the queries, by position, in the table's own order."""
        chosen = np.zeros(self.pools.queries, dtype=bool)
        chosen[keep] = True
        rows = np.repeat(chosen, self.pools.sizes)
        return Side(self.pools.select(chosen), self.judged.select(rows), self.value)


def baseline_content(
    new: ScoredPools,
    old: ScoredPools,
    settings: Settings,
    *,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    scores: Mapping[str, str] | None = None,
    margin: float = MARGIN,
) -> tuple[dict[str, Any], list[str]]:
    """The part ``baseline`` of ``audit.json``: each scorer of ``new`` against that of ``old``.

    At the queries of the same label in both tables, V(K) of the new one less V(K) of the old one,
    in units of the old table's headroom at that K: the largest that both pools of a query allow,
    apart from the 5 % of the queries with the smallest pools, which are left out and counted.
    Ends are one-sided (2.5 % each at ``level=0.95``), see :func:`toptail.audit.paired.ratio_ends`:

    - ``better``: the lower end is above 0;
    - ``not worse``: it is above ``-margin``;
    - ``worse``: the upper end is below ``-margin``;
    - ``inconclusive``: a loss beyond the margin is neither ruled out nor established.

    ``scores`` maps the name of a scorer in the old table to its name in the new one, by default
    each name that both have to itself. ``values`` and ``replicates`` hold for both tables.
    Clusters are those of the new table or, where it has none, of the old one. Returns warnings,
    too.
    """
    check_share("margin", margin)
    names = _scorers(new, old, scores)
    sides = (Side.of(new, values, replicates), Side.of(old, values, replicates))
    shared = Shared.of(*sides)
    pairs = shared.pairs(names)
    if len(pairs.headroom) < 2:
        raise InputError(
            f"{new.source}: the queries that {old.source} has too lie in one cluster; a comparison "
            "needs at least two."
        )
    rng = np.random.default_rng(settings.seed)
    ends = ratio_ends(pairs, rng, settings.resamples, settings.rule.level)
    at = Setting(shared.k, len(shared.new_at), len(pairs.headroom), margin)
    baseline = Baseline(
        source=old.source,
        sha256=old.sha256,
        shared_queries=at.queries,
        left_out=shared.left_out,
        only_new=new.queries - shared.labels,
        only_old=old.queries - shared.labels,
        clusters=at.clusters,
        margin=margin,
        scorers={
            name: compared(end, names[name], at) for name, end in zip(names, ends, strict=True)
        },
    )
    alone = [name for name in new.scorers if name not in names]
    return jsonable(baseline), _warnings(shared, alone)


def _scorers(
    new: ScoredPools, old: ScoredPools, scores: Mapping[str, str] | None
) -> dict[str, str]:
    """Scorer of the new table -> its name in the old one."""
    if scores is None:
        names = {name: name for name in new.scorers if name in old.scorers}
        if names:
            return names
        raise InputError(
            f"{new.source} and {old.source} have no scorer in common ({named(new.scorers)}; "
            f"{named(old.scorers)}); say which is which with {option('baseline_scores')}."
        )
    for pools, wanted in ((old, scores.keys()), (new, scores.values())):
        for name in wanted:
            if name not in pools.scorers:
                raise InputError(
                    f"{pools.source}: there is no scorer '{name}', which "
                    f"{option('baseline_scores')} names; they are {', '.join(pools.scorers)}."
                )
    if len(set(scores.values())) < len(scores):
        raise InputError(f"{option('baseline_scores')} names a scorer of the new table twice.")
    return {name: older for older, name in scores.items()}


@dataclass(frozen=True, eq=False)
class Shared:
    """The queries that both tables have, with K candidates or more in each."""

    new: Side
    """The new table at these queries."""
    old: Side
    """The old table at these queries."""
    new_at: Ints
    """Their positions in ``new``."""
    old_at: Ints
    """Their positions in ``old``, in the same order."""
    k: int
    """The K to compare at."""
    labels: int
    """How many labels both tables have."""
    left_out: int
    """How many of those have fewer than K candidates."""

    @classmethod
    def of(cls, new: Side, old: Side) -> Shared:
        """What both tables have."""
        new_at, old_at = _matched(new.pools.query, old.pools.query)
        if not new_at.size:
            raise InputError(
                f"{new.pools.source} and {old.pools.source} share no query: the labels in "
                f"'{new.pools.called.get('query', 'query')}' are '{new.pools.query[0]}', … and "
                f"'{old.pools.query[0]}', …; two tables are compared at the same queries."
            )
        size = np.minimum(new.pools.sizes[new_at], old.pools.sizes[old_at])
        if size.max() < 2:
            raise InputError(
                f"{new.pools.source} and {old.pools.source}: no shared query has two candidates in "
                "both tables, so there is nothing to select from."
            )
        least = np.quantile(size[size > 1], _SMALLEST, method="lower")
        keep = size >= least
        new_at, old_at = new_at[keep], old_at[keep]
        return cls(
            new.select(new_at),
            old.select(old_at),
            _ranks(new_at),
            _ranks(old_at),
            int(least),
            keep.size,
            int(keep.size - keep.sum()),
        )

    def pairs(self, names: Mapping[str, str]) -> Pairs:
        """What each cluster says."""
        new, old, k = self.new, self.old, self.k
        value = [_values(new, new_name, k) for new_name in names]
        before = [_values(old, old_name, k) for old_name in names.values()]
        worst_new, best_new = _extremes(new, k)
        worst_old, best_old = _extremes(old, k)
        headroom = _headroom(old, k)[self.old_at]
        if not headroom.mean() > rounding(np.abs(old.judged.value).max()):
            raise InputError(
                f"{old.pools.source}: at the shared queries the best of {k} candidates is worth no "
                "more than a random one, so there is no headroom to measure a difference in."
            )
        change = np.stack(value)[:, self.new_at] - np.stack(before)[:, self.old_at]
        lowest = worst_new[self.new_at] - best_old[self.old_at]
        highest = best_new[self.new_at] - worst_old[self.old_at]
        per_query = np.stack([headroom, lowest, highest, *change], axis=1)
        sums = cluster_sums(per_query, self._cluster())
        return Pairs(sums[:, 3:], sums[:, 0], sums[:, 1], sums[:, 2])

    def _cluster(self) -> Ints | None:
        for side, at in ((self.new, self.new_at), (self.old, self.old_at)):
            if side.pools.cluster is not None:
                return codes(side.pools.source, "cluster", side.pools.cluster)[0][at]
        return None


def _matched(new: pa.Array, old: pa.Array) -> tuple[Ints, Ints]:
    """Positions of the labels that both have; a number and its text are one label."""
    where = {label: at for at, label in enumerate(old.cast(pa.string()).to_pylist())}
    labels = new.cast(pa.string()).to_pylist()
    both = [(at, where[label]) for at, label in enumerate(labels) if label in where]
    new_at, old_at = np.array(both, dtype=np.int64).reshape(-1, 2).T
    return new_at, old_at


def _ranks(at: Ints) -> Ints:
    """Positions among the selected, which keep the table's order."""
    return np.argsort(np.argsort(at))


def _values(side: Side, scorer: str, k: int) -> Floats:
    """Expected value of the best of K by a scorer ``[queries]``, the mean over its seeds."""
    columns = [side.pools.scores[name] for name in side.pools.scorers[scorer].values()]
    result = np.zeros(side.pools.queries)
    for block in side.pools.blocks(_BLOCK):
        value = block.take(side.judged.value)
        for column in columns:
            result[block.queries] += best_of_k(block.take(column), value, [k])[:, 0]
    return result / len(columns)


def _headroom(side: Side, k: int) -> Floats:
    """What the best choice of K gains over a random one ``[queries]``; split for a noisy judge."""
    result = np.empty(side.pools.queries)
    for block in side.pools.blocks(_BLOCK):
        value, replicates = block.take(side.judged.value), side.judged.replicates
        if replicates is None:
            top = oracle(value, [k])
        else:
            top = split_oracle(np.stack([block.take(part) for part in replicates]), [k])
        result[block.queries] = top[:, 0] - value.mean(axis=1)
    return result


def _extremes(side: Side, k: int) -> tuple[Floats, Floats]:
    """The least and the most that the best of K by any score could be worth ``[queries]``."""
    least, most = np.empty(side.pools.queries), np.empty(side.pools.queries)
    for block in side.pools.blocks(_BLOCK):
        value = block.take(side.judged.value)
        least[block.queries] = best_of_k(-value, value, [k])[:, 0]
        most[block.queries] = oracle(value, [k])[:, 0]
    return least, most


def _warnings(shared: Shared, alone: list[str]) -> list[str]:
    """What to look at before trusting the comparison; ``alone`` are scorers without an older."""
    new, old = shared.new, shared.old
    warnings = []
    if new.value != old.value:
        warnings.append(
            f"The new table is judged by '{new.value}' and the old one by '{old.value}': the "
            "difference is one of judges, too."
        )
    ends = [(s.judged.value.min(), s.judged.value.max()) for s in (new, old)]
    widths = sorted(high - low for low, high in ends)
    apart = max(low for low, _ in ends) > min(high for _, high in ends)
    if apart or widths[1] > _SCALES * widths[0]:
        (a, b), (c, d) = ends
        warnings.append(
            f"Values lie in {a:.3g} to {b:.3g} in the new table and in {c:.3g} to {d:.3g} in the "
            "old one: are they on one scale?"
        )
    if shared.left_out:
        warnings.append(
            f"{shared.left_out:,} of {queries(shared.labels)} in both tables have fewer than "
            f"{shared.k} candidates in one of them and are left out of the comparison."
        )
    if alone:
        warnings.append(f"Not compared with the old table: {named(alone)}.")
    return warnings
