"""``toptail bench``: measure the speed claims on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro


@dataclass(frozen=True)
class Bench:
    """Measure speed on this machine, both sides of every claim in one run."""

    what: Annotated[Literal["audit"], tyro.conf.Positional]
    """What to measure."""

    def run(self) -> int:
        """Print the benchmark's table."""
        from toptail.bench.audit import bench_audit
        from toptail.bench.table import print_rows

        print_rows("toptail bench audit", bench_audit())
        return 0
