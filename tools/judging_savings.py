"""How many labels tables take: measured, stored, and drawn for docs/explanation/error-rates.md.

    python tools/judging_savings.py NAME TABLE [SCORES]    # measures, and stores NAME.json
    python tools/judging_savings.py                        # draws docs/figures/judging_savings.*

TABLE has every value, and may have a column 'cheap'; SCORES are separated by commas. What is
measured is what ``python -m validation judging --table TABLE`` prints.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

from toptail.pools import ScoredPools
from toptail.pools.columns import as_list
from toptail.report.figures import NEUTRAL, SETTINGS, new_figure
from validation.judging_savings import TIMES, Saving, table_savings

ROOT = Path(__file__).parents[1]
STORED = ROOT / "validation" / "results" / "judging"
TITLES = {
    "realsumm": "REALSumm, 100 × 25",
    "game24": "game of 24, 281 × 8–40",
    "controlled": "controlled world, 500 × 256",
    "builtin": "built-in pools, 400 × 64",
    "antmaze": "AntMaze, 500 × 64",
    "humanoidmaze": "HumanoidMaze, 500 × 64",
    "pointmaze": "PointMaze, 500 × 64",
    "antmaze-rollouts": "AntMaze, rollouts, 306 × 8–17",
    "humanoidmaze-rollouts": "HumanoidMaze, rollouts, 408 × 8–17",
}
"""What each stored table is called in the figure, in its order."""
WAYS = {
    "whole queries": ("o", "#7a7a7a"),
    "at random": ("x", "#b0803c"),
    "planned": ("s", "#2f6db5"),
    "planned, cheap judge": ("D", "#3a8f5c"),
}


def measure(name: str, table: str, scores: str | None) -> None:
    """Measure one table and store what was found."""
    chosen = as_list(None if scores is None else scores.split(","))
    pools = ScoredPools.read(table, scores=chosen)
    found = table_savings(pools, tick=lambda stage, _: print(stage, flush=True))
    content = {
        "candidates": found.candidates,
        "queries": pools.queries,
        "scorers": list(pools.scorers),
        "half_width": found.half_width,
        "ways": [_way(each, found.half_width) for each in found.ways],
    }
    STORED.mkdir(parents=True, exist_ok=True)
    (STORED / f"{name}.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")


def _way(found: Saving, full: float) -> dict[str, Any]:
    """One way, with the labels that it needs for each half-width; None where that is not known."""
    return {
        "way": found.way,
        "labels": found.labels,
        "half_width": [_known(width) for width in found.half_width],
        "needed": {f"{times:g}": _known(found.needed(times * full)) for times in TIMES},
    }


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def draw() -> None:
    """Labels for one and a half times and for twice the half-width, as shares of all."""
    stored = {
        name: json.loads((STORED / f"{name}.json").read_text())
        for name in TITLES
        if (STORED / f"{name}.json").is_file()
    }
    with mpl.rc_context(SETTINGS | {"axes.grid": True, "axes.grid.axis": "x"}):
        figure = new_figure(10, 1.1 + 0.42 * len(stored))
        panels = figure.subplots(1, 2, sharey=True)
        for panel, times in zip(panels, ("1.5", "2"), strict=True):
            for row, content in enumerate(stored.values()):
                _row(panel, row, content, times)
            panel.axvline(20, color=NEUTRAL, linestyle=":", linewidth=1)
            panel.set_xlim(0, 80)
            panel.set_xlabel("labels, % of all candidates")
            panel.set_title(f"for {times} × the half-width with every label", fontsize=9)
        panels[0].set_yticks(range(len(stored)), [TITLES[name] for name in stored])
        panels[0].invert_yaxis()
        handles = [
            mpl.lines.Line2D([], [], color=colour, marker=mark, linestyle="", label=way)
            for way, (mark, colour) in WAYS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
        for ending in ("svg", "png"):
            how = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
            figure.savefig(ROOT / "docs" / "figures" / f"judging_savings.{ending}", **how)


def _row(panel: Any, row: int, content: dict[str, Any], times: str) -> None:
    """One table: a mark for each way; at the edge where 70 % of the labels are not enough."""
    for lane, way in enumerate(content["ways"]):
        mark, colour = WAYS[way["way"]]
        needed, y = way["needed"][times], row + 0.16 * (lane - 1.5)
        if needed is not None:
            panel.plot(100 * needed / content["candidates"], y, mark, color=colour, markersize=6)
            continue
        reached = [width for width in way["half_width"] if width is not None]
        few = bool(reached) and max(reached) < float(times) * content["half_width"]
        x = 100 * way["labels"][0] / content["candidates"] if few else 75
        panel.annotate(
            "‹" if few else "›", (x, y), color=colour, ha="center", va="center", fontsize=15
        )


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(*(*sys.argv[1:], None)[:3])
    else:
        draw()
