"""From a table to ``choice.json``: selectors measured and compared, and one chosen to deploy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, option
from toptail.io.json_files import jsonable
from toptail.judging.oracle import HeadroomEstimate, limits_per_query
from toptail.judging.values import SampledJudgement
from toptail.pools.columns import codes
from toptail.pools.scored import CANNOT_CHOOSE, ScoredPools
from toptail.progress import Tick, no_tick
from toptail.provenance import record_of
from toptail.select.base import RankSelector, Selector, rank_weights
from toptail.select.catalog import FEW, Catalog
from toptail.select.crossfit import (
    NOTHING,
    ClusterSums,
    ResampledChoices,
    SelectionRule,
    cross_fit,
    errors_to_show,
)
from toptail.select.inputs import ChoiceData, ChoiceSettings
from toptail.select.measure import SelectorValues, measure_all
from toptail.select.selectors import Best, RandomPick, Threshold
from toptail.stats import cluster_sums, divergence_bound
from toptail.stats.best_of_k import Floats, KGrid

FORMAT: Final = "toptail-choice-2"
LEAST_CLUSTERS: Final = 10
"""With fewer queries (or clusters) there is nothing to choose on and to value on."""
BASELINES: Final = ("random", "best_of_k_max", "best_of_k_best", "oracle")
"""Names of the selectors that a choice is compared with."""
FAMILY: Final = "family "
"""Begins the names of rules that look at one family of selectors."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Selectors that were measured on a table, and the rules that choose among them."""

    values: SelectorValues
    """The value of each at each query, its cost subtracted."""
    totals: ClusterSums
    """The values, added up over the queries of each cluster."""
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
        """What each rule chooses with its value, and the cross-fitted value of the choice.

        Cross-fitted: what choosing on all but one fold of the queries is worth on that fold.
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
    catalog = Catalog(data, ks[-1])
    wanted = catalog.selectors(selectors, abstain=settings.abstain is not None)
    headroom = _headroom(data, ks[-1])
    known = float(headroom.mean())
    scale = float(data.judged.value.std()) if np.isnan(known) else known
    values = measure_all(
        data,
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
    pools, judged, grid = data.pools, data.judged, KGrid.up_to(k_max)
    if judged.bounded:
        return np.full(pools.queries, np.nan)
    if isinstance(judged, SampledJudgement):
        return HeadroomEstimate.of(pools, judged, grid).expected[:, -1]
    best = limits_per_query(pools, judged, grid).oracle[:, -1]
    return np.asarray(best - np.add.reduceat(judged.value, pools.offsets[:-1]) / pools.sizes)


def _k_max(data: ChoiceData, settings: ChoiceSettings) -> int:
    if settings.k_max is None:
        return data.k_max
    if settings.k_max > data.k_max:
        raise InputError(
            f"{data.pools.source}: {option('k_max', settings.k_max)} is larger than "
            f"the smallest pool, which has {data.k_max} candidates."
        )
    return settings.k_max


def _totals(
    data: ChoiceData, values: SelectorValues, headroom: Floats, settings: ChoiceSettings
) -> ClusterSums:
    """Sums over clusters, after costs are subtracted from the values."""
    pools, cluster = data.pools, None
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
    keys = [(each.total_complexity, each.k) for each in values.selectors]
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


# ----------------------------------------------------------------- the content of choice.json


def choice_content(
    data: ChoiceData,
    settings: ChoiceSettings,
    *,
    selectors: Sequence[Any] | None = None,
    command: str | None = None,
    tick: Tick = no_tick,
) -> tuple[dict[str, Any], Selector]:
    """The content of ``choice.json``, and the selector to deploy."""
    pools = data.pools
    compared = compare(data, settings, selectors, tick)
    choices, fitted = compared.valued(compared.rules, settings, tick)
    values, totals = compared.values, compared.totals
    deployed = values.selectors[choices.final["choice"]]
    if isinstance(deployed, RandomPick):
        deployed = replace(deployed, seed=settings.seed)
    ends = _Intervals(choices, *_range(data, compared, settings))
    value = ends.value("choice")
    own = float(choices.mean[choices.final["choice"]])
    content: dict[str, Any] = {
        "format": FORMAT,
        "kind": "choice",
        **_named(deployed),
        **value,
        "baselines": {name: ends.value(name) for name in BASELINES},
        "differences": [{"against": name, **ends.lead("choice", name)} for name in BASELINES],
        "plain": _named(values.selectors[choices.final["best_of_k_max"]]),
        "stability": _stability(choices, values),
        "cross_fitted": fitted,
        "naive": {
            "value": own,
            "optimism": own - value["value"],
            "highest": float(totals.mean[list(compared.eligible)].max()),
        },
        "chosen": [
            {**_named(values.selectors[at]), "share": share}
            for at, share in choices.share("choice").items()
        ],
        "families": _families(choices, compared, ends),
        "curves": _curves(compared, int(np.median(pools.sizes)), settings),
        "coverage": _coverage(values, settings),
        "tried": len(compared.eligible),
        "monte_carlo": _monte_carlo(values, compared.headroom),
        "queries": pools.queries,
        "candidates": pools.rows,
        "clusters": totals.counts.size,
        "k_max": compared.ks[-1],
        "ks": list(compared.ks),
        "headroom": compared.headroom,
        "value_column": data.value,
        "value_range": data.value_range,
        "settings": {**vars(settings), "k_max": compared.ks[-1]},
        "warnings": [*data.warnings, *_warnings(values, pools)],
        "notes": _notes(data, settings, usual=selectors is None),
        "record": record_of(pools, settings.seed, command or "toptail.choose(...)"),
    }
    if not data.judged.exact:
        content["judging"] = data.judged.labels_content(pools)
    content["answer"] = _answer(content, deployed)
    clean: dict[str, Any] = jsonable(content)
    return clean, deployed


@dataclass(frozen=True, eq=False)
class _Intervals:
    """Values and differences with their intervals, inside the range that values have."""

    choices: ResampledChoices
    low: float
    high: float

    def value(self, rule: str, *, corrected: bool = True) -> dict[str, float]:
        entry = self.choices.lead(rule, NOTHING, corrected=corrected)
        return {end: float(np.clip(x, self.low, self.high)) for end, x in entry.items()}

    def lead(self, first: str, second: str, *, corrected: bool = True) -> dict[str, float]:
        entry, most = self.choices.lead(first, second, corrected=corrected), self.high - self.low
        value, low, high = (float(np.clip(x, -most, most)) for x in entry.values())
        return {"difference": value, "low": low, "high": high}


def _range(data: ChoiceData, compared: Comparison, settings: ChoiceSettings) -> tuple[float, float]:
    """The lowest and the highest that a mean can be, costs and abstention included."""
    if data.value_range is None:
        return -np.inf, np.inf
    nothing = [] if settings.abstain is None else [settings.abstain]
    ends = [*data.value_range, *nothing]
    return min(ends) - settings.cost * compared.ks[-1], max(ends) - settings.cost


def _stability(choices: ResampledChoices, values: SelectorValues) -> dict[str, float]:
    final = choices.final["choice"]
    shares = choices.share("choice")
    family = values.selectors[final].family
    alike = sum(x for at, x in shares.items() if values.selectors[at].family == family)
    return {"selector": shares.get(final, 0.0), "family": float(alike)}


def _named(selector: Selector) -> dict[str, Any]:
    return {
        "family": selector.family,
        "selector": selector.called,
        "k": selector.k,
        "parameters": selector.parameters,
    }


def _families(
    choices: ResampledChoices, compared: Comparison, ends: _Intervals
) -> list[dict[str, Any]]:
    """Each family alone: the parameters and K with the highest mean, which is not corrected."""
    values = compared.values
    rows = []
    for rule in (name for name in compared.rules if name.startswith(FAMILY)):
        at = choices.final[rule]
        rows.append(
            {
                **_named(values.selectors[at]),
                "family": rule.removeprefix(FAMILY),
                **ends.value(rule, corrected=False),
                "difference": ends.lead(rule, "best_of_k_max", corrected=False),
                "error": float(values.error[at]),
            }
        )
    return sorted(rows, key=lambda row: -row["value"])


def _curves(compared: Comparison, n: int, settings: ChoiceSettings) -> list[dict[str, Any]]:
    """Value against K of each family with the parameters that are best at that K."""
    selectors, mean, ks = compared.values.selectors, compared.totals.mean, compared.ks
    curves: dict[str, dict[int, int]] = {}
    for at, each in enumerate(selectors[1:], start=1):
        if isinstance(each, Threshold) and settings.abstain is None:
            continue
        own = curves.setdefault(each.family, {})
        if each.k not in own or mean[at] > mean[own[each.k]]:
            own[each.k] = at
    return [
        {
            "family": name,
            "k": list(ks),
            "value": [float(mean[0]), *(float(mean[own[k]]) for k in ks[1:])],
            "kl": [0.0, *(_divergence(selectors[own[k]], n, k) for k in ks[1:])],
            "cost": [1.0, *(selectors[own[k]].cost(k) for k in ks[1:])],
        }
        for name, own in curves.items()
    ]


def _divergence(selector: Selector, n: int, k: int) -> float:
    """KL to a random pick of n, in nats: of the ranks picked, or the bound for any selector."""
    if not isinstance(selector, RankSelector):
        return float(divergence_bound(k))
    weights = rank_weights(selector, n, k)
    used = weights[weights > 0]
    return float((used * np.log(n * used)).sum())


def _coverage(values: SelectorValues, settings: ChoiceSettings) -> list[dict[str, Any]]:
    """Value of what is answered against the share that is, for selectors that abstain."""
    nothing = settings.abstain or 0.0
    rows = []
    for at, each in enumerate(values.selectors):
        if not isinstance(each, Threshold):
            continue
        share = float(values.coverage[at])
        value = float(values.value[:, at].mean()) + settings.cost * each.cost(each.k)
        answered = (value - nothing * (1 - share)) / share if share > 0 else None
        rows.append(
            {**_named(each), "least": each.least, "coverage": share, "value_answered": answered}
        )
    return rows


def _monte_carlo(values: SelectorValues, scale: float) -> dict[str, Any] | None:
    if not values.draws:
        return None
    error = float(values.error.max())
    return {
        "draws": values.draws,
        "queries": values.sampled,
        "error": error,
        "error_of_headroom": error / scale if scale > 0 else None,
    }


def _warnings(values: SelectorValues, pools: ScoredPools) -> list[str]:
    found = [f"“{name}” gives {CANNOT_CHOOSE}." for name in pools.constant_scorers]
    if values.draws and values.sampled < pools.queries:
        found.append(
            f"Selectors without a closed form were measured at {values.sampled:,} of "
            f"{pools.queries:,} queries, drawn at random."
        )
    return found


def _notes(data: ChoiceData, settings: ChoiceSettings, *, usual: bool) -> list[str]:
    notes = []
    if data.judged.replicates is not None:
        notes.append(
            "The oracle is chosen on one half of the replicates and valued on the other, both ways "
            "round: it errs downward, never upward."
        )
    if not data.judged.exact:
        notes += _partial_labels(data)
    if settings.cost:
        notes.append(f"Every value is less {settings.cost:g} for each candidate looked at.")
    return [*notes, *(_not_tried(data) if usual else [])]


def _not_tried(data: ChoiceData) -> list[str]:
    """What the usual selectors leave out, and how to have it tried."""
    notes, answer = [], data.answer
    scorers = len(data.pools.scorers)
    if scorers > FEW:
        votes = ", weighted_vote, best_in_majority" if answer is not None else ""
        notes.append(
            f"With {scorers} scorers (more than {FEW}), these were not tried, since they need "
            f"draws: soft, chi2, top{votes} and fusion of ranks (mean:rank, min:rank, "
            "pessimistic:rank); name them among the selectors to have them tried."
        )
    if answer is None:
        notes.append(
            "No votes were tried: majority, weighted_vote and best_in_majority need a column "
            "'answer', or another one that is named as the answer."
        )
    return notes


def _partial_labels(data: ChoiceData) -> list[str]:
    """Notes on a table in which only some candidates were judged."""
    part = data.judged.labels_content(data.pools)
    what = "pairs" if part["pairs"] else f"of {part['candidates']:,} candidates"
    notes = [
        f"{part['labels']:,} {what} were judged: values are weighted by the chances of the design, "
        "and right on average; the noise of the draws is in the intervals."
    ]
    if not part["whole_queries"]:
        notes.append(
            "It is not known of enough queries that they were judged whole: there is no oracle "
            "and no headroom, and no margin in which the simpler selector wins."
        )
    return notes


def _answer(content: Mapping[str, Any], deployed: Selector) -> str:
    """What to do and what it gains, then how stable the choice is."""
    k_max = content["k_max"]
    what = f"{deployed.title} with K = {deployed.k}"
    gains = {each["against"]: each for each in content["differences"]}
    gain = gains["best_of_k_max"]
    ends, over_best = (
        "{difference:+.3g} [{low:.3g}, {high:.3g}]".format(**gains[against])
        for against in ("best_of_k_max", "best_of_k_best")
    )
    if isinstance(deployed, RandomPick):
        words = "Nothing is shown to beat a random pick: take any candidate."
    elif is_plain(deployed) and deployed.k == k_max:
        words = f"Nothing is shown to beat the plain best of {k_max}: keep {what}."
    elif is_plain(deployed):
        words = (
            f"Nothing is shown to beat the plain best of {k_max}, and a smaller K does as well: "
            f"keep {what} ({ends} against K = {k_max})."
        )
    elif gain["low"] > 0:
        words = (
            f"Deploy {what}: it gains {ends} over the plain best of {k_max}, and {over_best} over "
            "the plain best of the best K tried."
        )
    else:
        words = (
            f"Deploy {what}: it is shown to beat a random pick. That it beats the plain best of "
            f"{k_max} is not shown ({ends})."
        )
    stable = content["stability"]
    return (
        f"{words} The same selector and K were chosen in {stable['selector']:.0%} of the "
        f"resamples, the same kind of selector in {stable['family']:.0%}."
    )
