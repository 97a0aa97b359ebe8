"""``python -m validation``: measure the speed claims on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import tyro

from toptail.commands.flags import RayFlag, parse
from toptail.errors import InputError, check_whole

if TYPE_CHECKING:
    from validation.table import Row

_BENCHES: Final = {
    "audit": ("audit", "bench_audit"),
    "choose": ("choose", "bench_choose"),
    "score": ("score", "bench_score"),
    "train": ("train", "bench_train"),
    "quality": ("train", "bench_quality"),
    "judging": ("judging", "bench_judging"),
    "scale": ("scale", "bench_scale"),
}
"""What to measure -> the module and the function that do."""


@dataclass(frozen=True)
class Bench(RayFlag):
    """Measure speed on this machine, both sides of every claim in one run."""

    what: Annotated[
        Literal["audit", "choose", "score", "train", "quality", "judging", "scale"],
        tyro.conf.Positional,
    ]
    """What to measure; 'quality' trains in bfloat16 and float32 and compares what was learned,
    'judging' counts how often verdicts are wrong where only some candidates were judged, 'scale'
    says how an audit grows with the table."""
    task: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_FILE")] = None
    """The data set to train on, for 'quality'."""
    repetitions: int = 200
    """Tables a cell, for 'judging'; 400 for the numbers in the documentation."""
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
        arguments: dict[str, list[Any]] = {
            "quality": [self.task],
            "scale": [self.millions, self.ray],
            "judging": [self.repetitions],
        }
        rows: Iterator[Row] = bench(*arguments.get(self.what, []))
        return rows


if __name__ == "__main__":
    try:
        sys.exit(parse(Bench, sys.argv[1:], "python -m validation").run())
    except InputError as error:
        sys.exit(error.for_command())
