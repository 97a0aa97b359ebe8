"""``toptail runs``: which runs there are, which are valid, and recording a bug."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.commands.options import Flag
from toptail.commands.terminal import say, show, simple_grid
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.training.run_files import Run

INVALIDATE = "invalidate"


@dataclass(frozen=True)
class Runs:
    """List training runs and their states, or record that one is invalid.

    'toptail runs DIR' lists every run below a folder. 'toptail runs invalidate RUN --reason
    "..."' records that a run's folder is invalid because of a confirmed bug that changes the
    objective; its train command then repeats it with the same seed. Poor results are no reason.
    """

    words: Annotated[
        tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="DIR | invalidate RUN...")
    ]
    """A folder to list, or 'invalidate' and the folders of one or more runs."""
    reason: str | None = None
    """With 'invalidate': the bug, and how it was confirmed."""
    json: Flag = False
    """List as JSON: settings, states and the newest line of metrics of every run."""

    def run(self) -> int:
        """List, or record; the exit code of a list is 0 whatever the states are."""
        if not self.words:
            raise InputError("Give a folder to list, or 'invalidate' and the folder of a run.")
        if self.words[0] == INVALIDATE:
            return self._invalidate(self.words[1:])
        if self.reason is not None:
            raise InputError("--reason belongs to 'toptail runs invalidate RUN'.")
        return self._list()

    def _list(self) -> int:
        from toptail.lab.training.run_files import find_runs

        runs = [run for folder in self.words for run in find_runs(folder)]
        if self.json:
            say(json.dumps([described(run) for run in runs], indent=1))
        elif runs:
            print_runs(runs)
        else:
            say("No runs there.")
        return 0

    def _invalidate(self, folders: Sequence[str]) -> int:
        from toptail.lab.training.runs import invalidate

        if not folders or self.reason is None:
            raise InputError("Recording a bug takes the folder of a run and --reason with the bug.")
        for folder in folders:
            invalidate(folder, self.reason)
            say(f"{folder} is recorded as invalid; its train command will repeat the same seed.")
        return 0


def print_runs(runs: Sequence[Run]) -> None:
    """Print one line per run."""
    from rich.text import Text

    rows = [_cells(run) for run in runs]
    # Columns that say the same of every run are left out: no run repeated, none at fault.
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
    """A run as JSON has it: what it is, how it stands, and what was measured last."""
    from toptail.lab.training.run_files import METRICS, read_lines

    state, why = standing(run)
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
    state, why = standing(run)
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


def standing(run: Run) -> tuple[str, str]:
    """State of a run in one word, and why where it is not finished."""
    from toptail.lab.training.run_files import in_training
    from toptail.lab.training.runs import find_fault

    fault = find_fault(run)
    if fault is None:
        return "finished", ""
    if run.state == "running" and fault.cause == "steps missing":
        if in_training(run.folder.parent):
            return "running", ""
        step = run.record.get("checkpoint_step", 0)
        return "stopped", f"its train command goes on from step {step:,}"
    return "invalid", str(fault)
