"""Choosing on some queries and valuing on others, over and over.

Folds that are valued were chosen on by others, so that their means are not independent, and an
interval from the spread between queries alone is too short where selectors are close to each
other. Intervals here come from doing everything again, folds and choice included, with queries
weighed at random: too wide, if anything, where the choice is a toss-up, and the plain interval of
the selector where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri, stdtrit

from toptail.progress import Tick, no_tick
from toptail.stats.best_of_k import Floats, Ints, rounding
from toptail.stats.resample import cluster_sums, max_t_band

FOLDS: Final = 5
REPEATS: Final = 10
AGAIN: Final = 3
"""How often queries are parted in each resample."""
MOST_UNITS: Final = 400
"""More clusters are joined to this many before they are resampled: enough for a spread."""


@dataclass(frozen=True)
class Procedure:
    """A way of choosing among the selectors that were tried."""

    among: tuple[int, ...]
    """Which of them it looks at."""
    keeps: tuple[int, ...] = ()
    """Plain ones at the largest K, of which the best is kept unless another one is shown to be
    better; and so is the random pick. Empty: the highest mean is chosen."""
    shown: float = 0.0
    """How many standard errors are needed to show it."""
    margin: float = 0.0
    """The simplest one within this share of the headroom of the highest mean is chosen."""


@dataclass(frozen=True, eq=False)
class Contest:
    """What was tried, added up over the queries of each cluster."""

    sums: Floats
    """Value less cost ``[clusters, C]``; the first column is the random pick."""
    counts: Floats
    """Queries ``[clusters]``."""
    headroom: Floats
    """What the best choice gains over a random one ``[clusters]``; NaN where it is not known."""
    rank: Ints
    """How involved each is ``[C]``: the simplest wins a tie."""

    def choose(self, how: Procedure, use: Ints, totals: Floats | None = None) -> int:
        """The selector that a procedure chooses on some clusters."""
        count = self.counts[use].sum()
        mean = (self.sums[use].sum(axis=0) if totals is None else totals) / count
        among = np.array(how.among)
        best = int(among[_highest(mean[among])])
        if not how.keeps:
            return best
        keeps = np.array(how.keeps)
        plain = int(keeps[_highest(mean[keeps])])
        for kept in (0, plain):
            if not self._shown(best, kept, use, how.shown):
                best = kept
                break
        room = how.margin * float(np.fmax(self.headroom[use].sum() / count, 0.0))
        near = among[mean[among] >= mean[best] - room - rounding(mean[best])]
        simplest = near[self.rank[near] == self.rank[near].min()]
        return int(simplest[_highest(mean[simplest])])

    def _shown(self, best: int, other: int, use: Ints, errors: float) -> bool:
        """Whether one is better than another by so many standard errors."""
        if best == other:
            return True
        counts = self.counts[use]
        gain = self.sums[use, best] - self.sums[use, other]
        mean = gain.sum() / counts.sum()
        clusters = max(len(use), 2)
        apart = np.sqrt((((gain - mean * counts) ** 2).sum()) * clusters / (clusters - 1))
        return bool(mean > errors * apart / counts.sum() + rounding(mean))


def _highest(mean: Floats) -> int:
    """The first of those that are highest but for rounding."""
    return int(np.flatnonzero(mean >= mean.max() - rounding(mean.max()))[0])


@dataclass(frozen=True, eq=False)
class Honest:
    """What procedures of choosing are worth on queries that they did not look at."""

    names: Sequence[str]
    """P procedures."""
    value: Floats
    """Mean over queries ``[P]``."""
    picked: Mapping[str, Mapping[int, float]]
    """Procedure -> selector -> in what share of the folds it was chosen."""
    final: Mapping[str, int]
    """Procedure -> what it chooses on all queries."""


def cross_fit(
    contest: Contest,
    procedures: Mapping[str, Procedure],
    rng: np.random.Generator,
    *,
    folds: int = FOLDS,
    repeats: int = REPEATS,
    tick: Tick = no_tick,
) -> Honest:
    """Choose on all but one fold of the clusters, value on that one; folds drawn anew each time."""
    value = np.zeros(len(procedures))
    picked: dict[str, dict[int, float]] = {name: {} for name in procedures}
    for repeat in range(repeats):
        found, sums = _one_pass(contest, list(procedures.values()), rng, folds)
        value += sums / (contest.counts.sum() * repeats)
        for name, chosen in zip(procedures, found, strict=True):
            for at in chosen:
                picked[name][at] = picked[name].get(at, 0.0) + 1 / (len(chosen) * repeats)
        tick("choosing and valuing", (repeat + 1) / repeats)
    every = np.arange(contest.counts.size)
    final = {name: contest.choose(how, every) for name, how in procedures.items()}
    return Honest(list(procedures), value, picked, final)


def _one_pass(
    contest: Contest, procedures: Sequence[Procedure], rng: np.random.Generator, folds: int
) -> tuple[list[list[int]], Floats]:
    """What each procedure chooses for each fold, and the sum of what that is worth ``[P]``."""
    clusters = contest.counts.size
    folds = min(folds, clusters)
    fold = rng.permutation(np.arange(clusters) % folds)
    parts = cluster_sums(contest.sums, fold)
    total, sums = parts.sum(axis=0), np.zeros(len(procedures))
    found: list[list[int]] = [[] for _ in procedures]
    for each in range(folds):
        use = np.flatnonzero(fold != each)
        for number, how in enumerate(procedures):
            at = contest.choose(how, use, total - parts[each])
            found[number].append(at)
            sums[number] += parts[each, at]
    return found, sums


def merged(contest: Contest, rng: np.random.Generator, most: int = MOST_UNITS) -> Contest:
    """The contest with clusters joined at random, where there are more than enough."""
    clusters = contest.counts.size
    if clusters <= most:
        return contest
    group = rng.permutation(np.arange(clusters) % most)
    every = np.hstack([contest.sums, contest.counts[:, None], contest.headroom[:, None]])
    sums = cluster_sums(every, group)
    return Contest(sums[:, :-2], sums[:, -2], sums[:, -1], contest.rank)


@dataclass(frozen=True, eq=False)
class Means:
    """Means over queries with their resampled errors, which all share."""

    names: Sequence[str]
    """What they are of."""
    value: Floats
    """``[P]``."""
    draws: Floats
    """``[resamples, P]``."""
    clusters: int
    """How many clusters were resampled."""
    level: float
    """Confidence of intervals."""

    @classmethod
    def of(
        cls,
        contest: Contest,
        honest: Honest,
        procedures: Mapping[str, Procedure],
        rng: np.random.Generator,
        *,
        folds: int,
        resamples: int,
        level: float,
        tick: Tick = no_tick,
    ) -> Means:
        """The procedures' means, with everything done again in each resample.

        The last name is ``oracle``: the random pick and the headroom.
        """
        units, ways = merged(contest, rng), list(procedures.values())
        clusters = units.counts.size
        draws = np.empty((resamples, len(procedures) + 1))
        for at in range(resamples):
            weight = rng.standard_exponential(clusters)
            sums, counts = units.sums * weight[:, None], units.counts * weight
            again = Contest(sums, counts, units.headroom * weight, units.rank)
            passes = [_one_pass(again, ways, rng, folds)[1] for _ in range(AGAIN)]
            draws[at] = [*(np.mean(passes, axis=0) / counts.sum()), _oracle(again)]
            if at % 20 == 0:
                tick("intervals", at / resamples)
        value = np.array([*honest.value, _oracle(contest)])
        return cls([*procedures, "oracle"], value, draws, contest.counts.size, level)

    def interval(self, name: str) -> dict[str, float]:
        """A mean with Student's interval."""
        at = self.names.index(name)
        half = self._half(self.draws[:, at])
        value = float(self.value[at])
        return {"value": value, "low": value - half, "high": value + half}

    def differences(self, pairs: Sequence[tuple[str, str]]) -> list[dict[str, float]]:
        """How much higher the first mean of each pair is: ends that hold for all pairs at once.

        NaN where a mean is not known.
        """
        first, second = ([self.names.index(pair[at]) for pair in pairs] for at in (0, 1))
        value = self.value[first] - self.value[second]
        draws = self.draws[:, first] - self.draws[:, second]
        scale = float(np.abs(self.value[np.isfinite(self.value)]).max(initial=0.0)) or 1.0
        known = np.isfinite(value)
        ends = np.full((2, value.size), np.nan)
        if known.any():
            band = max_t_band(value[known], draws[:, known], self.clusters, self.level, scale)
            ends[:, known] = band.low, band.high
        return [
            {"difference": float(v), "low": float(low), "high": float(high)}
            for v, low, high in zip(value, *ends, strict=True)
        ]

    def _half(self, draws: Floats) -> float:
        error = draws.std() * np.sqrt(self.clusters / (self.clusters - 1))
        return float(stdtrit(self.clusters - 1, (1 + self.level) / 2) * error)


def _oracle(contest: Contest) -> float:
    return float((contest.sums[:, 0] + contest.headroom).sum() / contest.counts.sum())


def errors_to_show(level: float, families: int) -> float:
    """Standard errors by which the best of several must lead: one-sided, for all together."""
    return float(ndtri(1.0 - (1.0 - level) / 2 / max(families, 1)))
