"""Two tables compared: whether a scorer's pick is worth less than in an older table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import pyarrow as pa

from toptail.audit.per_query import picked_values
from toptail.audit.settings import Settings, exact_percent
from toptail.errors import InputError, check_share, option
from toptail.io.json_files import jsonable
from toptail.judging.values import JudgedPools, judgement
from toptail.pools import ScoredPools
from toptail.pools.columns import as_list, codes
from toptail.pools.scored import BLOCK, named, queries
from toptail.stats.best_of_k import (
    Floats,
    Ints,
    best_of_k,
    oracle,
    rounding,
    smallest_pool,
    split_oracle,
)
from toptail.stats.ends import Unseen, shares, unseen_cluster
from toptail.stats.resample import cluster_sums, weighted_sums

MARGIN: Final = 0.02
"""A loss of at most this share of the old headroom counts as no loss, by default."""
_FEW: Final = 10
"""With fewer shared clusters the reason says that they are few."""
_SCALES: Final = 5.0
"""A warning is given where the ranges of values differ by more than this factor."""

ComparisonStatus = Literal["better", "not worse", "worse", "inconclusive"]
COMPARISON_STATUSES: tuple[ComparisonStatus, ...] = get_args(ComparisonStatus)


@dataclass(frozen=True)
class BaselineComparison:
    """A scorer of the new table against one of the old, in units of the old table's headroom."""

    status: ComparisonStatus
    """``better``, ``not worse``, ``worse`` or ``inconclusive``."""
    difference: float
    """Value of the pick, new less old."""
    low: float | None
    """Lower end, one-sided; None where there is none."""
    high: float | None
    """Upper end, one-sided; None where there is none."""
    k: int
    """The K that is compared."""
    old: str
    """The scorer's name in the old table."""
    queries_needed: int | None
    """About how many queries would decide an ``inconclusive`` one; None where unknown."""
    reason: str
    """The status in a sentence, with the numbers that decided it."""


@dataclass(frozen=True)
class Baseline:
    """The scorers of a table compared with those of an older one."""

    source: str
    """Where the old table came from."""
    sha256: str | None
    """Content hash of its file."""
    shared_queries: int
    """At how many queries the tables are compared."""
    left_out: int
    """Shared queries with fewer than K candidates in one of the tables, which are left out."""
    only_new: int
    """Queries that only the new table has."""
    only_old: int
    """Queries that only the old table has."""
    clusters: int
    """How many clusters the compared queries lie in."""
    margin: float
    """A loss of at most this share of the headroom counts as no loss."""
    scorers: Mapping[str, BaselineComparison]
    """Scorer of the new table -> its comparison with the old one."""

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Baseline:

        def known(owner: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
            return {field.name: stored[field.name] for field in fields(owner)}

        entries = entry["scorers"].items()
        scorers = {
            name: BaselineComparison(**known(BaselineComparison, stored))
            for name, stored in entries
        }
        return cls(**(known(cls, entry) | {"scorers": scorers}))


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
    """The part ``baseline`` of ``audit.json``, and warnings.

    At the queries of the same label in both tables, V(K) of the new one less V(K) of the old one,
    in units of the old table's headroom at that K: the largest that both pools of each query allow,
    small pools apart (:meth:`SharedQueries.of`). Each end is one-sided:

    - ``better``: the lower end is above 0;
    - ``not worse``: it is above ``-margin``;
    - ``worse``: the upper end is below ``-margin``;
    - ``inconclusive``: a loss beyond the margin is neither ruled out nor established.

    ``scores`` maps the name of a scorer in the old table to its name in the new one, by default
    each name that both have to itself. ``values`` and ``replicates`` hold for both tables.
    """
    check_share("margin", margin)
    names = _scorers(new, old, scores)
    newer, older = (_complete(pools, settings, values, replicates) for pools in (new, old))
    shared = SharedQueries.of(newer, older, settings.min_pool)
    pairs = shared.pairs(names, settings)
    compared, clusters = len(shared.new_at), len(pairs.headroom)
    if clusters < 2:
        raise InputError(
            f"{new.source}: the queries that {old.source} has too lie in one cluster; a comparison "
            "needs at least two."
        )
    rng = np.random.default_rng(settings.seed)
    ends = pairs.ends(rng, settings.resamples, settings.rule.tail)
    baseline = Baseline(
        source=old.source,
        sha256=old.sha256,
        shared_queries=compared,
        left_out=shared.labels - compared,
        only_new=new.queries - shared.labels,
        only_old=old.queries - shared.labels,
        clusters=clusters,
        margin=margin,
        scorers={
            name: _comparison(end, names[name], shared.k, compared, clusters, margin)
            for name, end in zip(names, ends, strict=True)
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


def _complete(
    pools: ScoredPools,
    settings: Settings,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
) -> JudgedPools:
    """One of the two tables, with the value of every candidate."""
    judged, name = judgement(pools, values, as_list(replicates))
    if not judged.exact:
        raise InputError(
            f"{pools.source}: two tables are compared where every candidate has its value; "
            f"some of '{name}' are missing."
        )
    settings.check_values(pools.source, judged)
    return JudgedPools(pools, judged, name)


def _limits(table: JudgedPools, k: int) -> tuple[Floats, Floats, Floats]:
    """Least and most that the best of K by any score is worth, and headroom ``[queries]``.

    The headroom is that of the split oracle where the judge is noisy.
    """
    least, most, headroom = np.empty((3, table.pools.queries))
    for block in table.pools.blocks(BLOCK):
        value = block.take(table.values.value)
        least[block.queries] = best_of_k(-value, value, [k])[:, 0]
        most[block.queries] = top = oracle(value, [k])[:, 0]
        if table.values.replicates is not None:
            halves = np.stack([block.take(part) for part in table.values.replicates])
            top = split_oracle(halves, [k])[:, 0]
        headroom[block.queries] = top - value.mean(axis=1)
    return least, most, headroom


@dataclass(frozen=True, eq=False)
class SharedQueries:
    """The queries that both tables have, with K candidates or more in each."""

    new: JudgedPools
    old: JudgedPools
    new_at: Ints
    """Where each query is in ``new``."""
    old_at: Ints
    """Where the same query is in ``old``."""
    k: int
    """The K to compare at."""
    labels: int
    """How many queries both tables have, small pools included."""

    @classmethod
    def of(cls, new: JudgedPools, old: JudgedPools, min_pool: int | None = None) -> SharedQueries:
        """The queries of the same label, of which pools smaller than ``min_pool`` are left out.

        By default those below the 5 % quantile of sizes, where a query's size is that of the
        smaller of its two pools. K is the smallest size that is left.
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
        keep = size >= smallest_pool(several, min_pool)
        (newer, first), (older, second) = _part(new, new_at[keep]), _part(old, old_at[keep])
        return cls(newer, older, first, second, int(size[keep].min()), size.size)

    def pairs(self, names: Mapping[str, str], settings: Settings) -> PairedSums:
        """The changes of scorers by cluster; ``names`` maps them to their names in ``old``."""
        new, old, k = self.new, self.old, self.k
        change = [
            _pick(new, name, k)[self.new_at] - _pick(old, older, k)[self.old_at]
            for name, older in names.items()
        ]
        least_new, most_new, _ = (part[self.new_at] for part in _limits(new, k))
        least_old, most_old, headroom = (part[self.old_at] for part in _limits(old, k))
        has = headroom > rounding(np.abs(old.values.value).max())
        if not (headroom.mean() > 0 and has.any()):
            raise InputError(
                f"{old.pools.source}: at the shared queries the best of {k} candidates is worth no "
                "more than a random one, so there is no headroom to measure a difference in."
            )
        bounds = least_new - most_old, most_new - least_old
        if settings.value_range is not None:
            width = float(np.ptp(settings.value_range))
            bounds = np.full_like(headroom, -width), np.full_like(headroom, width)
        per_query = np.stack([headroom, *bounds, *change], axis=1)
        cluster = self._cluster()
        if settings.unit == "query":
            per_query = per_query[has] / headroom[has, None]
            cluster = None if cluster is None else cluster[has]
        sums = cluster_sums(per_query, cluster)
        unit, lowest, highest = sums[:, :3].T
        return PairedSums(sums[:, 3:], unit, lowest, highest, settings.value_range is not None)

    def _cluster(self) -> Ints | None:
        """The clusters of the new table or, where it has none, those of the old one."""
        for table, at in ((self.new, self.new_at), (self.old, self.old_at)):
            if table.pools.cluster is not None:
                return codes(table.pools.source, "cluster", table.pools.cluster)[0][at]
        return None


def _part(table: JudgedPools, queries: Ints) -> tuple[JudgedPools, Ints]:
    """Some of the queries, in the table's own order, and the place of each in that order."""
    chosen = np.zeros(table.pools.queries, dtype=bool)
    chosen[queries] = True
    return table.select(chosen), (np.cumsum(chosen) - 1)[queries]


def _pick(table: JudgedPools, scorer: str, k: int) -> Floats:
    """Value of the best of K by a scorer ``[queries]``, the mean over its seeds."""
    columns = list(table.pools.scorers[scorer].values())
    return picked_values(table.pools, table.values, columns, k)


def _matched(new: pa.Array, old: pa.Array) -> tuple[Ints, Ints]:
    """Positions of the labels that both have; a number and its text are one label."""
    where = {label: at for at, label in enumerate(old.cast(pa.string()).to_pylist())}
    labels = new.cast(pa.string()).to_pylist()
    both = [(at, where[label]) for at, label in enumerate(labels) if label in where]
    new_at, old_at = np.array(both, dtype=np.int64).reshape(-1, 2).T
    return new_at, old_at


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
    """Whether these ends follow from a declared range of values; a query may have no headroom."""

    def ends(self, rng: np.random.Generator, resamples: int, tail: float) -> list[Ends]:
        """Sum of changes over sum of headroom, each end of one-sided error ``tail``.

        As in the verdict, the draws count one cluster that was not seen: the new table has its
        worst candidates there (for the upper end its best) and the old one the opposite. No end
        lies inside of Student's. See :mod:`toptail.stats.ends`.
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


def _comparison(
    ends: Ends, old: str, k: int, queries: int, clusters: int, margin: float
) -> BaselineComparison:
    status: ComparisonStatus = "inconclusive"
    if ends.low > -margin:
        status = "better" if ends.low > 0 else "not worse"
    elif ends.high < -margin:
        status = "worse"
    needed = _queries_needed(ends, queries, margin) if status == "inconclusive" else None
    loss = f"a loss of more than {exact_percent(margin)}"
    more = f"; about {needed:,} queries would decide it" if needed else ""
    decided = {
        "better": "a gain is established",
        "not worse": f"{loss} is ruled out",
        "worse": f"{loss} is established",
        "inconclusive": f"{loss} is neither ruled out nor established{more}",
    }[status]
    value, low, high = (_percent(x) for x in ends)
    what = "queries" if clusters == queries else "clusters of queries"
    few = f" These are few: {clusters} {what}." if clusters < _FEW else ""
    reason = (
        f"At K = {k} the pick's value changed by {value} ({low} to {high}) of the old "
        f"headroom: {decided}.{few}"
    )
    return BaselineComparison(status, *ends, k, old, needed, reason)


def _queries_needed(ends: Ends, queries: int, margin: float) -> int | None:
    """About how many would decide it, if the estimate stays and widths shrink as 1/sqrt(n)."""
    distance = ends.value + margin
    half = ends.value - ends.low if distance > 0 else ends.high - ends.value
    if not half < 1e3 * abs(distance):
        return None
    return math.ceil(queries * (half / distance) ** 2)


def _percent(x: float) -> str:
    return f"{x:+.1%}".replace("-", "−") if math.isfinite(x) else "unknown"


def _warnings(shared: SharedQueries, alone: list[str]) -> list[str]:
    """Reasons to doubt the comparison; ``alone`` are the scorers that the old table lacks."""
    new, old, warnings = shared.new, shared.old, []
    if new.name != old.name:
        warnings.append(
            f"The new table is judged by '{new.name}' and the old one by '{old.name}': the "
            "difference is one of judges, too."
        )
    ends = [(table.values.value.min(), table.values.value.max()) for table in (new, old)]
    widths = sorted(high - low for low, high in ends)
    apart = max(low for low, _ in ends) > min(high for _, high in ends)
    if apart or widths[1] > _SCALES * widths[0]:
        (a, b), (c, d) = ends
        warnings.append(
            f"Values lie in {a:.3g} to {b:.3g} in the new table and in {c:.3g} to {d:.3g} in the "
            "old one: are they on one scale?"
        )
    small = shared.labels - len(shared.new_at)
    if small:
        warnings.append(
            f"{small:,} of {queries(shared.labels)} in both tables have fewer than {shared.k} "
            "candidates in one of them and are left out of the comparison."
        )
    if alone:
        warnings.append(f"Not compared with the old table: {named(alone)}.")
    return warnings
