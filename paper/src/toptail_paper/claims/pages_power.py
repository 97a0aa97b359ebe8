"""Parts of the pages about rollouts: what they can tell apart, and gains of three seeds.

The ledger's rollouts of the four tasks are those of one training seed; the runs at the main
settings have three seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

from toptail.io.files import entries
from toptail.io.json_files import read_json
from toptail.report.text import bracket, join, number, signed
from toptail.stats import bootstrap_p, holm
from toptail.stats.best_of_k import Floats
from toptail_paper.claims import numbers
from toptail_paper.claims.numbers import Number, Tables, difference, quotient
from toptail_paper.claims.reported import (
    ANT,
    HUMANOID,
    NAVIGATION,
    POINT,
    RANKERS,
    SOCCER,
    TDQ,
    published,
)
from toptail_paper.selection.results import selector_name
from toptail_paper.study.markdown import markdown_table, wrapped
from toptail_paper.study.naming import data_set
from toptail_paper.study.replicates import REPLICATES, read_replicates
from toptail_paper.triples.bootstrap import LEVEL

TABLE, GAIN = "fixed-query", "rollout_delta"
ALWAYS: Final = (*TDQ, *RANKERS)
"""The critics that every stored table of rollouts has."""
POWER: Final = 0.8
"""Chance of an interval that excludes zero at which a difference is called decidable."""
LEAST: Final = 1 + NormalDist().inv_cdf(POWER) / NormalDist().inv_cdf(0.975)
"""The least decidable difference in half-widths of its 95 % interval."""
PAIRS: Final = (
    ("tdq", "raw"),
    ("tdq", "cosine"),
    ("tdq", "hybrid"),
    ("value_head", "raw"),
    ("value_head", "tdq"),
    ("tdq", "straight"),
    ("raw", "likely"),
)
"""Whose gains are compared."""
PLACES: Final = 4


def power() -> str:
    """Half-widths of the stored rollouts, what more queries would give, and what that decides."""
    stored = rollouts()
    queries = queries_of(main_rollouts(POINT), POINT)
    limits = {task: read_json(folder / "declared.json")["e_min"] for task, folder in homes()}
    widths, pairs, missed = [], [], []
    for task, tables in stored.items():
        once = max(half(gain(tables, task, name)) for name in ALWAYS)
        shrink = math.sqrt(queries_of(tables, task) / queries)
        main = main_rollouts(task)
        rows = main[TABLE]["rows"][task]
        measured = max(half(gain(main, task, name)) for name in ALWAYS if name in rows)
        ahead = number(once * shrink, PLACES)
        limit = f"{limits[task]:g}"
        before, own = (str(queries_of(each, task)) for each in (tables, main))
        widths.append([task, before, number(once, PLACES), ahead, own, _text(measured), limit])
        for other in (*RANKERS, "hybrid"):
            here = difference(gain(tables, task, "tdq"), gain(tables, task, other))
            now = half(less("tdq", other, task)) if other in rows else None
            least = LEAST * (half(here) * shrink if now is None else now)
            paper = reported_less(tables, task, "tdq", other)
            words = f"TD-Q less {other}"
            decided = paper is not None and abs(paper) >= least
            if paper is not None and not decided:
                missed.append(f"{words} on {task}")
            pairs.append(
                [
                    f"{task}: {words}",
                    "–" if paper is None else signed(paper, 3),
                    with_sign(here),
                    number(half(here) * shrink, PLACES),
                    _text(now),
                    number(least, PLACES),
                    "–" if paper is None else "yes" if decided else "no",
                ]
            )
    more = f"{queries} queries"
    head = ["task", "queries", "half-width, one seed", f"{more}: forecast"]
    head += ["three seeds: queries", "half-width, measured", "e_min"]
    second = ["difference of gains", "paper", "stored, one seed", f"half-width, {more}: forecast",
              "measured", "least decidable", "the paper's is decidable"]  # fmt: skip
    undecided = f"Not decidable with {more} are, if they are as large as the paper's: "
    return (
        f"{markdown_table(head, widths)}\n{markdown_table(second, pairs)}\n"
        f"{wrapped(undecided + join(missed) + '.')}"
    )


def gains() -> str:
    """PointMaze's gains of three seeds, and their paired differences."""
    ratio = times("tdq", "raw")
    sentence = (
        f"TD-Q gains {number(ratio.mean, 1)} {bracket(ratio.low, ratio.high, 1)} times as much as "
        f"raw. Raw less cosine is {with_sign(less('raw', 'cosine'))}, raw less the straight line "
        f"{with_sign(less('raw', 'straight'))}."
    )
    return f"{_gains_of(POINT)}\n{wrapped(sentence)}"


def gains_antmaze() -> str:
    """The same of AntMaze."""
    return _gains_of(ANT)


def differences_humanoid() -> str:
    """HumanoidMaze's paired differences."""
    return _differences_of(HUMANOID)


def differences_soccer() -> str:
    """AntSoccer's paired differences."""
    return _differences_of(SOCCER)


def corrected() -> str:
    """Whose gains on HumanoidMaze and AntSoccer Holm's correction leaves."""
    words = join(f"{join(_established(task))} on {task}" for task in (HUMANOID, SOCCER))
    return wrapped(
        "After Holm's correction over all selectors of a task these gains are left, where the "
        f"behaviour model goes on: {words}."
    )


def _established(task: str) -> list[str]:
    """The selectors with a gain above zero after Holm's correction over all of a task."""
    found = {name: gain(main_rollouts(task), task, name) for name in _rolled_out(task)}
    both = zip(found.items(), _adjusted(found.values()), strict=True)
    return [_inside(name) for (name, x), p in both if p <= 1 - LEVEL and x.mean > 0]


def _gains_of(task: str) -> str:
    """A table of gains, and one of their paired differences."""
    main = main_rollouts(task)
    paper = main[TABLE]["paper"][task]
    lines = [
        [
            selector_name(name),
            with_sign(gain(main, task, name)),
            _each(gain(main, task, name).seeds.values()) if trained(main, task, name) else "",
            signed(paper[name][GAIN]["mean"], 3) if name in paper else "",
        ]
        for name in _rolled_out(task)
    ]
    head = ["picked by", "gain over a random pick", "training seeds", "paper"]
    return f"{markdown_table(head, lines)}\n{_differences_of(task)}"


def _rolled_out(task: str) -> list[str]:
    """Whose picks were rolled out, the largest gain first."""
    rows = main_rollouts(task)[TABLE]["rows"][task]
    named = [name for name in rows if GAIN in rows[name]]
    return sorted(named, key=lambda name: -rows[name][GAIN]["mean"])


def _differences_of(task: str) -> str:
    """A table of the paired differences of gains."""
    main, named = main_rollouts(task), set(_rolled_out(task))
    pairs = [pair for pair in PAIRS if set(pair) <= named]
    found = [less(a, b, task) for a, b in pairs]
    compared = [
        [
            f"{selector_name(a)} less {_inside(b)}",
            with_sign(x),
            _each(seed_differences(main, task, a, b)),
            "yes" if x.low > 0 or x.high < 0 else "no",
            number(float(p), 3),
        ]
        for (a, b), x, p in zip(pairs, found, _adjusted(found), strict=True)
    ]
    head = ["difference", "of gains, paired", "training seeds", "excludes 0", "p (Holm)"]
    return markdown_table(head, compared)


def _adjusted(found: Iterable[Number]) -> Floats:
    """Holm's p values of several numbers being zero."""
    return holm([bootstrap_p(x.replicates.draws) for x in found if x.replicates is not None])


def less(a: str, b: str, task: str = POINT) -> Number:
    """The paired difference of two gains at the main settings."""
    main = main_rollouts(task)
    return difference(gain(main, task, a), gain(main, task, b))


def times(a: str, b: str, task: str = POINT) -> Number:
    """How many times the second gain at the main settings the first is, paired."""
    main = main_rollouts(task)
    return quotient(gain(main, task, a), gain(main, task, b))


def gain(tables: Tables, task: str, row: str) -> Number:
    """A stored gain with its replicates."""
    return numbers.number(tables, TABLE, task, row, GAIN)


def reported_less(tables: Tables, task: str, a: str, b: str) -> float | None:
    """The difference of two gains in the paper; None where it has none."""
    cells: Any = tables[TABLE]["paper"].get(task, {})
    both = [cells.get(name, {}).get(GAIN) for name in (a, b)]
    return None if None in both else both[0]["mean"] - both[1]["mean"]


def seed_differences(tables: Tables, task: str, a: str, b: str) -> list[float]:
    """The difference of two gains for each training seed; a trivial score has none."""
    first, second = (gain(tables, task, name) for name in (a, b))
    fixed = not trained(tables, task, b)
    return [x - (second.mean if fixed else second.seeds[s]) for s, x in first.seeds.items()]


def trained(tables: Tables, task: str, name: str) -> bool:
    """Whether a selector has several training seeds."""
    return len(gain(tables, task, name).seeds) > 1


def queries_of(tables: Tables, task: str) -> int:
    """How many queries were rolled out."""
    found: int = tables[TABLE]["rows"][task]["tdq"][GAIN]["queries"]
    return found


def half(x: Number) -> float:
    """Half the width of an interval."""
    return (x.high - x.low) / 2


def with_sign(x: Number) -> str:
    """A gain or a difference with its interval."""
    return f"{signed(x.mean, PLACES)} {bracket(x.low, x.high, PLACES)}"


def homes() -> list[tuple[str, Path]]:
    """The tasks with stored rollouts, in the paper's order, and their folders."""
    folders = [path for path in entries(published() / "selection") if path.is_dir()]
    found = {next(iter(_table(path)["rows"])): path for path in folders}
    return [(task, found[task]) for task in NAVIGATION if task in found]


def rollouts() -> dict[str, Tables]:
    """Stored rollouts by task: tables and replicates."""
    return {task: _tables(folder) for task, folder in homes()}


def main_rollouts(task: str) -> Tables:
    """Those of a task at the main settings."""
    return _tables(published() / "zoo" / "selection" / data_set(task))


@cache
def _tables(folder: Path) -> Tables:
    return {TABLE: _table(folder), REPLICATES: read_replicates(folder)}


def _table(folder: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_json(folder / "tables" / f"{TABLE}.json")
    return found


def _text(x: float | None) -> str:
    return "" if x is None else number(x, PLACES)


def _each(values: Iterable[float]) -> str:
    return ", ".join(signed(x, PLACES) for x in values)


def _inside(name: str) -> str:
    """A selector's name inside a sentence."""
    words = selector_name(name)
    return words if words.startswith("TD") else words[0].lower() + words[1:]


POWER_PARTS: Final[Sequence[Any]] = (
    *(power, gains, gains_antmaze),
    *(corrected, differences_humanoid, differences_soccer),
)
