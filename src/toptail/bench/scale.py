"""How an audit grows with the table: from what fits in memory to what does not."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from toptail.bench.audit import run_command
from toptail.bench.table import Row

CANDIDATES: Final = 1_000
_PER_FILE: Final = 5_000
"""Queries in one file, which are five million rows."""


def bench_scale(millions: int = 100, engine: str = "local") -> Iterator[Row]:
    """Rows of the benchmark table: audits of 10, 20, 50, ... up to so many million candidates.

    Two scorers, pools of a thousand, partitioned Parquet; each audit is the command in a process
    of its own, whose peak memory the operating system reports.
    """
    seconds: dict[int, float] = {}
    with tempfile.TemporaryDirectory(prefix="toptail-bench-") as folder:
        table = Path(folder) / "table"
        for size in _sizes(millions):
            write_table(table, 1_000_000 * size // CANDIDATES)
            words = ("audit", table, "--out", Path(folder) / "out", "--engine", engine)
            seconds[size], memory = run_command(*words)
            yield Row(
                f"audit of {size} million candidates x 2 scorers",
                f"{seconds[size]:.0f} s, {memory / 2**30:.2f} GiB",
                f"{seconds[size] / size:.2f} s per million, 10,000 resamples",
            )
    for small, large in pairwise(seconds):
        yield Row(
            f"growth from {small} to {large} million",
            f"{seconds[large] / seconds[small]:.2f} times the time",
            f"linear is {large / small:g}",
        )


def _sizes(millions: int) -> list[int]:
    steps = [digit * 10**power for power in range(1, 5) for digit in (1, 2, 5)]
    return [size for size in steps if size < millions] + [millions]


def write_table(folder: Path, queries: int) -> None:
    """Files with so many queries; those that are there stay, since each has its own seed."""
    folder.mkdir(exist_ok=True)
    for first in range(0, queries, _PER_FILE):
        path = folder / f"part-{first // _PER_FILE:05}.parquet"
        if not path.is_file():
            _write_file(path, first, min(_PER_FILE, queries - first))


def _write_file(path: Path, first: int, queries: int) -> None:
    rng = np.random.default_rng([7, first])
    value = rng.random(queries * CANDIDATES)
    columns = {"query": np.repeat(np.arange(first, first + queries), CANDIDATES), "value": value}
    for at, noise in enumerate((0.2, 0.6)):
        columns[f"score_{at}"] = value + rng.normal(0.0, noise, value.size)
    pq.write_table(pa.table(columns), path, row_group_size=1 << 20, compression="none")
