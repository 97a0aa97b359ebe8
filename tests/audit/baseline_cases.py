"""Two tables whose true difference is exactly -margin, and how often a claim is made there.

``python -m tests.audit.baseline_cases 0.1`` prints the table of error-rates.md at that margin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from toptail.audit.baseline import PairedSums
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.resample import cluster_sums

CANDIDATES = 8
SIZES = (10, 20, 50, 100, 400)
TAIL = 0.025


@dataclass(frozen=True, eq=False)
class Queries:
    """Changes of the pick's value in some queries, as they are usually and where one is struck."""

    value: Floats
    """Values of the candidates ``[queries, candidates]``, the same in both tables."""
    usual: Floats
    """The change where nothing is special ``[queries]``."""
    struck: Floats
    """The change in a struck query ``[queries]``."""
    prone: Floats
    """1 where a query can be struck, else 0 ``[queries]``."""

    @property
    def headroom(self) -> Floats:
        """What the best choice gains over a random one."""
        return np.asarray(self.value.max(axis=1) - self.value.mean(axis=1))


def _picked(value: Floats, noise: float, rng: np.random.Generator) -> Ints:
    """Whom a score picks that sees values through noise, in units of a pool's own spread."""
    blur = noise * value.std(axis=1, keepdims=True) * rng.normal(size=value.shape)
    return np.asarray(np.argmax(value + blur, axis=1))


def _moved(value: Floats, pick: Ints, by: Ints) -> Ints:
    """The candidate that many places above the picked one, in the order of values."""
    order = np.argsort(value, axis=1)
    place = np.take_along_axis(np.argsort(order, axis=1), pick[:, None], axis=1)[:, 0]
    place = np.clip(place + by, 0, value.shape[1] - 1)
    return np.take_along_axis(order, place[:, None], axis=1)[:, 0]


def _queries(value: Floats, old: Ints, new: Ints, struck: Ints, prone: Floats | None) -> Queries:
    at = np.arange(len(value))
    usual, changed = (value[at, pick] - value[at, old] for pick in (new, struck))
    return Queries(value, usual, changed, np.ones(len(value)) if prone is None else prone)


Case = Callable[[np.random.Generator, int], Queries]


def _rare(values: Callable[[np.random.Generator, int], Floats]) -> Case:
    """The old pick everywhere, the worst candidate where a query is struck."""

    def case(rng: np.random.Generator, queries: int) -> Queries:
        value = values(rng, queries)
        old = _picked(value, 0.7, rng)
        return _queries(value, old, old, value.argmin(axis=1), None)

    return case


def _uniform(rng: np.random.Generator, queries: int) -> Floats:
    return rng.random((queries, CANDIDATES))


def _heavy(rng: np.random.Generator, queries: int) -> Floats:
    return np.asarray(rng.standard_t(2.5, (queries, CANDIDATES)), dtype=np.float64)


def _binary(rng: np.random.Generator, queries: int) -> Floats:
    return (_uniform(rng, queries) < 0.4).astype(np.float64)


def _noisier(rng: np.random.Generator, queries: int) -> Queries:
    value = _uniform(rng, queries)
    old, new, struck = (_picked(value, noise, rng) for noise in (0.7, 0.7, 3.0))
    return _queries(value, old, new, struck, None)


def _small_losses(rng: np.random.Generator, queries: int) -> Queries:
    value = _uniform(rng, queries)
    old = _picked(value, 0.7, rng)
    return _queries(value, old, old, _moved(value, old, np.full(queries, -1)), None)


def _better_elsewhere(rng: np.random.Generator, queries: int) -> Queries:
    value = _uniform(rng, queries)
    old = _picked(value, 0.7, rng)
    new = _moved(value, old, (rng.random(queries) < 0.3).astype(np.int64))
    return _queries(value, old, new, value.argmin(axis=1), None)


def _largest_headroom(rng: np.random.Generator, queries: int) -> Queries:
    value = rng.normal(size=(queries, CANDIDATES)) * np.exp(rng.normal(size=(queries, 1)))
    old = _picked(value, 0.7, rng)
    large = value.max(axis=1) - value.mean(axis=1) > np.exp(1.5)
    return _queries(value, old, old, value.argmin(axis=1), large.astype(np.float64))


def _rare_gains(rng: np.random.Generator, queries: int) -> Queries:
    value = _uniform(rng, queries)
    old = _picked(value, 0.7, rng)
    new = _moved(value, old, -(rng.random(queries) < 0.5).astype(np.int64))
    found = _queries(value, old, new, old, None)
    spread = value.max(axis=1) - value.min(axis=1)
    return Queries(value, found.usual, spread, found.prone)


def _beyond(rng: np.random.Generator, queries: int) -> Queries:
    """Eight headrooms are lost in a struck query, far more than candidates elsewhere allow."""
    value = _uniform(rng, queries)
    none = np.zeros(queries)
    return Queries(value, none, none - 8 * 7 / 18, none + 1)


CASES: dict[str, Case] = {
    "a noisier score in some queries": _noisier,
    "a slightly worse pick in some queries": _small_losses,
    "the worst pick in a few queries": _rare(_uniform),
    "the same, better elsewhere": _better_elsewhere,
    "the same, among queries of the largest headroom": _largest_headroom,
    "the same, heavy tails": _rare(_heavy),
    "the same, values 0 and 1": _rare(_binary),
    "worse everywhere, a large gain in a few": _rare_gains,
}
CLUSTERED = "the worst pick in a few clusters of 1 to 5"
BEYOND = "eight headrooms lost in a few queries"
"""What no rule can exclude without a range of values: not one of the cases that are promised."""


@cache
def struck_share(name: str, margin: float) -> float:
    """How many of the prone queries must be struck for a true difference of -margin."""
    found = _case(name)(np.random.default_rng(1), 400_000)
    unit = found.headroom.mean()
    each = ((found.struck - found.usual) * found.prone).mean()
    return float((-margin * unit - found.usual.mean()) / each)


def _case(name: str) -> Case:
    more = {CLUSTERED: CASES["the worst pick in a few queries"], BEYOND: _beyond}
    return {**CASES, **more}[name]


def drawn(name: str, rng: np.random.Generator, clusters: int, margin: float) -> PairedSums:
    """One pair of tables."""
    each = rng.integers(1, 6, clusters) if name == CLUSTERED else np.ones(clusters, dtype=np.int64)
    cluster = np.repeat(np.arange(clusters), each)
    found = _case(name)(rng, len(cluster))
    struck = (rng.random(clusters) < struck_share(name, margin))[cluster] & (found.prone > 0)
    change = np.where(struck, found.struck, found.usual)
    spread = found.value.max(axis=1) - found.value.min(axis=1)
    bounds = np.minimum(change, -spread), np.maximum(change, spread)
    columns = np.stack([change, found.headroom, *bounds], axis=1)
    sums = cluster_sums(columns, cluster)
    return PairedSums(sums[:, :1], sums[:, 1], sums[:, 2], sums[:, 3])


def claims(
    name: str, clusters: int, margin: float, repetitions: int, resamples: int = 500
) -> tuple[float, float]:
    """Shares of wrong *not worse* and of wrong *worse*."""
    rng = np.random.default_rng([clusters, [*CASES, CLUSTERED, BEYOND].index(name)])
    wrong = np.zeros(2)
    for _ in range(repetitions):
        (ends,) = drawn(name, rng, clusters, margin).ends(rng, resamples, TAIL)
        wrong += (ends.low > -margin, ends.high < -margin)
    return float(wrong[0] / repetitions), float(wrong[1] / repetitions)


if __name__ == "__main__":
    share = float(sys.argv[1])
    print(f"| margin {share:g} |" + "|".join(f" n = {n} " for n in SIZES) + "|")
    print("|---|" + "---|" * len(SIZES))
    for case_name in (*CASES, CLUSTERED, BEYOND):
        cells = [claims(case_name, n, share, repetitions=2_000) for n in SIZES]
        text = " | ".join(f"{100 * a:.1f}/{100 * b:.1f}" for a, b in cells)
        print(f"| {case_name} | {text} |", flush=True)
