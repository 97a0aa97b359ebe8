"""The honest choice: selector, parameters and K chosen on some queries, valued on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from toptail.audit.family import Family
from toptail.audit.per_query import possible_per_query
from toptail.audit.record import jsonable, record_of
from toptail.errors import InputError, check_not_negative, check_share, check_whole, option
from toptail.pools.columns import codes
from toptail.progress import Tick, no_tick
from toptail.select.base import RankSelector, Selector, rank_weights
from toptail.select.crossfit import (
    Contest,
    Honest,
    Means,
    Procedure,
    cross_fit,
    errors_to_show,
)
from toptail.select.grid import Grid
from toptail.select.kinds import Best, Threshold
from toptail.select.measure import Options, Tried, try_all
from toptail.select.read import Offered
from toptail.stats import cluster_sums, divergence_bound
from toptail.stats.best_of_k import Floats, Ints

FORMAT: Final = "toptail-choice-1"
LEAST_CLUSTERS: Final = 10
"""With fewer queries (or clusters) there is nothing to choose on and to value on."""
BASELINES: Final = ("random", "best_of_k_max", "best_of_k_best", "oracle")


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
    """Parts of the queries, of which each is valued with what the others chose."""
    repeats: int = 10
    """How often queries are parted."""
    resamples: int = 400
    """How often everything is done again, with queries weighed at random, for the intervals."""
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


def choice_content(
    offered: Offered,
    settings: ChoiceSettings,
    *,
    selectors: Sequence[Any] | None = None,
    command: str | None = None,
    tick: Tick = no_tick,
) -> tuple[dict[str, Any], Selector]:
    """The content of ``choice.json``, and the selector to deploy."""
    options, judged = offered.options, offered.judged
    k_max = _k_max(offered, settings)
    family = Family.up_to(k_max)
    grid = Grid(options, offered.filters, k_max)
    words = grid.made(selectors, abstain=settings.abstain is not None)
    possible = possible_per_query(options.pools, judged, family)
    oracle = possible.oracle[:, -1]
    random = cluster_sums(judged.value[:, None], np.repeat(np.arange(oracle.size), _sizes(options)))
    headroom = oracle - random[:, 0] / _sizes(options)
    scale = float(headroom.mean())
    tried = try_all(
        options,
        judged.value,
        words,
        family.family,
        seed=settings.seed,
        scale=scale if scale > 0 else 1.0,
        abstain=settings.abstain or 0.0,
        tick=tick,
    )
    contest = _contest(offered, tried, headroom, settings)
    eligible = _eligible(tried, settings)
    procedures = _procedures(tried, eligible, k_max, settings)
    rng = np.random.default_rng([settings.seed, 2])
    found = cross_fit(
        contest, procedures, rng, folds=settings.folds, repeats=settings.repeats, tick=tick
    )
    means = Means.of(
        contest,
        found,
        procedures,
        rng,
        folds=settings.folds,
        resamples=settings.resamples,
        level=settings.level,
        tick=tick,
    )
    deployed = tried.selectors[found.final["choice"]]
    naive = contest.sums.sum(axis=0) / contest.counts.sum()
    content: dict[str, Any] = {
        "format": FORMAT,
        "kind": "choice",
        **_named(deployed),
        **means.interval("choice"),
        "baselines": {name: means.interval(name) for name in BASELINES},
        "differences": _differences(means),
        "naive": _naive(naive, found, means, eligible),
        "chosen": _chosen(found, tried),
        "families": _families(found, tried, procedures, means),
        "curves": _curves(tried, naive, family.family, int(np.median(_sizes(options))), settings),
        "coverage": _coverage(tried, settings),
        "tried": len(eligible),
        "monte_carlo": _monte_carlo(tried, scale),
        "queries": options.pools.queries,
        "candidates": options.pools.rows,
        "clusters": contest.counts.size,
        "k_max": k_max,
        "ks": list(family.family),
        "headroom": scale,
        "value_column": offered.value,
        "settings": {**vars(settings), "k_max": k_max},
        "warnings": [*offered.warnings, *_warnings(tried, options)],
        "notes": _notes(offered, settings),
        "record": record_of(options.pools, settings.seed, command or "toptail.choose(...)"),
    }
    content["answer"] = _answer(content, deployed)
    clean: dict[str, Any] = jsonable(content)
    return clean, deployed


def _sizes(options: Options) -> Ints:
    return options.pools.sizes


def _k_max(offered: Offered, settings: ChoiceSettings) -> int:
    if settings.k_max is None:
        return offered.k_max
    if settings.k_max > offered.k_max:
        raise InputError(
            f"{offered.options.pools.source}: {option('k_max', settings.k_max)} is larger than "
            f"the smallest pool, which has {offered.k_max} candidates."
        )
    return settings.k_max


def _cluster(offered: Offered) -> Ints | None:
    pools = offered.options.pools
    if pools.cluster is None:
        return None
    code, _ = codes(pools.source, pools.called.get("cluster", "cluster"), pools.cluster)
    return code


def _contest(offered: Offered, tried: Tried, headroom: Floats, settings: ChoiceSettings) -> Contest:
    cluster = _cluster(offered)
    counts = cluster_sums(np.ones((headroom.size, 1)), cluster)[:, 0]
    if counts.size < LEAST_CLUSTERS:
        raise InputError(
            f"{offered.options.pools.source}: {counts.size} queries (or clusters) are too few to "
            f"choose on some and value on others; at least {LEAST_CLUSTERS} are needed."
        )
    cost = np.array([each.cost(each.k) for each in tried.selectors])
    # The oracle looks at k_max candidates: it pays for those beyond the random pick's one.
    headroom = headroom - settings.cost * (max(each.k for each in tried.selectors) - 1)
    tried.value[...] -= settings.cost * cost
    sums = cluster_sums(tried.value, cluster)
    keys = [(each.complexity, each.k) for each in tried.selectors]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    rank = np.array([places[key] for key in keys])
    return Contest(sums, counts, cluster_sums(headroom[:, None], cluster)[:, 0], rank)


def _eligible(tried: Tried, settings: ChoiceSettings) -> list[int]:
    """Those that may be chosen: one that abstains only where that has a value."""
    known = settings.abstain is not None
    return [at for at, s in enumerate(tried.selectors) if known or not isinstance(s, Threshold)]


def _procedures(
    tried: Tried, eligible: Sequence[int], k_max: int, settings: ChoiceSettings
) -> dict[str, Procedure]:
    """The choice itself, what it is compared with, and each family of selectors alone."""
    plain = [at for at in eligible if _is_plain(tried.selectors[at])]
    last = tuple(at for at in plain if tried.selectors[at].k == k_max)
    families: dict[str, list[int]] = {}
    for at in eligible[1:]:
        families.setdefault(tried.selectors[at].family, [0]).append(at)
    shown = errors_to_show(settings.level, len(families))
    return {
        "choice": Procedure(tuple(eligible), last, shown, settings.margin),
        "random": Procedure((0,)),
        "best_of_k_max": Procedure(last),
        "best_of_k_best": Procedure((0, *plain)),
        **{f"family {name}": Procedure(tuple(ats)) for name, ats in families.items()},
    }


def _is_plain(selector: Selector) -> bool:
    return isinstance(selector, Best) and selector.score.how == "member"


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


def _families(
    found: Honest, tried: Tried, procedures: Mapping[str, Procedure], means: Means
) -> list[dict[str, Any]]:
    """Each family alone: its parameters and K chosen on some queries, valued on others."""
    names = [name for name in procedures if name.startswith("family ")]
    against = means.differences([(name, "best_of_k_max") for name in names])
    rows = []
    for name, difference in zip(names, against, strict=True):
        chosen = tried.selectors[found.final[name]]
        error = float(tried.error[found.final[name]])
        label = name.removeprefix("family ")
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


def _curves(
    tried: Tried, naive: Floats, ks: Sequence[int], n: int, settings: ChoiceSettings
) -> list[dict[str, Any]]:
    """Value against K of each family with the parameters that are best at that K."""
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
    if settings.cost:
        notes.append(f"Every value is less {settings.cost:g} for each candidate looked at.")
    return notes


def _answer(content: Mapping[str, Any], deployed: Selector) -> str:
    """What to do, in a sentence."""
    k_max = content["k_max"]
    what = f"{deployed.family} with K = {deployed.k}"
    if deployed.called == "random":
        return "Nothing is shown to beat a random pick: take any candidate."
    if _is_plain(deployed):
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
