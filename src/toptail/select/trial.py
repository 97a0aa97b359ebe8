"""A trial: everything that was tried, ready to be chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, check_not_negative, check_share, check_whole, option
from toptail.judging.oracle import HeadroomEstimate, possible_per_query
from toptail.judging.partial import SampledJudgement
from toptail.pools.columns import codes
from toptail.progress import Tick, no_tick
from toptail.select.base import Selector
from toptail.select.crossfit import Choices, Contest, Procedure, cross_fit, errors_to_show
from toptail.select.exact import (
    Best,
    Threshold,
)
from toptail.select.grid import Grid
from toptail.select.measure import Tried, try_all
from toptail.select.read import Offered
from toptail.stats import cluster_sums
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.k_grid import KGrid

LEAST_CLUSTERS: Final = 10
"""With fewer queries (or clusters) there is nothing to choose on and to value on."""
BASELINES: Final = ("random", "best_of_k_max", "best_of_k_best", "oracle")
"""What a choice is compared with."""
FAMILY: Final = "family "
"""Begins the names of procedures that look at one family of selectors."""


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
    """Parts of the queries for cross-fitting: each is valued with what the others chose."""
    repeats: int = 10
    """How often queries are parted."""
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
class Trial:
    """Selectors that were tried on a table, and the ways of choosing among them."""

    tried: Tried
    """What each is worth at each query, its cost subtracted."""
    contest: Contest
    """The same, added up over clusters."""
    procedures: Mapping[str, Procedure]
    """``choice`` is the choice itself; then what it is compared with, and each family alone."""
    eligible: Sequence[int]
    """Which of those tried may be chosen."""
    ks: tuple[int, ...]
    """The K that were tried."""
    headroom: float
    """What the best choice gains over a random one at the largest K, costs left aside."""

    def valued(
        self, procedures: Mapping[str, Procedure], settings: ChoiceSettings, tick: Tick = no_tick
    ) -> tuple[Choices, float]:
        """What procedures choose and what that is worth; and the cross-fitted value of the choice.

        The second says what choosing on all but one part of the queries is worth on that part.
        """
        rng = np.random.default_rng([settings.seed, 2])
        how: dict[str, Any] = {"resamples": settings.resamples, "level": settings.level}
        found = Choices.of(self.contest, procedures, rng, tick=tick, **how)
        parts: dict[str, Any] = {"folds": settings.folds, "repeats": settings.repeats}
        fitted = cross_fit(self.contest.merged(rng), procedures["choice"], rng, tick=tick, **parts)
        return found, fitted


def trial_of(
    offered: Offered,
    settings: ChoiceSettings,
    selectors: Sequence[Any] | None = None,
    tick: Tick = no_tick,
) -> Trial:
    """Try selectors (words, objects, functions; None: a sensible set) on a table."""
    options, judged = offered.options, offered.judged
    ks = KGrid.up_to(_k_max(offered, settings)).deciding
    grid = Grid(options, offered.filters, ks[-1])
    wanted = grid.made(selectors, abstain=settings.abstain is not None)
    headroom = _headroom(offered, ks[-1])
    known = float(headroom.mean())
    scale = float(judged.value.std()) if np.isnan(known) else known
    tried = try_all(
        options,
        judged.value,
        wanted,
        ks,
        seed=settings.seed,
        scale=scale if scale > 0 else 1.0,
        abstain=settings.abstain or 0.0,
        tick=tick,
    )
    contest = _contest(offered, tried, headroom, settings)
    eligible = _eligible(tried, settings)
    procedures = _procedures(tried, contest, eligible, ks[-1], settings)
    return Trial(tried, contest, procedures, eligible, ks, known)


def _headroom(offered: Offered, k_max: int) -> Floats:
    """What the best of k_max is worth more than a random candidate ``[queries]``.

    Right on average where queries were judged whole by a design, and NaN where that is not known.
    """
    pools, judged, grid = offered.options.pools, offered.judged, KGrid.up_to(k_max)
    if judged.bounded:
        return np.full(pools.queries, np.nan)
    if isinstance(judged, SampledJudgement):
        return HeadroomEstimate.of(pools, judged, grid).expected[:, -1]
    best = possible_per_query(pools, judged, grid).oracle[:, -1]
    return np.asarray(best - np.add.reduceat(judged.value, pools.offsets[:-1]) / pools.sizes)


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
    keys = [(each.involved, each.k) for each in tried.selectors]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    rank = np.array([places[key] for key in keys])
    return Contest(sums, counts, cluster_sums(headroom[:, None], cluster)[:, 0], rank)


def _eligible(tried: Tried, settings: ChoiceSettings) -> list[int]:
    """Those that may be chosen: one that abstains only where that has a value."""
    known = settings.abstain is not None
    return [at for at, s in enumerate(tried.selectors) if known or not isinstance(s, Threshold)]


def _procedures(
    tried: Tried, contest: Contest, eligible: Sequence[int], k_max: int, settings: ChoiceSettings
) -> dict[str, Procedure]:
    """The choice itself, what it is compared with, and each family of selectors alone."""
    plain = [at for at in eligible if is_plain(tried.selectors[at])]
    last = tuple(at for at in plain if tried.selectors[at].k == k_max)
    families: dict[str, list[int]] = {}
    for at in eligible[1:]:
        families.setdefault(tried.selectors[at].family, [0]).append(at)
    choice = Procedure(tuple(eligible), last, margin=settings.margin)
    rng = np.random.default_rng([settings.seed, 3])
    how: dict[str, Any] = {"resamples": settings.resamples, "level": settings.level}
    return {
        "choice": replace(choice, shown=errors_to_show(contest, choice, rng, **how)),
        "random": Procedure((0,)),
        "best_of_k_max": Procedure(last),
        "best_of_k_best": Procedure((0, *plain)),
        **{f"{FAMILY}{name}": Procedure(tuple(ats)) for name, ats in families.items()},
    }


def is_plain(selector: Selector) -> bool:
    """Whether it is the best of K by one score, and nothing more."""
    return isinstance(selector, Best) and selector.score.how == "member"
