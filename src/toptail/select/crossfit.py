"""Choosing among selectors: the rule, the value of the chosen one, and how stable the choice is.

What is deployed is chosen on all queries, and the same queries say what it is worth. Chosen for
its high mean, it looks better than it is. Its interval allows for that: ends hold together for
everything that was tried (max-t), and so for whatever was chosen. The choice is made again with
queries weighed at random, which says how stable it is, and how much choosing adds to a mean.
Cross-fitting, by which no query is valued by what it chose, gives one more number: what choosing
on four fifths of the queries is worth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toptail.progress import Tick, no_tick
from toptail.stats.best_of_k import Floats, Ints, rounding
from toptail.stats.resample import critical_value, merged, standardized

MOST_UNITS: Final = 400
"""More clusters are joined to this many before they are resampled: enough for a spread."""
ORACLE: Final = "oracle"
NOTHING: Final = "nothing"
"""The name of the constant 0: a value is its lead over nothing."""


@dataclass(frozen=True)
class SelectionRule:
    """A rule that chooses one of the selectors that were tried."""

    among: tuple[int, ...]
    """The selectors that it may choose."""
    keeps: tuple[int, ...] = ()
    """Plain best-of-K at the largest K, by each score. Empty: the highest mean is chosen."""
    shown: float = 0.0
    """By how many standard errors one must lead another to be shown better."""
    margin: float = 0.0
    """The simplest one within this share of the headroom of the winner is chosen."""


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Values of selectors, added up over the queries of each cluster."""

    sums: Floats
    """Value less cost ``[clusters, C]``; the first column is the random pick."""
    counts: Floats
    """Queries ``[clusters]``."""
    headroom: Floats
    """What the best choice gains over a random one ``[clusters]``; NaN where it is not known."""
    rank: Ints
    """How complex each selector is ``[C]``: the simplest wins a tie."""
    _errors: dict[int, Floats] = field(default_factory=dict)

    def at(self, use: Ints) -> ClusterSums:
        return ClusterSums(self.sums[use], self.counts[use], self.headroom[use], self.rank)

    def merged(self, rng: np.random.Generator, most: int = MOST_UNITS) -> ClusterSums:
        """The sums with clusters joined at random, where there are more than enough."""
        if self.counts.size <= most:
            return self
        every = np.hstack([self.sums, self.counts[:, None], self.headroom[:, None]])
        sums = merged(every, rng, most)
        return ClusterSums(sums[:, :-2], sums[:, -2], sums[:, -1], self.rank)

    @cached_property
    def mean(self) -> Floats:
        """Mean over queries of every selector ``[C]``."""
        return np.asarray(self.sums.sum(axis=0) / self.counts.sum())

    @cached_property
    def tiny(self) -> Floats:
        """A lead at or below this is rounding of the values, not an effect."""
        return rounding(np.abs(self.sums).sum(axis=0).max() / self.counts.sum())

    def errors(self, other: int) -> Floats:
        """Standard errors of every selector's mean lead over another ``[C]``."""
        if other not in self._errors:
            lead = self.sums - self.sums[:, [other]]
            lead -= (self.mean - self.mean[other]) * self.counts[:, None]
            clusters = max(self.counts.size, 2)
            spread = (lead**2).sum(axis=0) * clusters / (clusters - 1)
            self._errors[other] = np.sqrt(spread) / self.counts.sum()
        return self._errors[other]

    def choose(self, rule: SelectionRule, mean: Floats | None = None) -> int:
        """The selector that a rule chooses.

        Only those shown to beat the random pick count; where there are none, that is chosen. The
        highest of those shown to beat plain best-of-K wins. Where there are none, plain is kept if
        it is itself shown to beat the random pick; if not, the highest wins. Of those that count as
        the winner does, the simplest within the margin is chosen, unless the winner is shown to
        beat it.

        ``mean [C]`` stands in for the means over all queries, whose standard errors are used.
        """
        mean = self.mean if mean is None else mean
        among = np.array(rule.among)
        if not rule.keeps:
            return int(among[_highest(mean[among])])

        def leads(first: int | Ints, second: int | Ints, errors: Floats) -> NDArray[np.bool_]:
            return np.asarray(mean[first] - mean[second] > rule.shown * errors + self.tiny)

        passed = among[leads(among, 0, self.errors(0)[among])]
        if not passed.size:
            return 0
        keeps = np.array(rule.keeps)
        plain = int(keeps[_highest(mean[keeps])])
        better = passed[leads(passed, plain, self.errors(plain)[passed])]
        passed = better if better.size else passed
        kept = not better.size and plain in passed
        best = plain if kept else int(passed[_highest(mean[passed])])
        room = rule.margin * float(np.fmax(self.headroom.sum() / self.counts.sum(), 0.0))
        near = passed[mean[passed] >= mean[best] - room - rounding(mean[best])]
        near = near[~leads(best, near, self.errors(best)[near])]
        simplest = near[self.rank[near] == self.rank[near].min()]
        return int(simplest[_highest(mean[simplest])])


def _highest(mean: Floats) -> int:
    """The first of those that are highest but for rounding."""
    return int(np.flatnonzero(mean >= mean.max() - rounding(mean.max()))[0])


def cross_fit(
    totals: ClusterSums,
    rule: SelectionRule,
    rng: np.random.Generator,
    *,
    folds: int,
    repeats: int,
    tick: Tick = no_tick,
) -> float:
    """Mean value of what is chosen on all but one fold of the clusters, on that fold.

    Folds are drawn anew in each repeat.
    """
    clusters = totals.counts.size
    folds, total = min(folds, clusters), 0.0
    for repeat in range(repeats):
        fold = rng.permutation(np.arange(clusters) % folds)
        for each in range(folds):
            chosen = totals.at(np.flatnonzero(fold != each)).choose(rule)
            total += float(totals.sums[fold == each, chosen].sum())
        tick("cross-fitting", (repeat + 1) / repeats)
    return float(total / (totals.counts.sum() * repeats))


@dataclass(frozen=True, eq=False)
class ResampledChoices:
    """Means of all selectors, and what rules choose, with queries weighed at random."""

    mean: Floats
    """On all queries ``[C + 2]``: every selector, the oracle, and 0."""
    draws: Floats
    """In each resample ``[resamples, C + 2]``."""
    final: Mapping[str, int]
    """Rule -> what it chooses on all queries."""
    picked: Mapping[str, Ints]
    """Rule -> what it chooses in each resample ``[resamples]``."""
    among: tuple[int, ...]
    """Every selector that some rule may choose."""
    clusters: int
    level: float
    _criticals: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        totals: ClusterSums,
        rules: Mapping[str, SelectionRule],
        rng: np.random.Generator,
        *,
        resamples: int,
        level: float,
        tick: Tick = no_tick,
    ) -> ResampledChoices:
        """Weigh clusters by Dirichlet weights, and choose again each time.

        Standard errors by which leads are shown stay those of the table: weights would add to them.
        """
        units = totals.merged(rng)
        weight = rng.standard_exponential((resamples, units.counts.size))
        oracle = units.sums[:, 0] + units.headroom
        columns = np.column_stack([units.sums, oracle, np.zeros_like(oracle)])
        draws = _weighed_means(columns, units.counts, weight)
        picked = {name: np.empty(resamples, dtype=np.int64) for name in rules}
        for at in range(resamples):
            for name, rule in rules.items():
                picked[name][at] = units.choose(rule, draws[at, :-2])
            if at % 20 == 0:
                tick("choosing again", at / resamples)
        final = {name: totals.choose(rule) for name, rule in rules.items()}
        best = totals.mean[0] + totals.headroom.sum() / totals.counts.sum()
        mean = np.array([*totals.mean, best, 0.0])
        for at, name in ((mean.size - 2, ORACLE), (mean.size - 1, NOTHING)):
            final[name], picked[name] = at, np.full(resamples, at)
        among = tuple(sorted({at for rule in rules.values() for at in rule.among}))
        return cls(mean, draws, final, picked, among, totals.counts.size, level)

    def share(self, name: str) -> dict[int, float]:
        """What a rule chooses, in which share of the resamples, most often first."""
        found, times = np.unique(self.picked[name], return_counts=True)
        order = np.argsort(-times, kind="stable")
        return {int(found[at]): float(times[at] / times.sum()) for at in order}

    def lead(self, first: str, second: str, *, corrected: bool = True) -> dict[str, float]:
        """By how much one rule's choice is better than another's.

        The ends hold together for every selector, against whatever the second may choose: so
        they hold for what the first chose. The number itself is the mean lead on all queries,
        ``corrected`` for what choosing adds to it: the mean of that over the resamples, in standard
        errors. NaN where a mean is not known.
        """
        chosen = [np.append(self.picked[name], self.final[name]) for name in (first, second)]
        pairs, place = np.unique(np.stack(chosen), axis=1, return_inverse=True)
        value, draws = (x[..., pairs[0]] - x[..., pairs[1]] for x in (self.mean, self.draws))
        se, apart = standardized(value, draws, self.clusters, _size(self.mean))
        place = place.reshape(-1)
        at, signed = place[-1], np.sign(draws - value) * apart
        # What is 0 on average is taken off: where the same is chosen always, nothing is added.
        added = (signed[np.arange(len(draws)), place[:-1]] - signed[:, at]).mean() * se[at]
        half = self._critical(second) * se[at]
        own = float(value[at] - added) if corrected else float(value[at])
        return {"value": own, "low": float(value[at] - half), "high": float(value[at] + half)}

    def _critical(self, second: str) -> float:
        """Standard errors within which the leads of every selector lie together."""
        if second not in self._criticals:
            among, largest = np.array(self.among), np.zeros(len(self.draws))
            for other in np.unique([*self.picked[second], self.final[second]]):
                value = self.mean[among] - self.mean[other]
                draws = self.draws[:, among] - self.draws[:, [other]]
                _, apart = standardized(value, draws, self.clusters, _size(self.mean))
                np.maximum(largest, apart.max(axis=1), out=largest)
            self._criticals[second] = critical_value(largest, self.clusters, self.level)
        return self._criticals[second]


def errors_to_show(
    totals: ClusterSums,
    rule: SelectionRule,
    rng: np.random.Generator,
    *,
    resamples: int,
    level: float,
) -> float:
    """Standard errors by which a selector must lead the random pick, or plain, to be shown better.

    One-sided, and for all that the rule may choose together (max-t, over resamples).
    """
    units = totals.merged(rng)
    weight = rng.standard_exponential((resamples, units.counts.size))
    keeps = np.array(rule.keeps)
    plain = int(keeps[_highest(units.mean[keeps])])
    among = np.array(rule.among)
    sums = np.hstack([units.sums[:, among] - units.sums[:, [other]] for other in (0, plain)])
    value = sums.sum(axis=0) / units.counts.sum()
    draws = _weighed_means(sums, units.counts, weight)
    _, apart = standardized(value, draws, totals.counts.size, _size(units.mean))
    highest = (np.sign(draws - value) * apart).max(axis=1)
    return critical_value(highest, totals.counts.size, (1.0 + level) / 2)


def _weighed_means(sums: Floats, counts: Floats, weight: Floats) -> Floats:
    """Means under random weights of the clusters ``[resamples, columns]``.

    Dirichlet weights spread means by 1/(n + 1) of the variance between n clusters, in place of
    1/n; that is made up for.
    """
    mean = sums.sum(axis=0) / counts.sum()
    apart = (weight @ sums) / (weight @ counts)[:, None] - mean
    return np.asarray(mean + apart * np.sqrt(1.0 + 1.0 / counts.size))


def _size(mean: Floats) -> float:
    return float(np.nanmax(np.abs(mean))) or 1.0
