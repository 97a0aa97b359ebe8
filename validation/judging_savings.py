"""How many labels a table takes: all, at random, planned, and planned with a cheap judge.

    python -m validation.judging_savings TABLE [--scores A,B] [--store NAME]
    python -m validation.judging_savings             # draws docs/figures/judging_savings.*

TABLE has every value, and may have a column 'cheap'. With ``--store`` what was found is written to
validation/results/judging/NAME.json, which the figure in docs/explanation/error-rates.md shows.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.audit.run import pools_content
from toptail.audit.settings import Settings
from toptail.judging.design import LEAST_WHOLE, Contrasts, assumptions_from, drawn_within
from toptail.judging.values import judged_pools
from toptail.pools import ScoredPools
from validation.judging import RESAMPLES, SEED, WAYS, asked
from validation.table import Row, print_rows

ROOT: Final = Path(__file__).parents[1]
STORED: Final = ROOT / "validation" / "results" / "judging"
TIMES: Final = (1.25, 1.5, 2.0, 3.0)
"""Half-widths that labels are counted for, over that with every label."""


def half_width(pools: ScoredPools, cheap: str | None, seed: int) -> float:
    """Median over scorers of the half-width of the captured share at k_max."""
    judged = judged_pools(pools, "value", cheap=cheap, seed=seed)
    settings = Settings(resamples=RESAMPLES, seed=seed)
    scorers = pools_content(judged, settings)["scorers"].values()
    ends = [[scorer[f"captured_{end}"][-1] for end in ("low", "high")] for scorer in scorers]
    low, high = np.array(ends, dtype=np.float64).T
    return float(np.median((high - low) / 2))


@dataclass(frozen=True)
class Saving:
    """How many labels one way takes."""

    way: str
    """How candidates are chosen."""
    labels: list[float]
    """Labels that were used, mean over seeds."""
    half_width: list[float]
    """Half-width with so many, mean over seeds."""

    def needed(self, target: float) -> float:
        """Labels for a half-width, between those tried by powers; NaN beyond them."""
        known = np.isfinite(self.half_width)  # not where too few queries were judged whole
        order = np.argsort(np.array(self.half_width)[known])
        width, labels = (np.log(np.array(x)[known][order]) for x in (self.half_width, self.labels))
        inside = width[0] <= np.log(target) <= width[-1]
        return float(np.exp(np.interp(np.log(target), width, labels))) if inside else float("nan")


def planned_by_cheap(pools: ScoredPools, labels: int, rng: np.random.Generator) -> ScoredPools:
    """The table with the values that a plan asks for which knows a cheap judge."""
    about = Contrasts.of(pools)
    guess = assumptions_from(about, None, pools.values["cheap"], None)
    return asked(pools, *drawn_within(about, labels, guess, int(rng.integers(1 << 31))))


@dataclass(frozen=True)
class Savings:
    """What a table takes, every way."""

    candidates: int
    """How many there are."""
    half_width: float
    """Half-width of the captured share with every label."""
    ways: list[Saving]
    """The ways of choosing."""


def savings(
    pools: ScoredPools, labels: list[int], cheap: str | None = None, *, seeds: int = 3
) -> Savings:
    """What each way takes; ``pools`` have every value."""
    ways = [way for way in WAYS if way[0] in MARKS]
    if cheap is not None:
        ways.append(("planned, cheap judge", planned_by_cheap, cheap))
    result = []
    for name, way, judge in ways:
        used, width = [], []
        for count in labels:
            found = []
            for seed in range(seeds):
                table = way(pools, count, np.random.default_rng([SEED, seed]))
                judged = int((~np.isnan(table.values["value"])).sum())
                found.append((judged, half_width(table, judge, seed)))
            used.append(float(np.mean([each[0] for each in found])))
            width.append(float(np.mean([each[1] for each in found])))
        result.append(Saving(name, used, width))
    return Savings(pools.rows, half_width(pools, None, 0), result)


def table_savings(pools: ScoredPools) -> Savings:
    """What a table takes in which every value is there.

    The cheap judge is the column 'cheap', or else the mean of all scores, each standardized.
    """
    value = next(iter(pools.values.values()))
    cheap = pools.values.get("cheap")
    if cheap is None:
        spread = {name: column.std() or 1.0 for name, column in pools.scores.items()}
        parts = [(c - c.mean()) / spread[name] for name, c in pools.scores.items()]
        cheap = np.mean(parts, axis=0)
    pools = replace(pools, values={"value": value, "cheap": cheap}, support=None, group=None)
    least = max(0.08 * pools.rows, 1.3 * LEAST_WHOLE * float(pools.sizes.mean()))
    tried = np.geomspace(least, 0.7 * pools.rows, 5).astype(int).tolist()
    return savings(pools, tried, "cheap")


def rows(pools: ScoredPools, found: Savings) -> Iterator[Row]:
    """Rows for one table: labels for the same half-width."""
    full = found.half_width
    yield Row(pools.source, f"{pools.rows:,} candidates", f"half-width with every label {full:.3f}")
    for each in found.ways:
        pairs = zip(each.labels, each.half_width, strict=True)
        shares = (f"{times:g}×: {each.needed(times * full):,.0f}" for times in TIMES)
        yield Row(
            each.way,
            "labels for a half-width of " + ", ".join(shares),
            ", ".join(f"{labels:,.0f} → {width:.3f}" for labels, width in pairs),
        )


def stored(pools: ScoredPools, found: Savings) -> dict[str, Any]:
    """What was found, for JSON; None where a number is not known."""

    def known(number: float) -> float | None:
        return number if math.isfinite(number) else None

    full = found.half_width
    return {
        "candidates": found.candidates,
        "queries": pools.queries,
        "scorers": list(pools.scorers),
        "half_width": full,
        "ways": [
            {
                "way": each.way,
                "labels": each.labels,
                "half_width": [known(width) for width in each.half_width],
                "needed": {f"{times:g}": known(each.needed(times * full)) for times in TIMES},
            }
            for each in found.ways
        ],
    }


TITLES: Final = {
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
MARKS: Final = {
    "whole queries": ("o", "#7a7a7a"),
    "at random": ("x", "#b0803c"),
    "planned": ("s", "#2f6db5"),
    "planned, cheap judge": ("D", "#3a8f5c"),
}


def draw(folder: Path) -> None:
    """Labels for one and a half times and for twice the half-width, as shares of all."""
    import matplotlib as mpl

    from toptail.report.figures import NEUTRAL, SETTINGS, new_figure

    tables = [json.loads((STORED / f"{name}.json").read_text()) for name in TITLES]
    with mpl.rc_context(SETTINGS | {"axes.grid": True, "axes.grid.axis": "x"}):
        figure = new_figure(10, 1.1 + 0.42 * len(tables))
        panels = figure.subplots(1, 2, sharey=True)
        for panel, times in zip(panels, ("1.5", "2"), strict=True):
            for row, content in enumerate(tables):
                _draw_table(panel, row, content, times)
            panel.axvline(20, color=NEUTRAL, linestyle=":", linewidth=1)
            panel.set_xlim(0, 80)
            panel.set_xlabel("labels, % of all candidates")
            panel.set_title(f"for {times} × the half-width with every label", fontsize=9)
        panels[0].set_yticks(range(len(tables)), list(TITLES.values()))
        panels[0].invert_yaxis()
        handles = [
            mpl.lines.Line2D([], [], color=colour, marker=mark, linestyle="", label=way)
            for way, (mark, colour) in MARKS.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8)
        for ending in ("svg", "png"):
            how = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 150}
            figure.savefig(folder / f"judging_savings.{ending}", **how)


def _draw_table(panel: Any, row: int, content: dict[str, Any], times: str) -> None:
    """One table: a mark for each way; at the edge where 70 % of the labels are not enough."""
    for lane, way in enumerate(content["ways"]):
        mark, colour = MARKS[way["way"]]
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


def main(argv: Sequence[str] | None = None) -> None:
    """Measure a table, or draw what is stored."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", nargs="?", type=Path)
    parser.add_argument("--scores", help="columns, separated by commas")
    parser.add_argument("--store", metavar="NAME")
    given = parser.parse_args(argv)
    if given.table is None:
        draw(ROOT / "docs" / "figures")
        return
    pools = ScoredPools.read(given.table, scores=given.scores and given.scores.split(","))
    found = table_savings(pools)
    print_rows(f"python -m validation.judging_savings {given.table}", rows(pools, found))
    if given.store is not None:
        text = json.dumps(stored(pools, found), indent=1, allow_nan=False) + "\n"
        (STORED / f"{given.store}.json").write_text(text)


if __name__ == "__main__":
    main()
