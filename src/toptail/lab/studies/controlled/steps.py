"""What the controlled study is asked for, and how what is missing is made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toptail.lab.studies.common import Tick
from toptail.lab.studies.controlled.config import StudyConfig


@dataclass(frozen=True)
class ControlledRequest:
    """One call of the study."""

    config: StudyConfig
    """What to train and to measure."""
    folder: Path
    """Where it is stored."""
    command: str
    """What to record as the command."""


def make_missing(request: ControlledRequest, tick: Tick) -> list[str]:
    """Train what is missing, write the tables, and check the theory on a trained critic."""
    from toptail.lab.studies.controlled.run import run_controlled
    from toptail.lab.studies.controlled.theory.trained import write_theory

    run = run_controlled(request.config, request.folder, tick, request.command)
    tick("checking the theory", 1.0)
    write_theory(request.config, request.folder)
    return [f"Trained {run.trained} critics, found {run.units - run.trained} finished."]
