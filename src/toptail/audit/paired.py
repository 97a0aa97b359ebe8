"""Two tables side by side: the queries that both have, and what each cluster of them says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from toptail.audit.per_query import BLOCK, Judgement, values_at
from toptail.audit.population import least_size
from toptail.audit.run import check_values, judgement
from toptail.audit.settings import Settings
from toptail.errors import InputError
from toptail.pools import ScoredPools
from toptail.pools.columns import codes, listed
from toptail.stats.best_of_k import Floats, Ints, best_of_k, oracle, rounding, split_oracle
from toptail.stats.ends import Unseen, shares, unseen_cluster
from toptail.stats.resample import cluster_sums, weighted_sums


class Ends(NamedTuple):
    """A difference with its one-sided ends; not finite where there are none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PairedSums:
    """Sums over each cluster's queries (C clusters, S scorers)."""

    change: Floats
    """Value of the new pick less that of the old one ``[C, S]``."""
    headroom: Floats
    """What the best choice gains over a random one in the old table ``[C]``."""
    lowest: Floats
    """The smallest change that any two scores could make ``[C]``."""
    highest: Floats
    """The largest change that any two scores could make ``[C]``."""
    ranged: bool = False
    """Whether those are of a declared range of values, where a query need not have headroom."""

    def ends(self, rng: np.random.Generator, resamples: int, tail: float) -> list[Ends]:
        """Sum of changes over sum of headroom, each end of one-sided error ``tail``.

        As the verdict's: the draws count one cluster that was not seen, where the new table has
        its worst candidates (for the upper end its best) and the old one the opposite; and no
        end lies inside of Student's. See :mod:`toptail.stats.ends`.
        """
        headroom = self.headroom[:, None]
        drawn, weight = weighted_sums(np.hstack([self.change, headroom]), rng, resamples)
        bounds = self.lowest[:, None], self.highest[:, None]
        unseen = unseen_cluster(bounds, np.maximum(headroom, 0.0))
        if self.ranged:
            unseen = Unseen(unseen.least, unseen.most, np.zeros(1))
        found = shares(self.change, headroom, drawn[:, :-1].T, drawn[:, -1:].T, weight, unseen)
        columns = zip(found.value, found.low(tail), found.high(tail), strict=True)
        return [Ends(*map(float, ends)) for ends in columns]


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two tables, or some of its queries."""

    pools: ScoredPools
    """Its candidates and scores."""
    judged: Judgement
    """What they are worth."""
    value: str
    """The value column, for telling judges apart."""

    @classmethod
    def of(
        cls,
        pools: ScoredPools,
        settings: Settings,
        values: str | None = None,
        replicates: Sequence[str] | None = None,
    ) -> Side:
        """The table, judged as :func:`toptail.audit` judges it."""
        judged, name = judgement(pools, values, listed(replicates))
        if not judged.exact:
            raise InputError(
                f"{pools.source}: two tables are compared where every candidate has its value; "
                f"some of '{name}' are missing."
            )
        check_values(pools, judged, settings)
        return cls(pools, judged, name)

    def at(self, queries: Ints) -> tuple[Side, Ints]:
        """Some of the queries in the table's own order, and where each one asked for is there."""
        chosen = np.zeros(self.pools.queries, dtype=bool)
        chosen[queries] = True
        judged = self.judged.select(np.repeat(chosen, self.pools.sizes))
        place = (np.cumsum(chosen) - 1)[queries]
        return Side(self.pools.select(chosen), judged, self.value), place

    def worth(self, scorer: str, k: int) -> Floats:
        """Value of the best of K by a scorer ``[queries]``, the mean over its seeds."""
        return values_at(self.pools, self.judged, list(self.pools.scorers[scorer].values()), k)

    def possible(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Least and most that the best of K by any score is worth, and headroom ``[queries]``.

        The headroom is that of the split oracle where the judge is noisy.
        """
        least, most, headroom = np.empty((3, self.pools.queries))
        for block in self.pools.blocks(BLOCK):
            value = block.take(self.judged.value)
            least[block.queries] = best_of_k(-value, value, [k])[:, 0]
            most[block.queries] = top = oracle(value, [k])[:, 0]
            if self.judged.replicates is not None:
                halves = np.stack([block.take(part) for part in self.judged.replicates])
                top = split_oracle(halves, [k])[:, 0]
            headroom[block.queries] = top - value.mean(axis=1)
        return least, most, headroom


@dataclass(frozen=True, eq=False)
class Shared:
    """The queries that both tables have, with K candidates or more in each."""

    new: Side
    """The new table there."""
    old: Side
    """The old table there."""
    new_at: Ints
    """Where each query is in ``new``."""
    old_at: Ints
    """Where the same query is in ``old``."""
    k: int
    """The K to compare at."""
    labels: int
    """How many labels both tables have."""

    @classmethod
    def of(cls, new: Side, old: Side, min_pool: int | None = None) -> Shared:
        """What both tables have; smaller pools than ``min_pool`` are left out.

        By default those below the 5 % quantile of sizes, where a query's size is that of the
        smaller of its two pools. K is the smallest that is left.
        """
        new_at, old_at = _matched(new.pools.query, old.pools.query)
        where = f"{new.pools.source} and {old.pools.source}"
        if not new_at.size:
            raise InputError(
                f"{where} share no query: the labels are '{new.pools.query[0]}', … and "
                f"'{old.pools.query[0]}', …; two tables are compared at the same queries."
            )
        size = np.minimum(new.pools.sizes[new_at], old.pools.sizes[old_at])
        several = size[size > 1]
        if not several.size or several.max() < (min_pool or 2):
            raise InputError(
                f"{where}: no shared query has {min_pool or 2} candidates in both tables, so there "
                "is nothing to compare."
            )
        keep = size >= least_size(several, min_pool)
        (newer, first), (older, second) = new.at(new_at[keep]), old.at(old_at[keep])
        return cls(newer, older, first, second, int(size[keep].min()), size.size)

    def pairs(self, names: Mapping[str, str], settings: Settings) -> PairedSums:
        """What each cluster says of scorers, which ``names`` maps to their names in ``old``."""
        new, old, k = self.new, self.old, self.k
        values = [new.worth(name, k)[self.new_at] for name in names]
        before = [old.worth(name, k)[self.old_at] for name in names.values()]
        least_new, most_new, _ = (part[self.new_at] for part in new.possible(k))
        least_old, most_old, headroom = (part[self.old_at] for part in old.possible(k))
        has = headroom > rounding(np.abs(old.judged.value).max())
        if not (headroom.mean() > 0 and has.any()):
            raise InputError(
                f"{old.pools.source}: at the shared queries the best of {k} candidates is worth no "
                "more than a random one, so there is no headroom to measure a difference in."
            )
        bounds = least_new - most_old, most_new - least_old
        if settings.value_range is not None:
            width = float(np.ptp(settings.value_range))
            bounds = np.full_like(headroom, -width), np.full_like(headroom, width)
        change = [after - value for after, value in zip(values, before, strict=True)]
        per_query = np.stack([headroom, *bounds, *change], axis=1)
        cluster = self._cluster()
        if settings.unit == "query":
            per_query = per_query[has] / headroom[has, None]
            cluster = None if cluster is None else cluster[has]
        sums = cluster_sums(per_query, cluster)
        unit, lowest, highest = sums[:, :3].T
        return PairedSums(sums[:, 3:], unit, lowest, highest, settings.value_range is not None)

    def _cluster(self) -> Ints | None:
        """Those of the new table or, where it has none, of the old one."""
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
