"""Populations of queries whose truth is known, for tables that are judged in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy.special import ndtr, ndtri

from toptail.pools import ScoredPools
from toptail.stats.best_of_k import Floats, KGrid, best_of_k, oracle
from validation.populations import Part, changes, correlated, trapped

CANDIDATES: Final = 16
_PART: Final = 20_000
_GRID: Final = KGrid.up_to(CANDIDATES)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Queries of two kinds, mixed."""

    name: str
    """What its truth is."""
    wrong: Literal["safe", "unsafe"]
    """The verdict that would be wrong."""
    parts: tuple[Part, Part]
    """Good queries and bad ones."""
    bad: float
    """The share of bad ones."""
    per_cluster: int = 1
    """Queries of one kind that come together."""
    sd: float = 0.0
    """Values of a query are multiplied by exp(sd N), with N standard normal."""
    largest: bool = False
    """Whether the bad ones are those with the largest factors."""

    def truth(self) -> Floats:
        """The change of every step over the headroom at the largest K."""
        (d0, h0), (d1, h1) = map(_moments, self.parts)
        # E[exp(sd N); N > t] / E[exp(sd N)] = P(N > t - sd)
        bad = float(ndtr(ndtri(self.bad) + self.sd)) if self.largest else self.bad
        return np.asarray(((1 - bad) * d0 + bad * d1) / ((1 - bad) * h0 + bad * h1))

    @property
    def captured(self) -> float:
        """The captured share at the largest K."""
        return float(self.truth()[_GRID.steps.index((1, CANDIDATES))])

    def table(self, queries: int, rng: np.random.Generator) -> ScoredPools:
        """A table of so many queries."""
        clusters = queries // self.per_cluster
        size = rng.normal(size=clusters) if self.sd else np.zeros(clusters)
        drawn = ndtr(-size) if self.largest else rng.random(clusters)
        kind = np.repeat(drawn < self.bad, self.per_cluster)
        at = rng.integers(_PART, size=kind.size)
        score, value = (
            np.where(kind[:, None], bad[at], good[at])
            for good, bad in zip(*self.parts, strict=True)
        )
        value = value * np.exp(self.sd * np.repeat(size, self.per_cluster))[:, None]
        cluster = np.repeat(np.arange(clusters), self.per_cluster)
        return ScoredPools.from_arrays({"score": score}, value, cluster=cluster)


def _moments(part: Part) -> tuple[Floats, float]:
    value = best_of_k(*part, _GRID.deciding).mean(axis=0)
    top = float(oracle(part[1], [CANDIDATES]).mean())
    return changes(value, _GRID), top - float(value[0])


def _mixed(
    name: str,
    wrong: Literal["safe", "unsafe"],
    parts: tuple[Part, Part],
    target: float,
    *,
    gain: bool = False,
    per_cluster: int = 1,
) -> Mixture:
    """The mixture whose worst step (or gain) is the target."""
    (d0, h0), (d1, h1) = map(_moments, parts)
    low, high = 0.0, 1.0
    for _ in range(50):
        bad = (low + high) / 2
        found = ((1 - bad) * d0 + bad * d1) / ((1 - bad) * h0 + bad * h1)
        now = found[_GRID.steps.index((1, CANDIDATES))] if gain else found.min()
        low, high = (bad, high) if now > target else (low, bad)
    return Mixture(name, wrong, parts, bad, per_cluster)


def _correlated(rng: np.random.Generator, strength: float) -> Part:
    """Scores of this correlation with values, which have a level of their own in each query."""
    score, value = correlated(rng, (_PART, CANDIDATES), strength)
    return score, value + rng.normal(size=(_PART, 1))


def _rounded(part: Part) -> Part:
    return np.round(part[0]), np.round(part[1])


def _loss(name: str, wrong: Literal["safe", "unsafe"], target: float, per: int = 1) -> Mixture:
    rng = np.random.default_rng([18, per])
    parts = _correlated(rng, 0.6), trapped(*_correlated(rng, 0.6))
    return _mixed(name, wrong, parts, target, per_cluster=per)


def _no_gain(name: str, wrong: Literal["safe", "unsafe"], strength: float) -> Mixture:
    rng = np.random.default_rng(19)
    part, other = _correlated(rng, strength), _correlated(rng, strength)
    return _mixed(name, wrong, (part, (-other[0], other[1])), 0.0, gain=True)


def _ties() -> Mixture:
    rng = np.random.default_rng(20)
    part, other = _rounded(_correlated(rng, 0.7)), _rounded(_correlated(rng, 0.7))
    return _mixed("loss = ρ, ties", "safe", (part, (-other[0], other[1])), -0.10)


POPULATIONS: Final[tuple[Callable[[], Mixture], ...]] = (
    lambda: _loss("loss = ρ", "safe", -0.10),
    lambda: _no_gain("gain = 0", "safe", 0.6),
    _ties,
    lambda: _loss("loss = ρ, clusters of 4", "safe", -0.10, 4),
    lambda: _loss("loss = δ", "unsafe", -0.02),
    lambda: _no_gain("gain = 0, weak", "unsafe", 0.1),
)
"""Where *safe* would be wrong, then where *unsafe* would."""


def _skills(name: str, good: float, bad: float) -> Mixture:
    """A score of one strength, and of another in the sixth of the queries with most headroom."""
    rng = np.random.default_rng(21)
    parts = tuple(
        (strength * value + np.sqrt(1 - strength**2) * rng.normal(size=value.shape), value)
        for strength, value in ((s, rng.normal(size=(_PART, CANDIDATES))) for s in (good, bad))
    )
    return Mixture(name, "unsafe", (parts[0], parts[1]), 1 / 6, largest=True)


SCALED: Final[tuple[Callable[[float], Mixture], ...]] = (
    lambda sd: replace(_skills("skill 0.6", 0.6, 0.6), sd=sd),
    lambda sd: replace(_skills("skill 0.9, 0 where headroom is large", 0.9, 0.0), sd=sd),
    lambda sd: replace(_skills("skill 0.9, -0.3 where headroom is large", 0.9, -0.3), sd=sd),
    lambda sd: replace(POPULATIONS[0](), sd=sd),
    lambda sd: replace(POPULATIONS[4](), sd=sd),
)
"""Populations whose headroom is lognormal over queries, by the sd of its logarithm."""
SDS: Final = (0.8, 1.2)
