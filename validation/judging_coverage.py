r"""Captured shares of partly judged tables where headroom differs between queries: coverage.

    python -m validation.judging_coverage --tables 400 --workers 16 \
        --out validation/results/judging/coverage.json

A table's seed is 18 and its number, so that the result does not depend on how many workers
there are.
"""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from itertools import product
from typing import Any, Final

from validation.judging import RESAMPLES, SEED, WAYS, outcome
from validation.judging_cases import CANDIDATES, SCALED, SDS
from validation.simulation import computed, flags, store

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


def main(argv: list[str] | None = None) -> None:
    """Run the simulation, store it, and print the rows of the table in error-rates.md."""
    parser = flags(__doc__, tables=400)
    every = ",".join(map(str, range(len(WAYS))))
    parser.add_argument("--ways", default=every, help="ways of judging, by their numbers from 0")
    given = parser.parse_args(argv)
    ways = [int(at) for at in given.ways.split(",")]
    cells = product(range(len(SCALED)), SDS, QUERIES, ways, [given.tables])
    content = {
        "seed": SEED,
        "resamples": RESAMPLES,
        "tables": given.tables,
        "labels": SHARE,
        "cells": list(computed(measured, cells, given.workers)),
    }
    store(given, "judging_coverage", "tables workers ways", content)
    for number in ways:
        way = WAYS[number][0]
        sys.stdout.write("\n".join([f"{way}:", *rows(content, way), ""]))


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
    main()
