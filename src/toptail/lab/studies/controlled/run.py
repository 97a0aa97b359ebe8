"""The whole study: compute what is missing, then write what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from toptail.lab.studies.controlled.config import StudyConfig
from toptail.lab.studies.controlled.plan import Plan
from toptail.lab.studies.controlled.write import (
    write_audit,
    write_curves,
    write_landscape,
    write_pools,
    write_tables,
)
from toptail.lab.studies.folder import RunFolder
from toptail.progress import Tick, no_tick

TRAINING_SHARE = 0.9
"""Share of the progress bar that training takes."""

WRITERS: tuple[tuple[str, Callable[[Plan], None]], ...] = (
    ("writing pools", write_pools),
    ("writing tables", write_tables),
    ("writing curves", write_curves),
    ("writing surfaces", write_landscape),
    ("auditing", write_audit),
)


def run_controlled(
    config: StudyConfig, out: str | Path, tick: Tick = no_tick, command: str | None = None
) -> RunFolder:
    """Run the study and store everything under ``out``; finished units are not repeated.

    See `toptail.lab.studies.controlled` for what the folder holds afterwards. The record names
    ``command``, or the process's own.
    """
    run = RunFolder(Path(out))
    plan = Plan(config, run)
    with run.recording(asdict(config), list(config.seeds), command):
        plan.compute(lambda stage, share: tick(stage, TRAINING_SHARE * share))
        for i, (stage, write) in enumerate(WRITERS):
            tick(stage, TRAINING_SHARE + (1.0 - TRAINING_SHARE) * i / len(WRITERS))
            write(plan)
    tick("finished", 1.0)
    return run
