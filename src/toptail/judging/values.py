"""The values that an audit judges by, also where not every candidate was judged.

A design says with which chance each candidate was chosen for judging. From it every candidate
gets a pseudo-value that is right on average (:mod:`toptail.stats.sampled`), so that everything
that is a sum over candidates is estimated as from complete values. Without a design, unjudged
candidates count as a declared number, or as anything in the range of values.
:func:`judged_pools` is what hands pools over to an audit or a choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.pools.columns import MISSING_VALUE, as_list, codes
from toptail.pools.stream import StreamedPools
from toptail.stats.best_of_k import Floats, Ints, KGrid
from toptail.stats.sampled import Flags, cross_fitted, difference_values, query_centres

FOLDS: Final = 10
"""Parts of the clusters: predictions for one part are fitted on the others."""
LEAST_WHOLE: Final = 5
"""With fewer queries judged whole the headroom is bounded, not estimated."""
_NO_SHARE: Final = (
    "There is no captured share, since the headroom is only known within bounds; a step in shares "
    "of it is shown as the middle between its ends."
)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The values of all candidates, and what is known of how they were judged.

    In this class every candidate was judged. `StreamedJudgement` is the same for a table that is
    read in parts; `toptail.judging.values` has the classes for tables that were judged in part.
    """

    value: Floats
    """``[rows]``: the judged value, or the mean of its replicates."""
    replicates: Floats | None = None
    """``[r, rows]``: independent replicates of a noisy judge."""

    exact: ClassVar[bool] = True
    """Whether ``value`` holds each candidate's own value. Without that only sums over candidates
    can be estimated, and no rank correlation."""

    @property
    def bounded(self) -> bool:
        """Whether the headroom is only known to lie between two ends."""
        return False

    def k_grid(self, grid: KGrid) -> KGrid:
        """The K to compare: doublings where each step between two K has a worst case of its own."""
        return grid.doublings() if self.bounded else grid

    @property
    def labels(self) -> Floats:
        """Every value that a judge gave."""
        return self.value if self.replicates is None else self.replicates

    @property
    def largest(self) -> float:
        return float(np.abs(self.value).max())

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1, with both present."""
        value = self.value if self.exact else self.labels
        return bool(value.size and np.isin(value, (0.0, 1.0)).all() and value.min() < value.max())

    def outside(self, low: float, high: float) -> Floats:
        """The values that a judge gave below ``low`` or above ``high``."""
        every = self.labels
        return np.asarray(every[(every < low) | (every > high)])

    def at(self, pools: ScoredPools, part: slice) -> Judgement:
        """The values of consecutive queries."""
        rows = slice(int(pools.offsets[part.start]), int(pools.offsets[part.stop]))
        parts = self.replicates
        return Judgement(self.value[rows], None if parts is None else parts[:, rows])

    def of_queries(self, keep: NDArray[np.bool_], sizes: Ints, /) -> Judgement:
        """The judgement of the queries to ``keep [queries]``; ``sizes`` are those of all pools."""
        rows = np.repeat(keep, sizes)
        columns = ((name, column) for name, column in vars(self).items() if column is not None)
        return replace(self, **{name: column[..., rows] for name, column in columns})

    def labels_content(self, pools: ScoredPools) -> dict[str, float]:
        """How many candidates were judged, as ``audit.json`` stores it."""
        return {
            "labels": int(self.labels.size),
            "candidates": pools.rows,
            "whole_queries": pools.queries,
            "pairs": False,
        }

    def how(self, _ranged: bool, /) -> str:
        """Where the headroom and its ends come from; with ``ranged`` a range is declared."""
        return "Every candidate was judged."


@dataclass(frozen=True, eq=False)
class StreamedJudgement(Judgement):
    """The values of a table that is read some queries at a time.

    Only the smallest and the largest value of each query stay in memory; ``value`` is empty.
    """

    columns: tuple[str, ...] = field(kw_only=True)
    """The value column, or those of replicates."""
    low: Floats = field(kw_only=True)
    """The smallest value of each query ``[queries]``."""
    high: Floats = field(kw_only=True)
    """The largest value of each query ``[queries]``."""
    zero_or_one: NDArray[np.bool_] = field(kw_only=True)
    """Whether a query has no other values than 0 and 1 ``[queries]``."""

    @classmethod
    def of(cls, pools: ScoredPools, columns: Sequence[str]) -> StreamedJudgement:
        """Go through the value columns once, for the smallest and largest value of each query."""
        several = len(columns) > 1
        low, high = np.empty(pools.queries), np.empty(pools.queries)
        binary = np.empty(pools.queries, dtype=bool)
        result = cls(
            np.empty(0),
            np.empty((len(columns), 0)) if several else None,
            columns=tuple(columns),
            low=low,
            high=high,
            zero_or_one=binary,
        )

        def ends(at: slice) -> tuple[Floats, Floats, NDArray[np.bool_]]:
            value, starts = result.at(pools, at).value, offsets_at(pools, at)[:-1]
            known = np.isin(value, (0.0, 1.0))
            return (
                np.minimum.reduceat(value, starts),
                np.maximum.reduceat(value, starts),
                np.logical_and.reduceat(known, starts),
            )

        for at, part in pools.over(ends):
            low[at], high[at], binary[at] = part
        return result

    @property
    def largest(self) -> float:
        return float(max(abs(self.low.min()), abs(self.high.max())))

    @property
    def binary(self) -> bool:
        return bool(self.zero_or_one.all() and self.low.min() < self.high.max())

    def outside(self, low: float, high: float) -> Floats:
        return np.concatenate([self.low[self.low < low], self.high[self.high > high]])

    def at(self, pools: ScoredPools, part: slice) -> Judgement:
        columns = list(pools.values_at(part, self.columns).values())
        if len(columns) == 1:
            return Judgement(columns[0])
        stack = np.stack(columns)
        return Judgement(stack.mean(axis=0), stack)

    def of_queries(self, keep: NDArray[np.bool_], _sizes: Ints, /) -> Judgement:
        names = ("low", "high", "zero_or_one")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})


def offsets_at(pools: ScoredPools, at: slice) -> Ints:
    """Where the pools of consecutive queries start, counted from the first of them."""
    return np.asarray(pools.offsets[at.start : at.stop + 1] - pools.offsets[at.start])


@dataclass(frozen=True, eq=False)
class SampledJudgement(Judgement):
    """Pseudo-values of a table that was judged in part by a design; all ``[rows]``.

    ``value`` is right on average. It is not a candidate's own value, and may lie outside of the
    range of values.
    """

    observed: Floats = field(kw_only=True)
    """The judged values, NaN where a candidate was not judged."""
    whole: Floats = field(kw_only=True)
    """The chance that all candidates of the row's query were judged; NaN unless they were."""
    fold: Ints = field(kw_only=True)
    """The part of the clusters that the row's query lies in."""
    error: Floats = field(kw_only=True)
    """Distance of a judged value from its prediction; NaN where a candidate was not judged."""
    cheap: Floats | None = field(default=None, kw_only=True)
    """A cheap judge's values of all candidates."""
    pairs: Floats | None = field(default=None, kw_only=True)
    """In how many judged pairs each candidate is, where pairs were judged and not candidates."""
    likely: Floats | None = field(default=None, kw_only=True)
    """Values of candidates that were chosen by draws of their own, predictions elsewhere; does not
    depend on which queries were judged whole. None where the design does not tell the two apart."""

    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, pools: ScoredPools, value: Floats, name: str, cheap: Floats | None, seed: int
    ) -> SampledJudgement:
        """Pseudo-values from the values of some candidates, NaN elsewhere, and the design.

        A cheap judge predicts by its deviations inside the query and by its mean there. Where the
        design says which candidates were chosen by draws of their own, the query's other judged
        candidates correct the prediction.
        """
        chance = _checked_chances(pools, value, name)
        query = np.repeat(np.arange(pools.queries), pools.sizes)
        fold = _folds(pools, seed)[query]
        features = np.empty((value.size, 0))
        if cheap is not None:
            mean = (np.bincount(query, cheap) / pools.sizes)[query]
            features = np.stack([cheap - mean, mean], axis=1)
        predicted, likely = cross_fitted(value, chance, features, fold), None
        if "own" in pools.design:
            own = (pools.design["own"] == 1) & ~np.isnan(value)
            missed = np.where(own, value - predicted, 0.0)
            predicted = predicted + query_centres(missed, own, query, fold)
            likely = np.where(own, value, predicted) if "p_whole" in pools.design else None
        whole = _chance_of_whole(pools.design, value, query, pools.queries)
        if (~np.isnan(whole[pools.offsets[:-1]])).sum() < LEAST_WHOLE:
            whole = np.full(value.size, np.nan)
        return cls(
            difference_values(value, chance, predicted),
            observed=value,
            whole=whole,
            fold=fold,
            error=np.abs(value - predicted),
            cheap=cheap,
            likely=likely,
        )

    @classmethod
    def of_pairs(cls, pools: ScoredPools, value: Floats, seed: int) -> SampledJudgement:
        """Pseudo-values that judged pairs give (:mod:`toptail.judging.labels`)."""
        fold, none = np.repeat(_folds(pools, seed), pools.sizes), np.full(pools.rows, np.nan)
        pairs = pools.design["pairs"]
        return cls(value, observed=none, whole=none, fold=fold, error=none, pairs=pairs)

    @property
    def bounded(self) -> bool:
        return bool(np.isnan(self.whole).all())

    @property
    def labels(self) -> Floats:
        return np.asarray(self.observed[~np.isnan(self.observed)])

    def labels_content(self, pools: ScoredPools) -> dict[str, float]:
        whole = int((~np.isnan(self.whole[pools.offsets[:-1]])).sum())
        content = super().labels_content(pools) | {"whole_queries": whole}
        if self.pairs is not None:
            content |= {"labels": int(self.pairs.sum()) // 2, "pairs": True}
        return content

    def how(self, ranged: bool, /) -> str:
        if self.pairs is not None:
            return (
                "Pairs were judged: a candidate's value is its chance to beat a random other one "
                "of its query. The headroom is bounded: at least the gain of the best selector, "
                f"chosen on other queries; at most certain victory. {_NO_SHARE}"
            )
        if not self.bounded:
            return (
                "Curves are weighted by the chances of the design, and the headroom is that of the "
                "queries judged whole; both are right on average, and their noise is in the "
                "intervals."
            )
        most = (
            "the declared range" if ranged else "not known, so that no scorer can be called unsafe"
        )
        return (
            "Curves are weighted by the chances of the design. It does not say of enough queries "
            "that they were judged whole, so the headroom is bounded: at least the gain of the "
            f"best selector, chosen on other queries; at most {most}. An unseen cluster may lose "
            f"{_range_words(ranged)}. {_NO_SHARE}"
        )


@dataclass(frozen=True, eq=False)
class BoundedJudgement(Judgement):
    """Values of which the unjudged ones may be anything in a range; ``value`` is its middle."""

    low: Floats = field(kw_only=True)
    """The least that each value can be ``[rows]``."""
    high: Floats = field(kw_only=True)
    """The most that each value can be ``[rows]``."""

    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, pools: ScoredPools, value: Floats, name: str, value_range: tuple[float, float] | None
    ) -> BoundedJudgement:
        """Ends of the values; the range is the declared one, or else that of the judged values."""
        blank = np.isnan(value)
        _check_any(pools, blank, name)
        least, most = value_range or (float(np.nanmin(value)), float(np.nanmax(value)))
        low, high = np.where(blank, least, value), np.where(blank, most, value)
        return cls((low + high) / 2, low=low, high=high)

    @property
    def bounded(self) -> bool:
        return True

    @property
    def labels(self) -> Floats:
        return np.asarray(self.value[self.low == self.high])

    @property
    def middle(self) -> float:
        """What an unjudged candidate counts as in curves: the middle of the range."""
        return float(self.low.min() + self.high.max()) / 2

    def labels_content(self, pools: ScoredPools) -> dict[str, float]:
        missing = np.add.reduceat(self.low != self.high, pools.offsets[:-1])
        whole = {"whole_queries": int((missing == 0).sum()), "unjudged_as": self.middle}
        return super().labels_content(pools) | whole

    def how(self, ranged: bool, /) -> str:
        return (
            f"An unjudged candidate may be worth anything from {self.low.min():g} to "
            f"{self.high.max():g}, {_range_words(ranged)}: values and curves count it as "
            f"{self.middle:g}, the middle, and a status is given only where the worst and the best "
            f"case agree. {_NO_SHARE}"
        )


def _range_words(ranged: bool) -> str:
    return "the declared range" if ranged else "the range of the judged values"


@dataclass(frozen=True, eq=False)
class JudgedPools:
    """Pools and the values that their candidates are judged by: what an audit or a choice takes."""

    pools: ScoredPools
    values: Judgement
    name: str
    """The name of the value column, or of all replicates."""
    replicates: list[str] | None = None
    """The value columns that are replicates of one noisy judge."""
    notes: tuple[str, ...] = ()
    """What a reader of the audit should know of the judging."""
    cheap: JudgedPools | None = None
    """The same pools as a cheap judge alone judges them, where there is one."""

    def select(self, keep: Flags) -> JudgedPools:
        """The queries where ``keep [queries]`` is true, in order."""
        if keep.all():
            return self
        values = self.values.of_queries(keep, self.pools.sizes)
        return replace(self, pools=self.pools.select(keep), values=values)


def judged_pools(
    pools: ScoredPools,
    values: str | None = None,
    replicates: str | Sequence[str] | None = None,
    *,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
    value_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> JudgedPools:
    """Pools with the value of every candidate, or with what is known of it.

    ``values``, ``replicates``, ``cheap`` and ``unjudged`` are those of :func:`toptail.audit`;
    ``seed`` parts the clusters for fitting predictions. Where each query was judged whole or not
    at all with the same chance, the judged queries alone are returned: they are a random sample.
    """
    several = as_list(replicates)
    judged, name = judgement(
        *(pools, values, several),
        cheap=cheap,
        unjudged=unjudged,
        value_range=value_range,
        seed=seed,
    )
    notes: tuple[str, ...] = ()
    if isinstance(judged, SampledJudgement) and _whole_alike(judged, pools.design):
        full = ~np.isnan(judged.observed[pools.offsets[:-1]])
        notes = (
            f"{int(full.sum()):,} of {pools.queries:,} queries were judged, each whole and with "
            "the same chance: the audit is that of those queries.",
        )
        judged = Judgement(judged.observed[np.repeat(full, pools.sizes)])
        pools = pools.select(full)
    alone = None
    if cheap is not None:
        alone = judged_pools(pools, cheap, value_range=value_range, seed=seed)
    return JudgedPools(pools, judged, name, several, (*pools.notes, *notes), alone)


def judgement(
    pools: ScoredPools,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    *,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
    value_range: tuple[float, float] | None = None,
    seed: int = 0,
) -> tuple[Judgement, str]:
    """The values to judge by, from one value column or several replicates, and their name.

    ``cheap`` and ``unjudged`` say what to make of missing values, as :func:`toptail.audit` does;
    ``seed`` parts the clusters for fitting predictions.
    """
    if values and replicates:
        raise InputError(f"Give either {option('values')} or {option('replicates')}, not both.")
    if values is not None and not isinstance(values, str):
        raise InputError(
            f"{option('values', values)} must name the one column to judge by; independent "
            f"replicates of one judge go to {option('replicates')}."
        )
    for name in (*([values] if values else []), *(replicates or ())):
        if name not in pools.values:
            raise InputError(
                f"{pools.source}: there is no value column '{name}'; "
                f"the value columns are {', '.join(pools.values)}."
            )
    if replicates:
        return _replicated(pools, replicates), " + ".join(replicates)
    others = [name for name in pools.values if name != cheap]
    if values is None and len(others) > 1:
        names = ", ".join(others)
        raise InputError(
            f"{pools.source}: there are several value columns ({names}); choose one with "
            f"{option('values')}, or name independent replicates of one judge with "
            f"{option('replicates')}."
        )
    name = values or next(iter(others), cheap) or ""
    if isinstance(pools, StreamedPools):
        return StreamedJudgement.of(pools, [name]), name
    value, cheap_value = pools.values[name], _cheap_values(pools, cheap, name)
    if "pairs" in pools.design:
        return SampledJudgement.of_pairs(pools, value, seed), name
    if not np.isnan(value).any():
        return Judgement(value), name
    if unjudged == "bounds":
        return BoundedJudgement.of(pools, value, name, value_range), name
    if unjudged is not None:
        return Judgement(_fill_in(pools, value, name, unjudged)), name
    return SampledJudgement.of(pools, value, name, cheap_value, seed), name


def _replicated(pools: ScoredPools, replicates: Sequence[str]) -> Judgement:
    if len(set(replicates)) < 2:
        named = option("replicates", replicates)
        raise InputError(f"{named} must name at least two different value columns.")
    if isinstance(pools, StreamedPools):
        return StreamedJudgement.of(pools, replicates)
    stack = np.stack([pools.values[name] for name in replicates])
    if np.isnan(stack).any():
        raise InputError(
            f"{pools.source}: {option('replicates', replicates)} must be there for every "
            f"candidate; some are missing."
        )
    return Judgement(stack.mean(axis=0), stack)


def _cheap_values(pools: ScoredPools, cheap: str | None, name: str) -> Floats | None:
    if cheap is None:
        return None
    if cheap == name or cheap not in pools.values:
        raise InputError(
            f"{pools.source}: {option('cheap', cheap)} must name a value column beside '{name}'."
        )
    if np.isnan(pools.values[cheap]).any():
        raise InputError(
            f"{pools.source}: the cheap judge '{cheap}' must judge every candidate; "
            "some of its values are missing."
        )
    return pools.values[cheap]


def _fill_in(pools: ScoredPools, value: Floats, name: str, number: object) -> Floats:
    if isinstance(number, bool) or not isinstance(number, int | float) or not np.isfinite(number):
        raise InputError(
            f"{pools.source}: {option('unjudged', number)} must be a finite number that unjudged "
            f"candidates of '{name}' count as, or 'bounds'."
        )
    return np.where(np.isnan(value), float(number), value)


def _whole_alike(judged: SampledJudgement, design: Mapping[str, Floats]) -> bool:
    """Whether queries were judged whole or not at all, all with the same chance."""
    if "p_judged" not in design or "p_whole" in design or judged.cheap is not None:
        return False
    known = ~np.isnan(judged.observed)
    chance = design["p_judged"][known]
    return not np.isnan(judged.whole[known]).any() and bool((chance == chance[0]).all())


def _checked_chances(pools: ScoredPools, value: Floats, name: str) -> Floats:
    """The chances of the judged candidates, NaN elsewhere; each judged one must have a chance."""
    blank = np.isnan(value)
    if "p_judged" not in pools.design:
        at = int(np.argmax(blank)) + 1
        raise InputError(
            f"{pools.source}: column '{name}' has a missing value (candidate {at}); "
            f"{MISSING_VALUE}."
        )
    chance = pools.design["p_judged"]
    lacking = ~blank & np.isnan(chance)
    _check_any(pools, blank, name)
    if lacking.any():
        query = int(np.searchsorted(pools.offsets, int(np.argmax(lacking)), side="right")) - 1
        column = pools.called.get("p_judged", "p_judged")
        raise InputError(
            f"{pools.source}: a candidate of query '{pools.query[query]}' was judged, but its "
            f"'{column}' is blank; say with which chance it was chosen."
        )
    return np.where(blank, np.nan, chance)


def _check_any(pools: ScoredPools, blank: Flags, name: str) -> None:
    if blank.all():
        raise InputError(f"{pools.source}: column '{name}' holds no value; judge some candidates.")


def _folds(pools: ScoredPools, seed: int) -> Ints:
    """The part of the clusters that each query lies in ``[queries]``, at random by the seed."""
    cluster = np.arange(pools.queries)
    if pools.cluster is not None:
        cluster = codes(pools.source, "cluster", pools.cluster)[0]
    order = np.random.default_rng([seed, 1]).permutation(int(cluster.max()) + 1)
    return np.asarray(order[cluster] % FOLDS)


def _chance_of_whole(
    design: Mapping[str, Floats], value: Floats, query: Ints, queries: int
) -> Floats:
    """The chance that a query was judged whole, for those that were ``[rows]``, else NaN.

    A plan chooses queries as a whole with one chance w, and candidates of the others by
    independent draws: w + (1 - w) times the product of those. Without a plan it is known where
    queries were judged whole or not at all.
    """
    judged = ~np.isnan(value)
    full = np.bincount(query, ~judged, queries) == 0
    chance = design["p_judged"]
    if "p_whole" in design:
        w = np.where(np.isnan(design["p_whole"]), 0.0, design["p_whole"])
        alone = np.where(w < 1, (chance - w) / np.where(w < 1, 1.0 - w, 1.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.clip(np.where(np.isnan(alone), 1.0, alone), 0.0, 1.0))
            product = np.exp(np.bincount(query, logs, queries))[query]
        return np.where(full[query], w + (1.0 - w) * product, np.nan)
    some = np.bincount(query, judged, queries) > 0
    known = np.where(np.isnan(chance), 0.0, chance)
    low, high = np.full(queries, np.inf), np.full(queries, -np.inf)
    np.minimum.at(low, query, known)
    np.maximum.at(high, query, known)
    if (some & ~full).any() or (low[full] != high[full]).any():
        return np.full(value.size, np.nan)
    return np.where(full[query], chance, np.nan)
