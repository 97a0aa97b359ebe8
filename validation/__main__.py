"""``python -m validation``: measure the speed claims on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import tyro

from toptail.commands.flags import RayFlag, parse
from toptail.errors import InputError, check_whole

if TYPE_CHECKING:
    from validation.table import Row

_BENCHES: Final = {
    "audit": ("audit", "bench_audit"),
    "choose": ("choose", "bench_choose"),
    "honesty": ("choose_honesty", "bench_honesty"),
    "controlled": ("controlled", "bench"),
    "sim": ("sim", "bench_sim"),
    "score": ("score", "bench_score"),
    "train": ("train", "bench_train"),
    "quality": ("train", "bench_quality"),
    "verdict": ("verdict", "bench_verdict"),
    "judging": ("judging", "bench_judging"),
    "scale": ("scale", "bench_scale"),
}
"""What to measure -> the module and the function that do."""


@dataclass(frozen=True)
class Bench(RayFlag):
    """Measure speed on this machine, both sides of every claim in one run."""

    what: Annotated[
        Literal[
            "audit",
            "choose",
            "honesty",
            "controlled",
            "sim",
            "score",
            "train",
            "quality",
            "verdict",
            "judging",
            "scale",
        ],
        tyro.conf.Positional,
    ]
    """What to measure; 'quality' trains in bfloat16 and float32 and compares what was learned,
    'verdict' counts how often the audit's verdict is wrong on tables whose truth is known,
    'honesty' how often the interval of a choice holds the truth, 'judging' the verdict where only
    some candidates were judged, 'scale' how an audit grows with the table."""
    task: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_FILE")] = None
    """The data set to train on, for 'quality'."""
    table: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """For 'judging': a table with every value, of which it says how many labels would do."""
    repetitions: int = 200
    """Tables a cell, for 'verdict', 'honesty' and 'judging'; 2,000, 200 and 400 for the numbers in
    the documentation."""

    millions: int = 100
    """With 'scale': candidates of the largest table, in millions; a million takes 32 MB of disk."""

    def run(self) -> int:
        """Print the benchmark's table."""
        from validation.table import print_rows

        print_rows(f"python -m validation {self.what}", self._rows())
        return 0

    def _rows(self) -> Iterator[Row]:
        check_whole("repetitions", self.repetitions, 1)
        check_whole("millions", self.millions, 10)
        if self.what == "quality" and self.task is None:
            raise InputError("'quality' needs a data set: give --task NAME_OR_FILE.")
        module, name = _BENCHES[self.what]
        bench = getattr(import_module(f"validation.{module}"), name)
        given: dict[str, list[Any]] = {"quality": [self.task]}
        given |= {name: [self.repetitions] for name in ("verdict", "honesty")}
        given["scale"] = [self.millions, self.ray]
        given["judging"] = [self.repetitions, self.table]
        rows: Iterator[Row] = bench(*given.get(self.what, []))
        return rows


if __name__ == "__main__":
    try:
        sys.exit(parse(Bench, sys.argv[1:], "python -m validation").run())
    except InputError as error:
        sys.exit(error.for_command())
