"""The content of ``choice.json``: the selector to deploy, its value, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.io.json_files import jsonable
from toptail.progress import Tick, no_tick
from toptail.provenance import record_of
from toptail.select.base import RankSelector, Selector, rank_weights
from toptail.select.catalog import FEW
from toptail.select.comparison import (
    BASELINES,
    FAMILY,
    ChoiceSettings,
    Comparison,
    compare,
    is_plain,
)
from toptail.select.crossfit import NOTHING, ResampledChoices
from toptail.select.exact import RandomPick, Threshold
from toptail.select.measure import SelectorValues
from toptail.select.read import ChoiceData
from toptail.stats import divergence_bound

FORMAT: Final = "toptail-choice-2"


def choice_content(
    data: ChoiceData,
    settings: ChoiceSettings,
    *,
    selectors: Sequence[Any] | None = None,
    command: str | None = None,
    tick: Tick = no_tick,
) -> tuple[dict[str, Any], Selector]:
    """The content of ``choice.json``, and the selector to deploy."""
    pools = data.inputs.pools
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
        "warnings": [*data.warnings, *_warnings(values, pools.queries)],
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
    """The lowest that a mean value less cost can be."""
    high: float
    """The highest."""

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
    """In which share of the resamples the same selector was chosen, and the same family."""
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


def _warnings(values: SelectorValues, queries: int) -> list[str]:
    if values.draws and values.sampled < queries:
        return [
            f"Selectors without a closed form were measured at {values.sampled:,} of "
            f"{queries:,} queries, drawn at random."
        ]
    return []


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
    notes, answer = [], data.inputs.answer
    scorers = len(data.inputs.pools.scorers)
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
    part = data.judged.labels_content(data.inputs.pools)
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
    gain = next(d for d in content["differences"] if d["against"] == "best_of_k_max")
    ends = "{difference:+.3g} [{low:.3g}, {high:.3g}]".format(**gain)
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
        words = f"Deploy {what}: it gains {ends} over the plain best of {k_max}."
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
