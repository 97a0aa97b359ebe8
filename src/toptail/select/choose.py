"""What a choice stores: the selector to deploy, its honest value, and all that stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from toptail.audit.judging import labels_content
from toptail.audit.record import jsonable, record_of
from toptail.progress import Tick, no_tick
from toptail.select.base import RankSelector, Selector, rank_weights
from toptail.select.crossfit import Honest, Means
from toptail.select.exact import (
    Threshold,
)
from toptail.select.measure import Options, Tried
from toptail.select.read import Offered
from toptail.select.trial import BASELINES, FAMILY, ChoiceSettings, Trial, is_plain, trial_of
from toptail.stats import divergence_bound
from toptail.stats.best_of_k import Floats

FORMAT: Final = "toptail-choice-1"


def choice_content(
    offered: Offered,
    settings: ChoiceSettings,
    *,
    selectors: Sequence[Any] | None = None,
    command: str | None = None,
    tick: Tick = no_tick,
) -> tuple[dict[str, Any], Selector]:
    """The content of ``choice.json``, and the selector to deploy."""
    options = offered.options
    trial = trial_of(offered, settings, selectors, tick)
    found, means = trial.valued(trial.procedures, settings, tick)
    tried, contest = trial.tried, trial.contest
    deployed = tried.selectors[found.final["choice"]]
    naive = contest.sums.sum(axis=0) / contest.counts.sum()
    content: dict[str, Any] = {
        "format": FORMAT,
        "kind": "choice",
        **_named(deployed),
        **means.interval("choice"),
        "baselines": {name: means.interval(name) for name in BASELINES},
        "differences": _differences(means),
        "naive": _naive(naive, found, means, trial.eligible),
        "chosen": _chosen(found, tried),
        "families": _families(found, trial, means),
        "curves": _curves(trial, naive, int(np.median(options.pools.sizes)), settings),
        "coverage": _coverage(tried, settings),
        "tried": len(trial.eligible),
        "monte_carlo": _monte_carlo(tried, trial.headroom),
        "queries": options.pools.queries,
        "candidates": options.pools.rows,
        "clusters": contest.counts.size,
        "k_max": trial.ks[-1],
        "ks": list(trial.ks),
        "headroom": trial.headroom,
        "value_column": offered.value,
        "settings": {**vars(settings), "k_max": trial.ks[-1]},
        "warnings": [*offered.warnings, *_warnings(tried, options)],
        "notes": _notes(offered, settings),
        "record": record_of(options.pools, settings.seed, command or "toptail.choose(...)"),
    }
    if not offered.judged.exact:
        content["judging"] = labels_content(offered.judged, options.pools)
    content["answer"] = _answer(content, deployed)
    clean: dict[str, Any] = jsonable(content)
    return clean, deployed


def _differences(means: Means) -> list[dict[str, Any]]:
    ends = means.differences([("choice", name) for name in BASELINES])
    return [{"against": name, **each} for name, each in zip(BASELINES, ends, strict=True)]


def _naive(naive: Floats, found: Honest, means: Means, eligible: Sequence[int]) -> dict[str, float]:
    """What one would have reported by choosing and valuing on the same queries."""
    own = float(naive[found.final["choice"]])
    honest = means.interval("choice")["value"]
    highest = float(naive[list(eligible)].max())
    return {"value": own, "optimism": own - honest, "highest": highest}


def _chosen(found: Honest, tried: Tried) -> list[dict[str, Any]]:
    """What the folds chose, most often first."""
    shares = sorted(found.picked["choice"].items(), key=lambda each: -each[1])
    return [{**_named(tried.selectors[at]), "share": share} for at, share in shares]


def _named(selector: Selector) -> dict[str, Any]:
    return {
        "family": selector.family,
        "selector": selector.called,
        "k": selector.k,
        "parameters": selector.parameters,
    }


def _families(found: Honest, trial: Trial, means: Means) -> list[dict[str, Any]]:
    """Each family alone: its parameters and K chosen on some queries, valued on others."""
    tried = trial.tried
    names = [name for name in trial.procedures if name.startswith(FAMILY)]
    against = means.differences([(name, "best_of_k_max") for name in names])
    rows = []
    for name, difference in zip(names, against, strict=True):
        chosen = tried.selectors[found.final[name]]
        error = float(tried.error[found.final[name]])
        label = name.removeprefix(FAMILY)
        rows.append(
            {
                **_named(chosen),
                "family": label,
                **means.interval(name),
                "difference": difference,
                "error": error,
            }
        )
    return sorted(rows, key=lambda row: -row["value"])


def _curves(trial: Trial, naive: Floats, n: int, settings: ChoiceSettings) -> list[dict[str, Any]]:
    """Value against K of each family with the parameters that are best at that K."""
    tried, ks = trial.tried, trial.ks
    curves: dict[str, dict[int, int]] = {}
    for at, each in enumerate(tried.selectors[1:], start=1):
        if isinstance(each, Threshold) and settings.abstain is None:
            continue
        own = curves.setdefault(each.family, {})
        if each.k not in own or naive[at] > naive[own[each.k]]:
            own[each.k] = at
    return [
        {
            "family": name,
            "k": list(ks),
            "value": [float(naive[0]), *(float(naive[own[k]]) for k in ks[1:])],
            "kl": [0.0, *(_divergence(tried.selectors[own[k]], n, k) for k in ks[1:])],
            "cost": [1.0, *(tried.selectors[own[k]].cost(k) for k in ks[1:])],
        }
        for name, own in curves.items()
    ]


def _divergence(selector: Selector, n: int, k: int) -> float:
    """KL to a random pick of n, in nats: of the ranks picked, or what no selector exceeds."""
    if not isinstance(selector, RankSelector):
        return float(divergence_bound(k))
    weights = rank_weights(selector, n, k)
    used = weights[weights > 0]
    return float((used * np.log(n * used)).sum())


def _coverage(tried: Tried, settings: ChoiceSettings) -> list[dict[str, Any]]:
    """Value of what is answered against the share that is, for selectors that abstain."""
    nothing = settings.abstain or 0.0
    rows = []
    for at, each in enumerate(tried.selectors):
        if not isinstance(each, Threshold):
            continue
        share = float(tried.coverage[at])
        value = float(tried.value[:, at].mean()) + settings.cost * each.cost(each.k)
        answered = (value - nothing * (1 - share)) / share if share > 0 else None
        rows.append(
            {**_named(each), "least": each.least, "coverage": share, "value_answered": answered}
        )
    return rows


def _monte_carlo(tried: Tried, scale: float) -> dict[str, Any] | None:
    if not tried.draws:
        return None
    error = float(tried.error.max())
    return {
        "draws": tried.draws,
        "queries": tried.sampled,
        "error": error,
        "error_of_headroom": error / scale if scale > 0 else None,
    }


def _warnings(tried: Tried, options: Options) -> list[str]:
    if tried.draws and tried.sampled < options.pools.queries:
        return [
            f"Selectors without a closed form were measured at {tried.sampled:,} of "
            f"{options.pools.queries:,} queries, drawn at random."
        ]
    return []


def _notes(offered: Offered, settings: ChoiceSettings) -> list[str]:
    notes = []
    if offered.judged.replicates is not None:
        notes.append(
            "The oracle is chosen on one half of the replicates and valued on the other, both ways "
            "round: it errs downward, never upward."
        )
    if offered.judged.sampled is not None:
        notes += _partly(offered)
    if settings.cost:
        notes.append(f"Every value is less {settings.cost:g} for each candidate looked at.")
    return notes


def _partly(offered: Offered) -> list[str]:
    """What is said where only some candidates were judged."""
    part = labels_content(offered.judged, offered.options.pools)
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
    """What to do, in a sentence."""
    k_max = content["k_max"]
    what = f"{deployed.family} with K = {deployed.k}"
    if deployed.called == "random":
        return "Nothing is shown to beat a random pick: take any candidate."
    if is_plain(deployed):
        if deployed.k == k_max:
            return f"Plain best-of-K is as good as anything tried: keep {what}."
        return f"Plain best-of-K is as good as anything tried, at a smaller K: {what}."
    gain = next(d for d in content["differences"] if d["against"] == "best_of_k_max")
    if not gain["low"] > 0:
        return (
            f"Deploy {what}; that choosing this way beats the plain best of {k_max} on new "
            "queries is not shown."
        )
    return f"Deploy {what}: choosing this way beats the plain best of {k_max} on new queries."
