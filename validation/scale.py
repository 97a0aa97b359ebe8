"""How an audit grows with the table: from what fits in memory to what does not."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from validation.audit import Spent, run_command
from validation.table import Row

CANDIDATES: Final = 1_000
_PER_FILE: Final = 5_000
"""Queries in one file, which are five million rows."""


def bench_scale(millions: int = 100, cluster: str | None = None) -> Iterator[Row]:
    """Rows of the benchmark table: audits of 10, 100, ... up to so many million candidates.

    Two scorers, pools of a thousand, partitioned Parquet; each audit is the command in a process
    of its own, whose time on all cores and peak memory the operating system reports. With a Ray
    ``cluster`` each table is audited here and there, and the results are compared bit by bit.
    """
    spent: dict[int, Spent] = {}
    with tempfile.TemporaryDirectory(prefix="toptail-bench-") as folder:
        table, out = Path(folder) / "table", Path(folder) / "out"
        for size in _sizes(millions):
            write_table(table, 1_000_000 * size // CANDIDATES)
            what = f"audit of {size} million candidates x 2 scorers"
            spent[size] = run_command("audit", table, "--out", out)
            yield Row(
                what,
                _said(spent[size]),
                f"{spent[size].cpu / size:.2f} s of CPU per million, 10,000 resamples",
            )
            if cluster is not None:
                here = _numbers(out)
                other = run_command("audit", table, "--out", out, "--ray", cluster)
                same = "the same bits" if _numbers(out) == here else "NOT THE SAME BITS"
                share = other.seconds / spent[size].seconds
                took = f"{other.seconds:.0f} s, {share:.2f} times the time, {same}"
                yield Row(f"{what}, ray", took, "memory and cores are those of its workers")
    for (small, before), (large, after) in pairwise(spent.items()):
        yield Row(
            f"growth from {small} to {large} million",
            f"{after.cpu / before.cpu:.2f} times the CPU, {after.seconds / before.seconds:.2f} "
            f"times the clock, {after.memory / before.memory:.2f} times the memory",
            f"linear is {large / small:g}",
        )


def _sizes(millions: int) -> list[int]:
    return [size for size in (10, 100, 1_000, 10_000) if size < millions] + [millions]


def _said(spent: Spent) -> str:
    return f"{spent.seconds:.0f} s, {spent.cpu:.0f} s of CPU, {spent.memory / 2**30:.2f} GiB"


def _numbers(folder: Path) -> str:
    """What an audit found, without what says when and by which command."""
    content: dict[str, Any] = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    content.pop("record")
    return json.dumps(content)


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
