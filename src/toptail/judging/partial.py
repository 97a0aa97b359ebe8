"""Tables of which only some candidates were judged: what their values and headroom may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from toptail.errors import InputError, option
from toptail.pools import ScoredPools
from toptail.pools.columns import UNSAID, codes
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.sampled import Flags, cross_fitted, difference_values, query_centres

FOLDS = 10
"""Parts of the clusters: what is estimated for one is estimated from the others."""
LEAST_WHOLE = 5
"""With fewer queries judged whole the headroom is bounded, not estimated."""


@dataclass(frozen=True, eq=False)
class Sampled:
    """What is known of a table that was judged in part, by a design; all ``[rows]``."""

    value: Floats
    """The judged values, NaN where there is none."""
    whole: Floats
    """The chance that all candidates of the row's query were judged; NaN unless they were."""
    fold: Ints
    """The part of the clusters that the row's query lies in."""
    off: Floats
    """How far a judged value lies from what was predicted; NaN where there is none."""
    cheap: Floats | None = None
    """What a cheap judge says of every candidate."""
    pairs: Floats | None = None
    """In how many judged pairs each candidate is, where pairs were judged and not candidates."""
    known: Floats | None = None
    """Values as candidates' own draws show them, predictions elsewhere: nothing here looks at
    which queries were judged whole. None where the design does not tell the two apart."""

    @property
    def judged(self) -> Flags:
        """Which candidates were judged."""
        return ~np.isnan(self.value)

    @property
    def oracle_unknown(self) -> bool:
        """Whether the design does not say of some queries that they were judged whole."""
        return bool(np.isnan(self.whole).all())

    def queries_alike(self, design: Mapping[str, Floats]) -> bool:
        """Whether queries were judged whole or not at all, all with the same chance."""
        if "p_judged" not in design or "p_whole" in design or self.cheap is not None:
            return False
        judged = self.judged
        chance = design["p_judged"][judged]
        whole = not np.isnan(self.whole[judged]).any()
        return whole and bool((chance == chance[0]).all())

    def select(self, rows: Flags) -> Sampled:
        """The same of some of the candidates."""
        more = (
            None if each is None else each[rows] for each in (self.cheap, self.pairs, self.known)
        )
        return Sampled(self.value[rows], self.whole[rows], self.fold[rows], self.off[rows], *more)


def check_design(pools: ScoredPools, value: Floats, name: str) -> Floats:
    """The chances of the judged; an :class:`InputError` where values lack a reason or a chance."""
    blank = np.isnan(value)
    if "p_judged" not in pools.design:
        at = int(np.argmax(blank)) + 1
        raise InputError(
            f"{pools.source}: column '{name}' has a missing value (candidate {at}); {UNSAID}."
        )
    chance = pools.design["p_judged"]
    lacking = ~blank & np.isnan(chance)
    if blank.all():
        raise InputError(f"{pools.source}: column '{name}' holds no value; judge some candidates.")
    if lacking.any():
        query = int(np.searchsorted(pools.offsets, int(np.argmax(lacking)), side="right")) - 1
        column = pools.called.get("p_judged", "p_judged")
        raise InputError(
            f"{pools.source}: a candidate of query '{pools.query[query]}' was judged, but its "
            f"'{column}' is blank; say with which chance it was chosen."
        )
    return np.where(blank, np.nan, chance)


def sampled(
    pools: ScoredPools, value: Floats, name: str, cheap: Floats | None, seed: int
) -> tuple[Floats, Sampled]:
    """Values that are right on average ``[rows]``, and what they were made from.

    A cheap judge predicts by its deviations inside the query and by its mean there. Where the
    design says which candidates were chosen by draws of their own, the query's other judged
    candidates correct the prediction.
    """
    chance = check_design(pools, value, name)
    query = np.repeat(np.arange(pools.queries), pools.sizes)
    fold = folds(pools, seed)[query]
    features = np.empty((value.size, 0))
    if cheap is not None:
        mean = (np.bincount(query, cheap) / pools.sizes)[query]
        features = np.stack([cheap - mean, mean], axis=1)
    predicted, known = cross_fitted(value, chance, features, fold), None
    if "own" in pools.design:
        own = (pools.design["own"] == 1) & ~np.isnan(value)
        missed = np.where(own, value - predicted, 0.0)
        predicted = predicted + query_centres(missed, own, query, fold)
        known = np.where(own, value, predicted) if "p_whole" in pools.design else None
    whole = _whole(pools.design, value, query, pools.queries)
    if (~np.isnan(whole[pools.offsets[:-1]])).sum() < LEAST_WHOLE:
        whole = np.full(value.size, np.nan)
    found = Sampled(value, whole, fold, np.abs(value - predicted), cheap, known=known)
    return difference_values(value, chance, predicted), found


def preferred(pools: ScoredPools, seed: int) -> Sampled:
    """What is known of a table of which pairs were judged: no value for certain."""
    fold = np.repeat(folds(pools, seed), pools.sizes)
    none = np.full(pools.rows, np.nan)
    return Sampled(none, none, fold, none, pairs=pools.design["pairs"])


def folds(pools: ScoredPools, seed: int) -> Ints:
    """The part of the clusters that each query lies in ``[queries]``, at random by the seed."""
    cluster = np.arange(pools.queries)
    if pools.cluster is not None:
        cluster = codes(pools.source, "cluster", pools.cluster)[0]
    order = np.random.default_rng([seed, 1]).permutation(int(cluster.max()) + 1)
    return np.asarray(order[cluster] % FOLDS)


def _whole(design: Mapping[str, Floats], value: Floats, query: Ints, queries: int) -> Floats:
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


def between(
    pools: ScoredPools, value: Floats, name: str, value_range: tuple[float, float] | None
) -> tuple[Floats, Floats]:
    """The least and the most that every value can be: its range where it was not judged.

    That is the declared range, or else that of the values that were judged.
    """
    blank = np.isnan(value)
    if blank.all():
        raise InputError(f"{pools.source}: column '{name}' holds no value; judge some candidates.")
    low, high = value_range or (float(np.nanmin(value)), float(np.nanmax(value)))
    return np.where(blank, low, value), np.where(blank, high, value)


def filled(pools: ScoredPools, value: Floats, name: str, number: object) -> Floats:
    """The values with a number in the place of those that are missing."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not np.isfinite(number):
        raise InputError(
            f"{pools.source}: {option('unjudged', number)} must be a finite number that unjudged "
            f"candidates of '{name}' count as, or 'bounds'."
        )
    return np.where(np.isnan(value), float(number), value)
