"""Populations of queries whose truth is known, to try the rule of the verdict on.

Every case is a finite population of clusters in two parts, one that search helps and one that it
hurts, drawn with a probability that makes the truth exactly what the case says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from toptail.stats.best_of_k import Floats, KGrid, best_of_k, oracle, split_oracle
from validation.populations import Part, changes, correlated, trapped

Wrong = Literal["safe", "unsafe"]
_PART = 8_000
"""Queries in each part of a population."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sums of clusters: what one part of a population is made of."""

    value: Floats
    """V(K) at the grid's K ``[clusters, n_k]``."""
    headroom: Floats
    """Headroom at k_max ``[clusters]``."""
    ordered: Floats
    """The values of each pool in ascending order, added up ``[clusters, candidates]``."""
    queries: Floats
    """Queries of each cluster ``[clusters]``."""


@dataclass(frozen=True, eq=False)
class Case:
    """One population, and which verdict would be wrong about it."""

    name: str
    """What is true in it."""
    wrong: Literal["safe", "unsafe", "none"]
    """The status that would be wrong; ``none`` where the wanted one is counted."""
    parts: tuple[Clusters, Clusters]
    """The good and the bad clusters."""
    bad: float
    """Share of bad clusters."""
    grid: KGrid
    """The K of the verdict."""
    width: float | None = None
    """Width of the range of values, if it is declared."""
    true_headroom: float | None = None
    """Mean headroom that the truth is a share of, where it is not the measured one."""

    def truth(self) -> Floats:
        """The true change of every step, as a share of the headroom ``[steps]``."""
        good, bad = (part.value.mean(axis=0) for part in self.parts)
        value = (1 - self.bad) * good + self.bad * bad
        return changes(value, self.grid) / self.unit()

    def unit(self) -> float:
        """The true headroom."""
        if self.true_headroom is not None:
            return self.true_headroom
        good, bad = (float(part.headroom.mean()) for part in self.parts)
        return (1 - self.bad) * good + self.bad * bad


def clusters_of(
    score: Floats,
    value: Floats,
    grid: KGrid,
    *,
    replicates: Floats | None = None,
    per_cluster: int = 1,
    unequal: np.random.Generator | None = None,
) -> Clusters:
    """What a part is made of, from the scores and values ``[queries, candidates]`` of its pools.

    Clusters are ``per_cluster`` neighbours; with ``unequal`` from 1 to twice as many.
    """
    curve = best_of_k(score, value, grid.deciding)
    top = (
        oracle(value, [grid.k_max])
        if replicates is None
        else split_oracle(replicates, [grid.k_max])
    )
    columns = [curve, top - curve[:, :1], np.sort(value, axis=1), np.ones((len(value), 1))]
    if unequal is not None:
        sizes = unequal.integers(1, 2 * per_cluster + 1, len(value))
    else:
        sizes = np.full(len(value), per_cluster)
    ends = np.cumsum(sizes)
    starts = np.concatenate([[0], ends[ends < len(value)]])
    curve, headroom, ordered, queries = (
        np.add.reduceat(column, starts, axis=0)[:-1] if per_cluster > 1 else column
        for column in columns
    )
    return Clusters(curve, headroom[:, 0], ordered, queries[:, 0])


def _share(parts: tuple[Clusters, Clusters], target: float, grid: KGrid, which: str) -> float:
    """Share of bad clusters that makes the worst step (or the gain) exactly the target."""
    (good, top), (bad, low_top) = (
        (changes(p.value.mean(axis=0), grid), float(p.headroom.mean())) for p in parts
    )
    # (1 - b) good + b bad = target ((1 - b) top + b low_top), for every step
    ahead, behind = good - target * top, bad - target * low_top
    with np.errstate(divide="ignore", invalid="ignore"):
        share = ahead / (ahead - behind)
    if which == "gain":
        return float(share[grid.steps.index((1, grid.k_max))])
    return float(share[(share > 0) & (share <= 1)].min())


def _correlated(rng: np.random.Generator, size: int, strength: float) -> Part:
    return correlated(rng, (_PART, size), strength)


def _exact(
    name: str,
    wrong: Wrong,
    parts: tuple[Clusters, Clusters],
    grid: KGrid,
    target: float,
    which: str = "worst",
    width: float | None = None,
) -> Case:
    return Case(name, wrong, parts, _share(parts, target, grid, which), grid, width)


RHO: Final = 0.10
DELTA: Final = 0.02
_TWO, _FOUR, _EIGHT, _SIXTEEN, _LARGE = (KGrid.fine(k) for k in (2, 4, 8, 16, 32))


def _trapping(rng: np.random.Generator, grid: KGrid) -> tuple[Clusters, Clusters]:
    size = grid.k_max
    good, bad = _correlated(rng, size, 0.6), _correlated(rng, size, 0.6)
    return clusters_of(*good, grid), clusters_of(*trapped(*bad, 0.0), grid)


def _loss(rng: np.random.Generator, wrong: Wrong, grid: KGrid) -> Case:
    name, target = ("ρ", -RHO) if wrong == "safe" else ("δ", -DELTA)
    pools = f", pools of {grid.k_max}" if grid is _LARGE else ""
    return _exact(f"loss = {name}{pools}", wrong, _trapping(rng, grid), grid, target)


def _no_gain(rng: np.random.Generator, wrong: Wrong, strength: float) -> Case:
    score, value = _correlated(rng, 8, strength)
    parts = clusters_of(score, value, _EIGHT), clusters_of(-score, value, _EIGHT)
    return _exact("gain = 0", wrong, parts, _EIGHT, 0.0, "gain")


def _rare(rng: np.random.Generator) -> Case:
    score, value = _correlated(rng, 8, 0.9)
    cursed = rng.random(value.shape) < 0.01
    score, value = np.where(cursed, 9.0, score), np.where(cursed, value - 30.0, value)
    both = clusters_of(score, value, _EIGHT)
    return Case("1 % deeply cursed candidates", "safe", (both, both), 0.0, _EIGHT)


def _tenth(rng: np.random.Generator) -> Case:
    good, bad = _correlated(rng, 8, 0.9), _correlated(rng, 8, 0.9)
    parts = clusters_of(*good, _EIGHT), clusters_of(*trapped(*bad, 9.0), _EIGHT)
    return Case("a tenth of the queries harmful", "safe", parts, 0.1, _EIGHT)


def _largest(rng: np.random.Generator) -> Case:
    size = np.sort(rng.lognormal(0.0, 1.0, _PART))[:, None]
    score, value = _correlated(rng, 8, 0.8)
    value = value * size
    traps = trapped(score, value, 0.0)[1]
    hurt = np.arange(_PART)[:, None] >= 0.9 * _PART
    parts = (
        clusters_of(score, value, _EIGHT),
        clusters_of(score, np.where(hurt, traps, value), _EIGHT),
    )
    return _exact("loss = ρ, in the tenth with the most headroom", "safe", parts, _EIGHT, -RHO)


def _beyond(rng: np.random.Generator, declared: bool) -> Case:
    good = _correlated(rng, 8, 0.8)
    good = good[0], np.clip(good[1], -2.0, 2.0)
    score, value = _correlated(rng, 8, 0.8)
    bad = trapped(score, np.clip(value, -2.0, 2.0), 20.0)
    parts = clusters_of(*good, _EIGHT), clusters_of(*bad, _EIGHT)
    name = "loss = ρ, rare and beyond any candidate seen" + (", range declared" if declared else "")
    return _exact(name, "safe", parts, _EIGHT, -RHO, width=24.0 if declared else None)


def _heavy(rng: np.random.Generator) -> Case:
    score, value = _correlated(rng, 8, 0.9)
    bad = trapped(score, value, rng.pareto(1.5, _PART))
    parts = clusters_of(score, value, _EIGHT), clusters_of(*bad, _EIGHT)
    return _exact("loss = 2ρ, heavy tails", "safe", parts, _EIGHT, -2 * RHO)


def _heavy_delta(rng: np.random.Generator) -> Case:
    lucky = rng.pareto(1.5, (_PART, 1)) * (rng.random((_PART, 8)) < 0.05)
    score, value = _correlated(rng, 8, 0.5)
    parts = (
        clusters_of(score, value + lucky, _EIGHT),
        clusters_of(*trapped(score, value, 1.0), _EIGHT),
    )
    return _exact("loss = δ, heavy tails", "unsafe", parts, _EIGHT, -DELTA)


def _coin(wrong: Wrong) -> Case:
    value = np.tile([0.0, 1.0], (100, 1))
    parts = clusters_of(value, value, _TWO), clusters_of(-value, value, _TWO)
    return _exact("gain = 0, coin-flip pairs", wrong, parts, _TWO, 0.0, "gain")


def _ties(rng: np.random.Generator) -> Case:
    score, value = _correlated(rng, 8, 0.7)
    score, value = np.round(score), np.round(value)
    parts = clusters_of(score, value, _EIGHT), clusters_of(-score, value, _EIGHT)
    return _exact("loss = ρ, ties", "safe", parts, _EIGHT, -RHO)


def _clusters(rng: np.random.Generator, name: str, wrong: Wrong, target: float, which: str) -> Case:
    good, bad = _correlated(rng, 8, 0.6), _correlated(rng, 8, 0.6)
    bad = (-bad[0], bad[1]) if which == "gain" else trapped(*bad, 0.0)
    parts = (
        clusters_of(*good, _EIGHT, per_cluster=5, unequal=rng),
        clusters_of(*bad, _EIGHT, per_cluster=5, unequal=rng),
    )
    return _exact(f"{name}, unequal clusters", wrong, parts, _EIGHT, target, which)


def _noisy(rng: np.random.Generator, wrong: Wrong, twice: bool) -> Case:
    """Judged once, the truth is a share of judged headroom; twice, of the true one."""
    target = -RHO if wrong == "safe" else -DELTA
    parts, truth = [], []
    for trap in (False, True):
        score, value = _correlated(rng, 8, 0.6)
        if trap:
            score, value = trapped(score, value, 0.0)
        truth.append(clusters_of(score, value, _EIGHT))
        judged = value + rng.normal(size=(2, *value.shape))
        both = judged if twice else judged[:1]
        parts.append(
            clusters_of(score, both.mean(axis=0), _EIGHT, replicates=judged if twice else None)
        )
    how = "judged twice" if twice else "judged once"
    name = f"loss = {'ρ' if wrong == 'safe' else 'δ'}, noisy judge, {how}"
    pair = parts[0], parts[1]
    if not twice:
        return _exact(name, wrong, pair, _EIGHT, target)
    tops = [float(p.headroom.mean()) for p in truth]
    real = tuple(
        Clusters(p.value, np.full(len(p.headroom), top), p.ordered, p.queries)
        for p, top in zip(pair, tops, strict=True)
    )
    bad = _share((real[0], real[1]), target, _EIGHT, "worst")
    return Case(
        *(name, wrong, pair, bad, _EIGHT), true_headroom=(1 - bad) * tops[0] + bad * tops[1]
    )


def _no_variance(_: np.random.Generator) -> Case:
    value = np.tile([0.0, 1.0, 1.0, 1.0], (100, 1))
    parts = clusters_of(value, value, _FOUR), clusters_of(-value, value, _FOUR)
    return _exact("loss = ρ, all good queries identical", "safe", parts, _FOUR, -RHO)


def _jackpot(rng: np.random.Generator, declared: bool) -> Case:
    good, (score, value) = _correlated(rng, 4, 0.6), _correlated(rng, 4, 0.6)
    value[np.arange(_PART), score.argmin(axis=1)] = 100.0
    parts = clusters_of(*good, _FOUR), clusters_of(score, value, _FOUR)
    name = "a jackpot in 5 % of the queries, which the score avoids"
    if declared:
        return Case(f"{name}, range declared", "safe", parts, 0.05, _FOUR, 105.0)
    return Case(name, "safe", parts, 0.05, _FOUR)


def _between(rng: np.random.Generator) -> tuple[Clusters, Clusters]:
    """Good pools, and pools that fall from K = 3 to K = 4 and rise from 1 to 2 to 4."""
    noise = rng.normal(0, 0.1, (_PART, 4))
    bad = np.tile(np.arange(4.0), (_PART, 1)), np.array([1.0, -2.0, 1.0, 0.15]) + noise
    return clusters_of(*_correlated(rng, 4, 0.6), _FOUR), clusters_of(*bad, _FOUR)


def _loss_between(rng: np.random.Generator) -> Case:
    name = "loss = ρ, from K = 3 to K = 4 alone"
    return _exact(name, "safe", _between(rng), _FOUR, -RHO)


def _bad_between(rng: np.random.Generator) -> Case:
    _, bad = _between(rng)
    return Case("harmful, from K = 3 to K = 4 alone", "none", (bad, bad), 0.0, _FOUR)


def _good(rng: np.random.Generator, strength: float, grid: KGrid = _SIXTEEN) -> Case:
    both = clusters_of(*_correlated(rng, grid.k_max, strength), grid)
    name = f"good, correlation {strength:g}, pools of {grid.k_max}"
    return Case(name, "none", (both, both), 0.0, grid)


def _bad(rng: np.random.Generator, grid: KGrid = _SIXTEEN) -> Case:
    name = f"harmful, −30 %, pools of {grid.k_max}"
    case = _exact(name, "unsafe", _trapping(rng, grid), grid, -0.30)
    return replace(case, wrong="none")


CASES: Final[tuple[Callable[[np.random.Generator], Case], ...]] = (
    lambda rng: _loss(rng, "safe", _EIGHT),
    lambda rng: _no_gain(rng, "safe", 0.6),
    lambda _: _coin("safe"),
    _rare,
    _tenth,
    _largest,
    _heavy,
    _ties,
    lambda rng: _clusters(rng, "loss = ρ", "safe", -RHO, "worst"),
    lambda rng: _clusters(rng, "gain = 0", "safe", 0.0, "gain"),
    _no_variance,
    lambda rng: _noisy(rng, "safe", twice=False),
    lambda rng: _noisy(rng, "safe", twice=True),
    lambda rng: _beyond(rng, declared=True),
    lambda rng: _beyond(rng, declared=False),
    lambda rng: _jackpot(rng, declared=True),
    lambda rng: _jackpot(rng, declared=False),
    _loss_between,
    lambda rng: _loss(rng, "safe", _LARGE),
    lambda rng: _loss(rng, "unsafe", _EIGHT),
    lambda rng: _no_gain(rng, "unsafe", 0.1),
    lambda _: _coin("unsafe"),
    _heavy_delta,
    lambda rng: _clusters(rng, "loss = δ", "unsafe", -DELTA, "worst"),
    lambda rng: _noisy(rng, "unsafe", twice=False),
    lambda rng: _noisy(rng, "unsafe", twice=True),
    lambda rng: _loss(rng, "unsafe", _LARGE),
    lambda rng: _good(rng, 0.3),
    lambda rng: _good(rng, 0.5),
    lambda rng: _good(rng, 0.3, _LARGE),
    _bad,
    lambda rng: _bad(rng, _LARGE),
    _bad_between,
)
"""Errors first (wrong *safe*, then wrong *unsafe*), then power."""
