"""``metrics.jsonl``: one line per so many steps, none twice and none missing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

Line: TypeAlias = dict[str, float | None]
"""A step and the scalars of the steps that ended there; None where one is not finite."""


def metrics_line(step: int, scalars: Mapping[str, float]) -> Line:
    """Make a line: seven digits of each scalar, more than float32 has."""
    rounded = {k: float(f"{v:.7g}") if math.isfinite(v) else None for k, v in scalars.items()}
    return {"step": step, **rounded}


def append_line(path: Path, line: Line) -> None:
    """Write one more line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")


def read_lines(path: Path) -> list[Line]:
    """Read every whole line; what a killed process left of a last one is not one."""
    return [line for _, line in _whole_lines(path)]


def cut_lines(path: Path, step: int) -> None:
    """Cut the file behind the last whole line of at most ``step`` steps."""
    if path.is_file():
        kept = takewhile(lambda each: (each[1]["step"] or 0) <= step, _whole_lines(path))
        os.truncate(path, sum(length for length, _ in kept))


def logged_steps(steps: int, log_every: int) -> list[int]:
    """The steps that have a line: multiples of ``log_every``, and the last step."""
    return sorted({*range(log_every, steps + 1, log_every), steps})


def _whole_lines(path: Path) -> Iterator[tuple[int, Line]]:
    """Bytes and content of each line, up to the first that is not whole."""
    for text in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            return
        named = isinstance(line, dict) and isinstance(line.get("step"), int)
        if not (named and text.endswith(b"\n")):
            return
        yield len(text), line
