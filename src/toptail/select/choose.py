"""What a choice stores: the selector to deploy, what it is worth, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.audit.record import jsonable, record_of
from toptail.progress import Tick, no_tick
from toptail.select.base import RankSelector, Selector, rank_weights
from toptail.select.crossfit import NOTHING, Choices
from toptail.select.exact import RandomPick, Threshold
from toptail.select.grid import FEW
from toptail.select.measure import Options, Tried
from toptail.select.read import Offered
from toptail.select.trial import BASELINES, FAMILY, ChoiceSettings, Trial, is_plain, trial_of
from toptail.stats import divergence_bound
from toptail.stats.best_of_k import Floats

FORMAT: Final = "toptail-choice-2"


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
    found, fitted = trial.valued(trial.procedures, settings, tick)
    tried, contest = trial.tried, trial.contest
    deployed = tried.selectors[found.final["choice"]]
    if isinstance(deployed, RandomPick):
        deployed = replace(deployed, seed=settings.seed)
    worth = Worth(found, *_range(offered, trial, settings))
    value = worth.value("choice")
    own = float(found.mean[found.final["choice"]])
    content: dict[str, Any] = {
        "format": FORMAT,
        "kind": "choice",
        **_named(deployed),
        **value,
        "baselines": {name: worth.value(name) for name in BASELINES},
        "differences": [{"against": name, **worth.lead("choice", name)} for name in BASELINES],
        "plain": _named(tried.selectors[found.final["best_of_k_max"]]),
        "stability": _stability(found, tried),
        "cross_fitted": fitted,
        "naive": {
            "value": own,
            "optimism": own - value["value"],
            "highest": float(contest.mean[list(trial.eligible)].max()),
        },
        "chosen": _chosen(found, tried),
        "families": _families(found, trial, worth),
        "curves": _curves(trial, contest.mean, int(np.median(options.pools.sizes)), settings),
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
        "value_range": offered.value_range,
        "settings": {**vars(settings), "k_max": trial.ks[-1]},
        "warnings": [*offered.warnings, *_warnings(tried, options)],
        "notes": _notes(offered, settings, usual=selectors is None),
        "record": record_of(options.pools, settings.seed, command or "toptail.choose(...)"),
    }
    if not offered.judged.exact:
        content["judging"] = offered.judged.labels_content(options.pools)
    content["answer"] = _answer(content, deployed)
    clean: dict[str, Any] = jsonable(content)
    return clean, deployed


@dataclass(frozen=True, eq=False)
class Worth:
    """Values and differences with their intervals, inside the range that values have."""

    found: Choices
    """What was chosen."""
    low: float
    """The lowest that a mean value less cost can be."""
    high: float
    """The highest."""

    def value(self, name: str, *, corrected: bool = True) -> dict[str, float]:
        """What a procedure's choice is worth."""
        entry = self.found.lead(name, NOTHING, corrected=corrected)
        return {end: float(np.clip(x, self.low, self.high)) for end, x in entry.items()}

    def lead(self, first: str, second: str, *, corrected: bool = True) -> dict[str, float]:
        """How much better one procedure's choice is than another's."""
        entry, most = self.found.lead(first, second, corrected=corrected), self.high - self.low
        value, low, high = (float(np.clip(x, -most, most)) for x in entry.values())
        return {"difference": value, "low": low, "high": high}


def _range(offered: Offered, trial: Trial, settings: ChoiceSettings) -> tuple[float, float]:
    """The lowest and the highest that a mean can be, costs and abstention included."""
    if offered.value_range is None:
        return -np.inf, np.inf
    nothing = [] if settings.abstain is None else [settings.abstain]
    ends = [*offered.value_range, *nothing]
    return min(ends) - settings.cost * trial.ks[-1], max(ends) - settings.cost


def _stability(found: Choices, tried: Tried) -> dict[str, float]:
    """In which share of the resamples the same was chosen: K and parameters included, or not."""
    final = found.final["choice"]
    shares = found.share("choice")
    family = tried.selectors[final].family
    alike = sum(x for at, x in shares.items() if tried.selectors[at].family == family)
    return {"selector": shares.get(final, 0.0), "family": float(alike)}


def _chosen(found: Choices, tried: Tried) -> list[dict[str, Any]]:
    """What the resamples chose, most often first."""
    shares = found.share("choice").items()
    return [{**_named(tried.selectors[at]), "share": share} for at, share in shares]


def _named(selector: Selector) -> dict[str, Any]:
    return {
        "family": selector.family,
        "selector": selector.called,
        "k": selector.k,
        "parameters": selector.parameters,
    }


def _families(found: Choices, trial: Trial, worth: Worth) -> list[dict[str, Any]]:
    """Each family alone: the parameters and K with the highest mean, which is not corrected."""
    tried = trial.tried
    rows = []
    for name in (name for name in trial.procedures if name.startswith(FAMILY)):
        at = found.final[name]
        rows.append(
            {
                **_named(tried.selectors[at]),
                "family": name.removeprefix(FAMILY),
                **worth.value(name, corrected=False),
                "difference": worth.lead(name, "best_of_k_max", corrected=False),
                "error": float(tried.error[at]),
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


def _notes(offered: Offered, settings: ChoiceSettings, *, usual: bool) -> list[str]:
    notes = []
    if offered.judged.replicates is not None:
        notes.append(
            "The oracle is chosen on one half of the replicates and valued on the other, both ways "
            "round: it errs downward, never upward."
        )
    if not offered.judged.exact:
        notes += _partly(offered)
    if settings.cost:
        notes.append(f"Every value is less {settings.cost:g} for each candidate looked at.")
    return [*notes, *(_not_tried(offered) if usual else [])]


def _not_tried(offered: Offered) -> list[str]:
    """What a default set leaves out, and how to have it tried."""
    notes, options = [], offered.options
    scorers = len(options.pools.scorers)
    if scorers > FEW:
        votes = ", weighted_vote, best_in_majority" if options.answer is not None else ""
        notes.append(
            f"With {scorers} scorers (more than {FEW}), these were not tried, since they need "
            f"draws: soft, chi2, top{votes} and fusion of ranks (mean:rank, min:rank, "
            "pessimistic:rank); name them among the selectors to have them tried."
        )
    if options.answer is None:
        notes.append(
            "No votes were tried: majority, weighted_vote and best_in_majority need a column "
            "'answer', or another one that is named as the answer."
        )
    return notes


def _partly(offered: Offered) -> list[str]:
    """What is said where only some candidates were judged."""
    part = offered.judged.labels_content(offered.options.pools)
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
        said = "Nothing is shown to beat a random pick: take any candidate."
    elif is_plain(deployed) and deployed.k == k_max:
        said = f"Nothing is shown to beat the plain best of {k_max}: keep {what}."
    elif is_plain(deployed):
        said = (
            f"Nothing is shown to beat the plain best of {k_max}, and a smaller K does as well: "
            f"keep {what} ({ends} against K = {k_max})."
        )
    elif gain["low"] > 0:
        said = f"Deploy {what}: it gains {ends} over the plain best of {k_max}."
    else:
        said = (
            f"Deploy {what}: it is shown to beat a random pick. That it beats the plain best of "
            f"{k_max} is not shown ({ends})."
        )
    stable = content["stability"]
    return (
        f"{said} The same selector and K were chosen in {stable['selector']:.0%} of the resamples, "
        f"the same kind of selector in {stable['family']:.0%}."
    )
