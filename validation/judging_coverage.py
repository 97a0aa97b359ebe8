r"""Captured shares of partly judged tables where headroom differs between queries: coverage.

    python -m validation.judging_coverage --tables 400 --workers 16 \
        --out validation/results/judging/coverage.json

A table's seed is 18 and its number, so that the result does not depend on how many workers
there are.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.provenance import commit
from validation.judging import RESAMPLES, SEED, WAYS, outcome
from validation.judging_cases import CANDIDATES, SCALED, SDS

QUERIES: Final = (100, 300)
SHARE: Final = 0.2
"""Labels, as a share of the candidates."""
Cell = tuple[int, float, int, int, int]
"""Population, sd, queries, way (by their numbers) and tables."""


def measured(cell: Cell) -> dict[str, Any]:
    """One cell of the simulation."""
    which, sd, queries, at, tables = cell
    population, (way, judge, cheap) = SCALED[which](sd), WAYS[at]
    labels = round(SHARE * CANDIDATES * queries)
    found = outcome(population, judge, cheap, tables, labels, queries)
    numbers = {name: x if math.isfinite(x) else None for name, x in asdict(found).items()}
    return {
        "population": population.name,
        "wrong_verdict": population.wrong,
        "captured": population.captured,
        "sd": sd,
        "queries": queries,
        "way": way,
        "covered": found.covered,
    } | numbers


def main(given: list[str] | None = None) -> int:
    """Run the simulation, store it, and print the rows of the table in error-rates.md."""
    parser = argparse.ArgumentParser(prog="python -m validation.judging_coverage")
    parser.add_argument("--tables", type=int, default=400, help="tables a cell")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    every = ",".join(map(str, range(len(WAYS))))
    parser.add_argument("--ways", default=every, help="ways of judging, by their numbers from 0")
    parser.add_argument("--out", type=Path, required=True, help="JSON file")
    asked = parser.parse_args(given)
    ways = [int(at) for at in asked.ways.split(",")]
    cells = list(product(range(len(SCALED)), SDS, QUERIES, ways, [asked.tables]))
    with ProcessPoolExecutor(asked.workers, get_context("spawn")) as workers:
        found = list((workers.map if asked.workers > 1 else map)(measured, cells))
    content = {
        "command": " ".join(["python -m validation.judging_coverage", *sys.argv[1:]]),
        "commit": commit(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, NumPy {np.__version__}",
        "seed": SEED,
        "resamples": RESAMPLES,
        "tables": asked.tables,
        "labels": SHARE,
        "cells": found,
    }
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")
    for way in dict.fromkeys(cell["way"] for cell in found):
        sys.stdout.write("\n".join([f"{way}:", *rows(content, way), ""]))
    return 0


def rows(content: dict[str, Any], way: str) -> list[str]:
    """The table of error-rates.md for one way: a row for each population and sd."""
    lines: dict[str, list[str]] = {}
    for cell in content["cells"]:
        if cell["way"] == way:
            shares = (100 * cell[name] for name in ("covered", "low_above", "high_below", "wrong"))
            width = "–" if cell["half_width"] is None else f"{cell['half_width']:.3f}"
            head = f"| {cell['population']}; {cell['captured']:.2f} | {cell['sd']} |"
            lines.setdefault(head, []).append(
                "{:.1f} ({:.1f}/{:.1f}); {:.1f}; ".format(*shares)
                + f"{width}; {100 * cell['unknown']:.0f}"
            )
    return [f"{head} {' | '.join(cells)} |" for head, cells in lines.items()]


if __name__ == "__main__":
    sys.exit(main())
