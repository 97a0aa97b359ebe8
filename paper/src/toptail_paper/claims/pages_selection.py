"""Parts of the pages about PointMaze: levels of its judges, best picks, trivial scores, errors.

The tables of `STUDY` have neither trivial scores nor a continuous judge; those of `MAIN`, a later
run on the same queries and candidates, have both. `CHECK` has candidates without a model, actions
that the data took nearby at these queries, on which the judges' error was measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from toptail.io.json_files import read_json
from toptail.report.text import bracket, join, number
from toptail_paper.claims.reported import published
from toptail_paper.selection.results import SelectionMetric, judge_name
from toptail_paper.study.markdown import markdown_table, wrapped
from toptail_paper.study.naming import TRIVIAL, scorer_name

STUDY: Final = "selection/pointmaze-medium-navigate-v0"
MAIN: Final = "zoo/selection/pointmaze-medium-navigate-v0"
"""The same queries and candidates, with critics of the main settings."""
CHECK: Final = "selection_checks/near_actions"
ERROR: Final = "judge_error.json"
"""What ``tools/exact_value.py pools`` found on a study's own pools."""
EXACT, CONTINUOUS = "exact", "exact_continuous"
SIZE: Final = 64
NEXT_TO: Final = ("tdq", "raw", "cosine", "value_head")
"""Critics that trivial scores stand beside."""

Rows = Mapping[str, Mapping[str, Any]]


def levels() -> str:
    """How finely each judge of PointMaze tells candidates apart."""
    found = {**rows(MAIN, "judges"), **rows(STUDY, "judges")}
    lines = [
        [
            judge_name(judge),
            *(percent(cells[f"levels_{n}"]) for n in ("1", "2", "3", "more")),
            number(cells["tau_b_ceiling"]["mean"], 2),
        ]
        for judge, cells in found.items()
        if "levels_1" in cells
    ]
    head = ["judge", "1 level", "2 levels", "3 levels", "more", "ceiling of τ_b"]
    return markdown_table(head, lines)


def best_picks() -> str:
    """How often picks are best ones by the exact value, as a sentence and as a table."""
    table, ceiling = rows(STUDY, "fixed-query"), rows(STUDY, "judges")[EXACT]["tau_b_ceiling"]
    metric, tau = by_exact("best_pick"), by_exact("tau_b")
    named = [name for name in ("tdq", "raw", "cosine", "hybrid", *TRIVIAL) if has(table, name)]
    parts = [f"{percent(table[name][metric], 0)} ({scorer_name(name)})" for name in named]
    lines = [
        [
            scorer_name(name),
            with_ends(table[name][metric], 100, 1),
            with_ends(table[name][tau], 1, 2),
            number(table[name][tau]["mean"] / ceiling["mean"], 2),
        ]
        for name in named
    ]
    head = ["", "the pick is a best one, %", "τ_b", "τ_b over its ceiling"]
    sentence = f"By the exact value the pick is a best one of its pool in {join(parts)}."
    return f"{wrapped(sentence)}\n{markdown_table(head, lines)}"


def trivial() -> str:
    """Selection without a critic, beside critics on the same candidates."""
    table, check = rows(MAIN, "fixed-query"), rows(CHECK, "fixed-query")
    judges = (EXACT, CONTINUOUS, "euclidean")
    lines = [
        [
            scorer_name(name),
            *(
                with_ends(table[name][str(SelectionMetric(metric, SIZE, judge))], 1, 2)
                for judge in judges
                for metric in ("tau_b", "nregret")
            ),
        ]
        for name in (*TRIVIAL, *NEXT_TO)
    ]
    head = ["", *(f"{judge_name(j)}: {word}" for j in judges for word in ("τ_b", "regret"))]
    straight = table["straight"]
    metric = by_exact("nregret")
    groups = [
        f"{number(straight[by_exact('nregret', group)]['mean'], 2)} at {group} goals"
        for group in ("near", "medium", "far")
    ]
    sentence = (
        f"By the exact value the straight line gets {captured(straight[metric])} of what the best "
        f"candidate would gain, and TD-Q {captured(table['tdq'][metric])}; the most likely action "
        f"gets {captured(table['likely'][metric])}, and raw {captured(table['raw'][metric])}. The "
        f"straight line's regret is {join(groups)}. On candidates that need no model, actions that "
        "the training data took near the state on the way to near the goal (`python "
        "tools/exact_value.py near`; [tables](../../results/selection_checks/near_actions)), it "
        f"gets {captured(check['straight'][metric])}."
    )
    return f"{wrapped(sentence)}\n{markdown_table(head, lines)}"


def judge_error() -> str:
    """The errors of both exact judges on a study's pools."""
    own = published() / STUDY / ERROR
    found = read_json(own if own.is_file() else published() / CHECK / ERROR)
    lines = [
        [
            judge_name(judge),
            number(found[judge]["tau_b"], 3),
            number(found[judge]["nregret"], 3),
            number(found[judge]["mean_error"], 2),
            number(found[judge]["off_by"]["0.9"], 2),
        ]
        for judge in (EXACT, CONTINUOUS)
    ]
    head = ["judge", "τ_b", "normalized regret", "mean error, steps", "90 % are off by at most"]
    walked = found["simulator"]
    more = join(
        f"{percent({'mean': share}, 0)} take {f'{n} more than N' if int(n) else 'N steps'}"
        for n, share in walked["more_steps"].items()
    )
    words = (
        f"Against search (spacing {found['spacing']:g}) on {found['pools']} pools of "
        f"{found['queries']} queries, {number(found['mean_steps'], 1)} steps from the goal on "
        f"average. In the simulator, from every candidate of {walked['pools']} of these pools, "
        f"{more}; whole steps have τ_b {number(walked['tau_b'], 3)} and regret "
        f"{number(walked['nregret'], 3)} against what was walked."
    )
    return f"{markdown_table(head, lines)}\n{wrapped(words)}"


def rows(folder: str, table: str) -> Rows:
    """The rows of a stored table of PointMaze."""
    path: Path = published() / folder / "tables" / f"{table}.json"
    found: Rows = read_json(path)["rows"]["PointMaze"]
    return found


def has(table: Rows, name: str) -> bool:
    """Whether best picks of a scorer are stored."""
    return by_exact("best_pick") in table.get(name, {})


def by_exact(name: str, group: str = "") -> str:
    """The key of a metric under the exact value."""
    return str(SelectionMetric(name, SIZE, EXACT, group))


def percent(cell: Mapping[str, Any], digits: int = 1) -> str:
    """A share as a percentage."""
    return f"{number(100 * cell['mean'], digits)} %"


def with_ends(cell: Mapping[str, Any], scale: float, digits: int) -> str:
    """A number with its interval."""
    ends = bracket(scale * cell["low"], scale * cell["high"], digits)
    return f"{number(scale * cell['mean'], digits)} {ends}"


def captured(regret: Mapping[str, Any]) -> str:
    """What is left of the headroom after a regret, with its interval."""
    low, high = (number(1 - regret[end], 2) for end in ("high", "low"))
    return f"{number(1 - regret['mean'], 2)} [{low}, {high}]"


SELECTION_PARTS: Final[Sequence[Any]] = (levels, best_picks, trivial, judge_error)
