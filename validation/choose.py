"""How fast a choice among selectors is, against a loop over drawn pools."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.select.base import RankSelector, Selector
from toptail.select.catalog import Catalog
from toptail.select.inputs import SelectorInputs
from toptail.select.measure import measure_all
from toptail.stats.best_of_k import Floats, KGrid
from validation.audit import noisy_pools, run_command
from validation.clock import seconds
from validation.table import Row

CLOSED: Final = "best,rank,trim:0.1,poisson:8"
"""Five selectors a scorer, twenty for four scorers: all have closed forms."""
DRAWN: Final = "soft,chi2"


def bench_choose(queries: int = 10_000, candidates: int = 1_000) -> Iterator[Row]:
    """Rows of the benchmark table, each as soon as it is measured.

    The whole choice runs as a user runs it: the command, from a Parquet file, in its own process,
    whose peak memory the operating system reports.
    """
    with tempfile.TemporaryDirectory(prefix="toptail-bench-") as folder:
        path, out = Path(folder) / "scores.parquet", Path(folder) / "out"
        noisy_pools(queries, candidates, scorers=4).write(path)
        for words, what in (
            (CLOSED, "20 closed-form selectors"),
            (f"{CLOSED},{DRAWN}", "the same and 24 drawn"),
        ):
            time, memory, _ = run_command("choose", path, "--selectors", words, "--out", out)
            yield Row(
                f"choose, {queries:,} queries x {candidates:,} candidates x 4 scorers, {what}",
                f"{time:.0f} s, {memory / 2**30:.2f} GiB",
                "every K = 1, 2, 4, ..., from Parquet, whole process",
            )
    yield _against_drawn_pools()


def _against_drawn_pools(queries: int = 5, candidates: int = 1_000, draws: int = 200) -> Row:
    """Exact values against the mean over drawn pools, selector by selector and K by K."""
    pools = noisy_pools(queries, candidates, scorers=4)
    options = SelectorInputs(pools, {}, None)
    ks = KGrid.up_to(candidates).deciding
    selectors = Catalog(options, candidates).selectors(CLOSED.split(","), abstain=False)
    value = pools.values["value"]
    found: dict[str, Any] = {}

    def exact() -> None:
        found["exact"] = measure_all(options, value, selectors, ks, seed=0, scale=1.0)

    def drawn() -> None:
        closed = [each for each in selectors if isinstance(each, RankSelector)]
        found["drawn"] = _drawn(options, value, closed, ks, draws)

    ours, theirs = seconds(exact), seconds(drawn)
    gap = np.abs(found["exact"].value.mean(axis=0)[1:] - found["drawn"]).max()
    return Row(
        f"{len(selectors) - 1} selectors at {len(ks) - 1} K, {queries} queries",
        f"{ours:.2f} s exact",
        f"{theirs:.0f} s in a loop over {draws:,} drawn pools: {theirs / ours:,.0f} times "
        f"(largest gap {gap:.4f})",
    )


def _drawn(
    options: SelectorInputs, value: Floats, selectors: list[Any], ks: tuple[int, ...], draws: int
) -> Floats:
    """Mean value over drawn pools of every selector at every K above 1, as by hand."""
    rng = np.random.default_rng(1)
    block = next(options.pools.blocks())
    pool, worth = options.pool(block), block.take(value)
    m, n = pool.shape
    every = np.tile(np.arange(n), (m, 1))
    sums = np.zeros((len(selectors), len(ks) - 1))
    for _ in range(draws):
        subset = rng.permuted(every, axis=1)
        for at, k in enumerate(ks[1:]):
            part, gained = pool.at(subset[:, :k]), np.take_along_axis(worth, subset[:, :k], axis=1)
            for number, each in enumerate(selectors):
                sums[number, at] += _value(each, part, gained, rng)
    return sums.reshape(-1) / draws


def _value(selector: Selector, part: Any, gained: Floats, rng: np.random.Generator) -> float:
    return float((selector.at(part, gained.shape[1], rng) * gained).sum(axis=1).mean())
