"""Choosing on some queries and valuing on others, over and over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtri, stdtrit

from toptail.progress import Tick, no_tick
from toptail.stats.best_of_k import Floats, Ints, rounding
from toptail.stats.resample import max_t_band, weighted_sums

FOLDS: Final = 5
REPEATS: Final = 10


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
    """What the best choice gains over a random one ``[clusters]``."""
    rank: Ints
    """Place of each in the order from simple to involved ``[C]``; the simpler wins a tie."""

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
        room = how.margin * max(float(self.headroom[use].sum() / count), 0.0)
        near = among[mean[among] >= mean[best] - room - rounding(mean[best])]
        simple = int(near[np.argmin(self.rank[near])])
        return simple if self.rank[simple] < self.rank[best] else best

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

    sums: Mapping[str, Floats]
    """Procedure -> sums over each cluster's queries ``[clusters]``, the mean over repeats."""
    by_repeat: Mapping[str, Floats]
    """Procedure -> its value in each repeat ``[repeats]``."""
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
    clusters = contest.counts.size
    folds = min(folds, clusters)
    total = contest.sums.sum(axis=0)
    sums = {name: np.zeros(clusters) for name in procedures}
    by_repeat = {name: np.zeros(repeats) for name in procedures}
    picked: dict[str, dict[int, float]] = {name: {} for name in procedures}
    for repeat in range(repeats):
        fold = rng.permutation(np.arange(clusters) % folds)
        for each in range(folds):
            test = np.flatnonzero(fold == each)
            use = np.flatnonzero(fold != each)
            rest = total - contest.sums[test].sum(axis=0)
            for name, how in procedures.items():
                at = contest.choose(how, use, rest)
                own = contest.sums[test, at]
                sums[name][test] += own / repeats
                by_repeat[name][repeat] += own.sum() / contest.counts.sum()
                picked[name][at] = picked[name].get(at, 0.0) + 1 / (folds * repeats)
        tick("choosing and valuing", (repeat + 1) / repeats)
    every = np.arange(clusters)
    final = {name: contest.choose(how, every) for name, how in procedures.items()}
    return Honest(sums, by_repeat, picked, final)


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
        sums: Mapping[str, Floats],
        counts: Floats,
        rng: np.random.Generator,
        resamples: int,
        level: float,
    ) -> Means:
        """Means of columns of cluster sums."""
        columns = np.stack([*sums.values(), counts], axis=1)
        point = columns.sum(axis=0)
        if counts.size < 2:
            draws = np.full((1, len(sums)), np.nan)
        else:
            drawn, _ = weighted_sums(columns, rng, resamples)
            draws = drawn[:, :-1] / drawn[:, -1:]
        return cls(list(sums), point[:-1] / point[-1], draws, counts.size, level)

    def interval(self, name: str) -> dict[str, float]:
        """A mean with Student's interval."""
        at = self.names.index(name)
        half = self._half(self.draws[:, at])
        value = float(self.value[at])
        return {"value": value, "low": value - half, "high": value + half}

    def differences(self, name: str, others: Sequence[str]) -> list[dict[str, float]]:
        """How much higher one mean is than others: ends that hold together."""
        at, rest = self.names.index(name), [self.names.index(other) for other in others]
        value = self.value[at] - self.value[rest]
        draws = self.draws[:, [at]] - self.draws[:, rest]
        scale = float(np.abs(self.value[np.isfinite(self.value)]).max(initial=0.0)) or 1.0
        band = max_t_band(value, draws, self.clusters, self.level, scale)
        return [
            {"difference": float(v), "low": float(low), "high": float(high)}
            for v, low, high in zip(value, band.low, band.high, strict=True)
        ]

    def _half(self, draws: Floats) -> float:
        if self.clusters < 2:
            return float("nan")
        error = draws.std() * np.sqrt(self.clusters / (self.clusters - 1))
        return float(stdtrit(self.clusters - 1, (1 + self.level) / 2) * error)


def errors_to_show(level: float, families: int) -> float:
    """Standard errors by which the best of several must lead: one-sided, for all together."""
    return float(ndtri(1.0 - (1.0 - level) / 2 / max(families, 1)))
