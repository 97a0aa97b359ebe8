"""What the simulations share: their flags, cells in several processes, and the stored file.

The numbers of a cell depend on its own seed alone, so that the number of workers changes nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from toptail.io.json_files import write_json
from toptail.provenance import commit, versions
from validation.table import machine

Cell = TypeVar("Cell")
Found = TypeVar("Found")


def flags(description: str | None, *, tables: int) -> argparse.ArgumentParser:
    """``--tables``, ``--workers`` and ``--out``."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=tables, help="tables a cell")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="JSON file")
    return parser


def computed(work: Callable[[Cell], Found], cells: Iterable[Cell], workers: int) -> Iterator[Found]:
    """The result of every cell, in their order, from so many processes."""
    if workers == 1:
        yield from map(work, cells)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as processes:
        yield from processes.map(work, cells)


def store(given: argparse.Namespace, module: str, names: str, content: dict[str, Any]) -> None:
    """Write to ``--out`` what was found, with the flags of these names, code and machine."""
    if given.out is None:
        return
    typed = " ".join(f"--{name} {getattr(given, name)}" for name in names.split())
    made_by = {"command": f"python -m validation.{module} {typed}", "machine": machine()}
    write_json(given.out, {**made_by, "commit": commit(), "versions": versions(), **content})
