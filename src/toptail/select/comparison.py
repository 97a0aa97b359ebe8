"""Selectors measured on one table, and the rules that choose among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, check_not_negative, check_share, check_whole, option
from toptail.judging.oracle import HeadroomEstimate, possible_per_query
from toptail.judging.values import SampledJudgement
from toptail.pools.columns import codes
from toptail.progress import Tick, no_tick
from toptail.select.base import Selector
from toptail.select.catalog import Catalog
from toptail.select.crossfit import (
    ClusterSums,
    ResampledChoices,
    SelectionRule,
    cross_fit,
    errors_to_show,
)
from toptail.select.exact import Best, Threshold
from toptail.select.measure import SelectorValues, measure_all
from toptail.select.read import ChoiceData
from toptail.stats import cluster_sums
from toptail.stats.best_of_k import Floats, KGrid

LEAST_CLUSTERS: Final = 10
"""With fewer queries (or clusters) there is nothing to choose on and to value on."""
BASELINES: Final = ("random", "best_of_k_max", "best_of_k_best", "oracle")
"""What a choice is compared with."""
FAMILY: Final = "family "
"""Begins the names of rules that look at one family of selectors."""


@dataclass(frozen=True)
class ChoiceSettings:
    """How a choice is made."""

    k_max: int | None = None
    """The largest K; by default the smallest pool."""
    cost: float = 0.0
    """Price of a candidate, in units of the value."""
    margin: float = 0.02
    """A simpler selector is chosen within this share of the headroom of the best."""
    abstain: float | None = None
    """What no answer is worth; None: selectors that abstain are shown and not chosen."""
    folds: int = 5
    """Parts of the queries for cross-fitting: each is valued by what the others chose."""
    repeats: int = 10
    """How often queries are split into parts."""
    resamples: int = 400
    """How often the choice is made again, with queries weighed at random, for the intervals."""
    level: float = 0.95
    """Confidence of intervals."""
    seed: int = 0
    """Seed of folds, resamples and draws."""

    def __post_init__(self) -> None:
        if self.k_max is not None:
            check_whole("k_max", self.k_max, 2)
        check_not_negative("cost", self.cost)
        check_not_negative("margin", self.margin)
        check_whole("folds", self.folds, 2)
        check_whole("repeats", self.repeats, 1)
        check_whole("resamples", self.resamples, 100)
        check_share("level", self.level)
        check_whole("seed", self.seed, 0)
        if self.abstain is not None and not np.isfinite(self.abstain):
            raise InputError(f"{option('abstain', self.abstain)} must be a finite number.")


@dataclass(frozen=True, eq=False)
class Comparison:
    """Selectors that were measured on a table, and the rules that choose among them."""

    values: SelectorValues
    """The value of each at each query, its cost subtracted."""
    totals: ClusterSums
    """The same, added up over clusters."""
    rules: Mapping[str, SelectionRule]
    """``choice`` is the choice itself; then what it is compared with, and each family alone."""
    eligible: Sequence[int]
    """The selectors that may be chosen."""
    ks: tuple[int, ...]
    """The K that were tried."""
    headroom: float
    """What the best choice gains over a random one at the largest K, costs left aside."""

    def valued(
        self, rules: Mapping[str, SelectionRule], settings: ChoiceSettings, tick: Tick = no_tick
    ) -> tuple[ResampledChoices, float]:
        """What rules choose with its value, and the cross-fitted value of the choice.

        The second says what choosing on all but one part of the queries is worth on that part.
        """
        rng = np.random.default_rng([settings.seed, 2])
        choices = ResampledChoices.of(
            self.totals,
            rules,
            rng,
            resamples=settings.resamples,
            level=settings.level,
            tick=tick,
        )
        fitted = cross_fit(
            self.totals.merged(rng),
            rules["choice"],
            rng,
            folds=settings.folds,
            repeats=settings.repeats,
            tick=tick,
        )
        return choices, fitted


def compare(
    data: ChoiceData,
    settings: ChoiceSettings,
    selectors: Sequence[Any] | None = None,
    tick: Tick = no_tick,
) -> Comparison:
    """Measure selectors (words, objects, functions; None: what the columns allow) on a table."""
    ks = KGrid.up_to(_k_max(data, settings)).deciding
    catalog = Catalog(data.inputs, data.filters, ks[-1])
    wanted = catalog.selectors(selectors, abstain=settings.abstain is not None)
    headroom = _headroom(data, ks[-1])
    known = float(headroom.mean())
    scale = float(data.judged.value.std()) if np.isnan(known) else known
    values = measure_all(
        data.inputs,
        data.judged.value,
        wanted,
        ks,
        seed=settings.seed,
        scale=scale if scale > 0 else 1.0,
        abstain=settings.abstain or 0.0,
        tick=tick,
    )
    totals = _totals(data, values, headroom, settings)
    # A selector that abstains may be chosen only where abstaining has a value.
    every = range(len(values.selectors))
    known_worth = settings.abstain is not None
    eligible = [
        at for at in every if known_worth or not isinstance(values.selectors[at], Threshold)
    ]
    rules = _rules(values, totals, eligible, ks[-1], settings)
    return Comparison(values, totals, rules, eligible, ks, known)


def _headroom(data: ChoiceData, k_max: int) -> Floats:
    """What the best of k_max is worth more than a random candidate ``[queries]``.

    Right on average where queries were judged whole by a design, and NaN where that is not known.
    """
    pools, judged, grid = data.inputs.pools, data.judged, KGrid.up_to(k_max)
    if judged.bounded:
        return np.full(pools.queries, np.nan)
    if isinstance(judged, SampledJudgement):
        return HeadroomEstimate.of(pools, judged, grid).expected[:, -1]
    best = possible_per_query(pools, judged, grid).oracle[:, -1]
    return np.asarray(best - np.add.reduceat(judged.value, pools.offsets[:-1]) / pools.sizes)


def _k_max(data: ChoiceData, settings: ChoiceSettings) -> int:
    if settings.k_max is None:
        return data.k_max
    if settings.k_max > data.k_max:
        raise InputError(
            f"{data.inputs.pools.source}: {option('k_max', settings.k_max)} is larger than "
            f"the smallest pool, which has {data.k_max} candidates."
        )
    return settings.k_max


def _totals(
    data: ChoiceData, values: SelectorValues, headroom: Floats, settings: ChoiceSettings
) -> ClusterSums:
    """Sums over clusters, after costs are subtracted from the values."""
    pools, cluster = data.inputs.pools, None
    if pools.cluster is not None:
        cluster, _ = codes(pools.source, pools.called.get("cluster", "cluster"), pools.cluster)
    counts = cluster_sums(np.ones((headroom.size, 1)), cluster)[:, 0]
    if counts.size < LEAST_CLUSTERS:
        raise InputError(
            f"{pools.source}: {counts.size} queries (or clusters) are too few to choose on some "
            f"and value on others; at least {LEAST_CLUSTERS} are needed."
        )
    cost = np.array([each.cost(each.k) for each in values.selectors])
    # The oracle looks at k_max candidates: it pays for those beyond the random pick's one.
    headroom = headroom - settings.cost * (max(each.k for each in values.selectors) - 1)
    values.value[...] -= settings.cost * cost
    sums = cluster_sums(values.value, cluster)
    keys = [(each.involved, each.k) for each in values.selectors]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    rank = np.array([places[key] for key in keys])
    return ClusterSums(sums, counts, cluster_sums(headroom[:, None], cluster)[:, 0], rank)


def _rules(
    values: SelectorValues,
    totals: ClusterSums,
    eligible: Sequence[int],
    k_max: int,
    settings: ChoiceSettings,
) -> dict[str, SelectionRule]:
    """The choice itself, what it is compared with, and each family of selectors alone."""
    plain = [at for at in eligible if is_plain(values.selectors[at])]
    last = tuple(at for at in plain if values.selectors[at].k == k_max)
    families: dict[str, list[int]] = {}
    for at in eligible[1:]:
        families.setdefault(values.selectors[at].family, [0]).append(at)
    choice = SelectionRule(tuple(eligible), last, margin=settings.margin)
    rng = np.random.default_rng([settings.seed, 3])
    shown = errors_to_show(totals, choice, rng, resamples=settings.resamples, level=settings.level)
    return {
        "choice": replace(choice, shown=shown),
        "random": SelectionRule((0,)),
        "best_of_k_max": SelectionRule(last),
        "best_of_k_best": SelectionRule((0, *plain)),
        **{f"{FAMILY}{name}": SelectionRule(tuple(ats)) for name, ats in families.items()},
    }


def is_plain(selector: Selector) -> bool:
    """Whether it is the best of K by one score, and nothing more."""
    return isinstance(selector, Best) and selector.score.how == "member"
