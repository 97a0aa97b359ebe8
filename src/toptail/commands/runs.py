"""``toptail runs``: list runs and their states, or record that runs are invalid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.commands.flags import DECIDE, OUTPUT, Words
from toptail.commands.terminal import say, show, simple_grid
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.training.runs import Run


@dataclass(frozen=True)
class Runs:
    """List training runs and their states, or record that runs are invalid.

      toptail runs runs/pointmaze-medium-navigate-v0
      toptail runs --invalidate runs/TASK/raw/seed-42 --reason "no goal in the loss"

    --invalidate records that a run is invalid because of a confirmed bug in its objective;
    its train command then repeats it with the same seed. Poor results are no reason.
    """

    folders: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR...")] = ()
    """Folders; every run below them is listed."""
    invalidate: Annotated[Words, DECIDE, tyro.conf.arg(metavar="RUN")] = ()
    """Folder of a run to record as invalid; may be given repeatedly."""
    reason: Annotated[str | None, DECIDE] = None
    """With --invalidate: the bug, and how it was confirmed."""
    json: Annotated[bool, OUTPUT] = False
    """List as JSON: settings, states and the newest line of metrics of every run."""

    def run(self) -> int:
        if bool(self.folders) == bool(self.invalidate):
            raise InputError("Give folders to list, or --invalidate with the folder of a run.")
        if bool(self.invalidate) != (self.reason is not None):
            raise InputError("--invalidate RUN and --reason with the bug are given together.")
        return self._invalidate(self.reason) if self.reason is not None else self._list()

    def _list(self) -> int:
        from toptail.lab.training.runs import find_runs

        runs = [run for folder in self.folders for run in find_runs(folder)]
        if self.json:
            say(json.dumps([described(run) for run in runs], indent=1))
        elif runs:
            print_runs(runs)
        else:
            say("No runs there.")
        return 0

    def _invalidate(self, reason: str) -> int:
        from toptail.lab.training.runs import invalidate

        for folder in self.invalidate:
            invalidate(folder, reason)
            say(f"{folder} is recorded as invalid; its train command will repeat the same seed.")
        return 0


def print_runs(runs: Sequence[Run]) -> None:
    """Print one line per run."""
    from rich.text import Text

    rows = [_cells(run) for run in runs]
    # The columns attempt and why are left out where they would be 1 or empty in every row.
    shown = ["task", "critic", "seed", "steps", "attempt", "state", "why"]
    if all(row["attempt"] == "1" for row in rows):
        shown.remove("attempt")
    if not any(row["why"] for row in rows):
        shown.remove("why")
    table = simple_grid()
    for header in shown:
        right = header in ("seed", "steps", "attempt")
        table.add_column(header, justify="right" if right else "left", overflow="fold")
    colours = {"finished": "green", "invalid": "bold red"}
    for row in rows:
        style = colours.get(row["state"], "yellow")
        table.add_row(*(Text(row[h], style=style if h == "state" else "") for h in shown))
    show(table, 160)


def described(run: Run) -> dict[str, Any]:
    """A run as JSON: its settings, its state, and its newest metrics."""
    from toptail.lab.training.runs import METRICS, read_lines

    state, why = state_of(run)
    lines = read_lines(run.folder / METRICS)
    return {
        "folder": str(run.folder),
        **{name: run.record.get(name) for name in ("task", "critic", "seed", "command", "commit")},
        "state": state,
        "why": why or None,
        "attempt": run.attempt,
        "steps": run.steps,
        "steps_logged": run.steps_logged(),
        "config_hash": run.config_hash,
        "config": run.config,
        "metrics": lines[-1] if lines else None,
    }


def _cells(run: Run) -> dict[str, str]:
    state, why = state_of(run)
    critic = run.folder.parent
    return {
        "task": critic.parent.name,
        "critic": critic.name,
        "seed": run.folder.name.removeprefix("seed-"),
        "steps": f"{run.steps_logged():,}/{run.steps:,}",
        "attempt": str(run.attempt),
        "state": state,
        "why": why,
    }


def state_of(run: Run) -> tuple[str, str]:
    """State of a run in one word, and the reason if it is not finished."""
    from toptail.lab.training.runs import find_fault, in_training

    fault = find_fault(run)
    if fault is None:
        return "finished", ""
    if run.state == "running" and fault.cause == "steps missing":
        if in_training(run.folder.parent):
            return "running", ""
        step = run.record.get("checkpoint_step", 0)
        return "stopped", f"its train command goes on from step {step:,}"
    return "invalid", str(fault)
