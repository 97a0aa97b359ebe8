"""The figures of an attack: a line to print, and the table of docs/reliability.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.attack.cases import CASES
from tests.attack.state import PARTS, State

TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "crash": ("Kill −9 before a file event, then the same command", "kills"),
    "fuzz": ("Broken files through every reader", "files"),
    "cli": ("Hostile command lines", "lines"),
    "names": ("Hostile names through every writer", "names"),
    "server": ("Behaviours of a hostile server", "behaviours"),
    "faults": ("Full and read-only disks, and other surroundings", "faults"),
}
"""Part -> what it is called, and the figure that counts its attacks."""

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def line_of(state: State) -> str:
    """All figures in a line."""
    counts = state.whole.counts
    return ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())) or "–"


def write_figures(folder: Path, document: Path) -> str:
    """Put the table of a state's figures into a document; returns the table."""
    table = "\n".join(_table([State(folder, part) for part in PARTS]))
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    document.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")
    return table


def _table(states: Sequence[State]) -> list[str]:
    rows = ["| attack | made | held | did not hold |", "|---|---:|---:|---|"]
    for part, state in zip(PARTS, states, strict=True):
        title, unit = TITLES[part]
        counts = state.whole.counts
        good = sum(count for what, count in counts.items() if what in GOOD)
        bad = {w: n for w, n in sorted(counts.items()) if w not in GOOD and w != unit}
        failures = ", ".join(f"{count:,} {what}" for what, count in bad.items()) or "none"
        rows.append(f"| {title} | {counts[unit]:,} {unit} | {good:,} | {failures} |")
    return [*rows, "", f"Of the code with the digest `{states[0].source}`. {_kills(states[0])}"]


def _kills(crash: State) -> str:
    """How many of a case's file events were attacked, case by case."""
    made = {case.name: len(crash.done(case.name)) for case in CASES}
    known = crash.whole.facts
    words = (f"{name} {n} of {known[name]}" if n else f"{name} none" for name, n in made.items())
    return f"Kills, of the file events of each case: {', '.join(words)}."


GOOD: Final = frozenset({"same", "read", "refused", "answered", "shown", "handled", "ended"})
"""Outcomes as they should be."""
