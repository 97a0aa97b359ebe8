"""``toptail bench``: measure the speed claims on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.bench.table import Row


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine, both sides of every claim in one run."""

    what: Annotated[
        Literal["audit", "controlled", "sim", "score", "train", "quality"], tyro.conf.Positional
    ]
    """What to measure; 'quality' trains in bfloat16 and float32 and compares what was learned."""
    task: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_FILE")] = None
    """The data set to train on, for 'quality'."""

    def run(self) -> int:
        """Print the benchmark's table."""
        from toptail.bench.table import print_rows

        print_rows(f"toptail bench {self.what}", self._rows())
        return 0

    def _rows(self) -> Iterator[Row]:
        if self.what == "audit":
            from toptail.bench.audit import bench_audit

            return bench_audit()
        if self.what == "controlled":
            from toptail.bench.controlled import bench

            return bench()
        if self.what == "sim":
            from toptail.bench.sim import bench_sim

            return bench_sim()
        if self.what == "score":
            from toptail.bench.score import bench_score

            return bench_score()
        from toptail.bench.train import bench_quality, bench_train

        if self.what == "train":
            return bench_train()
        if self.task is None:
            raise InputError("'toptail bench quality' needs a data set: --task NAME_OR_FILE.")
        return bench_quality(self.task)
