"""How fast the audit is, against the ways people do it by hand."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toptail.pools import ScoredPools
from toptail.stats import best_of_k, bootstrap_sums, kendall_tau_b, weighted_sums
from toptail.stats.best_of_k import Floats
from validation.table import Row


def bench_audit(queries: int = 10_000, candidates: int = 1_000) -> Iterator[Row]:
    """Rows of the benchmark table, each as soon as it is measured.

    The full audit runs as a user runs it: the command, from a Parquet file, in its own
    process, whose peak memory the operating system reports.
    """
    seconds = {}
    shapes = (
        (queries // 10, candidates),
        (queries, candidates),
        (10 * queries, candidates // 10),
    )
    for shape in shapes:
        with tempfile.TemporaryDirectory(prefix="toptail-bench-") as folder:
            path = Path(folder) / "scores.parquet"
            noisy_pools(*shape, scorers=4).write(path)
            out = Path(folder) / "out"
            seconds[shape], memory, _ = run_command("audit", path, "--out", out)
        yield Row(
            f"full audit, {shape[0]:,} queries x {shape[1]:,} candidates x 4 scorers",
            f"{seconds[shape]:.1f} s, {memory / 2**30:.2f} GiB",
            "10,000 resamples, from Parquet, whole process",
        )
    small, whole, split = (seconds[shape] for shape in shapes)
    yield Row(
        "growth for 10 times the queries", f"{whole / small:.1f} times the time", "linear is 10"
    )
    yield Row(
        "the same rows as 10 times the queries",
        f"{split / whole:.1f} times the time",
        "rows alone would be 1",
    )
    for count in (queries, 10 * queries):
        yield _resampling(count)
    yield _against_monte_carlo()
    for n in (64, 1_000):
        yield _tau_against_scipy(n)


def noisy_pools(queries: int, candidates: int, scorers: int) -> ScoredPools:
    """Uniform values, and scorers of which each is noisier than the one before."""
    rng = np.random.default_rng(0)
    value = rng.random((queries, candidates))
    scores = {
        f"scorer_{i}": value + rng.normal(0.0, 0.2 * (i + 1), value.shape) for i in range(scorers)
    }
    return ScoredPools.from_arrays(scores, value, source="benchmark")


def _one_scorer(queries: int, candidates: int) -> tuple[Floats, Floats]:
    """Scores and values of one scorer, side by side."""
    pools = noisy_pools(queries, candidates, scorers=1)
    block = next(pools.blocks())
    return block.take(pools.scores["scorer_0"]), block.take(pools.values["value"])


class Spent(NamedTuple):
    """What a command took."""

    seconds: float
    """By the clock."""
    memory: int
    """Peak resident bytes."""
    cpu: float
    """Seconds of all cores together."""


def run_command(*words: str | Path) -> Spent:
    """What a command of toptail takes in its own process."""
    argv = [sys.executable, "-m", "toptail", *map(str, words)]
    start = time.perf_counter()
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(sys.executable, argv, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    elapsed = time.perf_counter() - start
    if status != 0:
        raise RuntimeError(f"toptail {words[0]} failed with status {status}")
    return Spent(elapsed, usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime)


def _resampling(queries: int, columns: int = 180, resamples: int = 500) -> Row:
    """Weights in tiles against clusters drawn with replacement, which leave the cache."""
    sums = np.random.default_rng(0).normal(size=(queries, columns))
    ours, _ = _timed(lambda: weighted_sums(sums, np.random.default_rng(1), resamples))
    theirs, _ = _timed(lambda: bootstrap_sums(sums, np.random.default_rng(1), resamples // 10))
    theirs *= 10
    return Row(
        f"resampling {queries:,} queries x {columns} columns",
        f"{1e3 * ours / resamples:.2f} ms each",
        f"{1e3 * theirs / resamples:.2f} ms by drawing with replacement: {theirs / ours:.1f} times",
    )


def _against_monte_carlo(queries: int = 5, candidates: int = 1_000) -> Row:
    """The exact curve against pools drawn until the standard error is 1e-3 of the range."""
    scores, value = _one_scorer(queries, candidates)
    k = [1 << power for power in range(10)]
    exact_time, exact = _timed(lambda: best_of_k(scores, value, k))
    rng = np.random.default_rng(1)
    drawn_time, drawn = _timed(lambda: _monte_carlo(scores, value, k, rng))
    return Row(
        f"exact curve, {queries} queries x {candidates:,} candidates, K = 1..512",
        f"{exact_time * 1e3:.1f} ms",
        f"{drawn_time:.1f} s by drawing pools to a standard error of 0.001: "
        f"{drawn_time / exact_time:,.0f} times (largest gap {np.abs(exact - drawn).max():.4f})",
    )


def _monte_carlo(scores: Floats, value: Floats, k: list[int], rng: np.random.Generator) -> Floats:
    """Draw pools until every mean has a standard error of 1e-3 of the value range."""
    target = 1e-3 * (value.max() - value.min())
    result = np.empty((scores.shape[0], len(k)))
    for q, (s, v) in enumerate(zip(scores, value, strict=True)):
        for i, size in enumerate(k):
            picked = np.empty(0)
            while picked.size < 1_000 or picked.std() / np.sqrt(picked.size) > target:
                draws = _draw_pools(s.size, size, rng)
                best = np.take_along_axis(draws, s[draws].argmax(axis=1)[:, None], axis=1)[:, 0]
                picked = np.concatenate([picked, v[best]])
            result[q, i] = picked.mean()
    return result


def _draw_pools(n: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """About a thousand pools of K out of n without replacement, by the cheaper of two ways."""
    if k * k < n:  # few repeats: draw freely, drop the pools that hold a candidate twice
        draws = rng.integers(n, size=(1_000, k))
        ordered = np.sort(draws, axis=1)
        return np.asarray(draws[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)])
    keys = rng.random((1_000, n))  # the K smallest keys are a random pool
    return np.asarray(np.argpartition(keys, k - 1, axis=1)[:, :k])


def _tau_against_scipy(candidates: int) -> Row:
    from scipy.stats import kendalltau

    scores, value = _one_scorer(2_000 if candidates < 500 else 400, candidates)
    batched, ours = _timed(lambda: kendall_tau_b(scores, value))
    looped, theirs = _timed(
        lambda: np.array([kendalltau(x, y).statistic for x, y in zip(scores, value, strict=True)])
    )
    each = 1e6 / scores.shape[0]
    return Row(
        f"tau_b at {candidates:,} candidates",
        f"{batched * each:.1f} us per pool",
        f"{looped * each:.0f} us in a loop over scipy.stats.kendalltau: "
        f"{looped / batched:.1f} times (largest gap {np.abs(ours - theirs).max():.0e})",
    )


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Best of three runs for fast calls, one run for slow ones."""
    best, result = np.inf, None
    for _ in range(3):
        start = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - start)
        if best > 1.0:
            break
    return best, result
