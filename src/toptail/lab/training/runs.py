"""What one does with runs: load them, record a bug, put an invalid one away to repeat it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar, overload

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import write_json
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.training.checkpoint import load_params
from toptail.lab.training.config import LearnerConfig, RunConfig, changes
from toptail.lab.training.policy import Fault, find_fault, invalid_reason
from toptail.lab.training.run_files import (
    HISTORY,
    PARAMS,
    RECORD,
    Run,
    find_runs,
    now,
    read_run,
    training_lock,
)

Config = TypeVar("Config", bound=LearnerConfig)
"""A kind of configuration."""

__all__ = [
    "Run",
    "archive",
    "find_fault",
    "find_runs",
    "invalid_reason",
    "invalidate",
    "load_run",
    "mark_invalid",
    "read_run",
    "require_data",
]


def load_run(
    folder: str | Path,
    task: str | None = None,
    config_hash: str | None = None,
    *,
    in_float32: bool = False,
) -> TrainedCritic:
    """Load a finished run's critic; an invalid or unexpected run is refused, with the reason.

    ``in_float32`` reads it so even if it was trained with bfloat16 products. Read with those, a
    value near -50 is a multiple of 0.25, about what one action changes it by.
    """
    run = read_run(folder)
    reason = invalid_reason(run, task, config_hash)
    if reason is not None:
        raise InputError(
            f"{folder} is not a valid run ({reason}): start its `toptail train` command again, "
            "which goes on with it or repeats it with the same seed."
        )
    config = stored_config(run)
    if in_float32:
        config = replace(config, bfloat16=False)
    return TrainedCritic(config.build(), load_params(run.folder / PARAMS))


@overload
def stored_config(run: Run) -> RunConfig: ...
@overload
def stored_config(run: Run, kind: type[Config]) -> Config: ...
def stored_config(run: Run, kind: type[LearnerConfig] = RunConfig) -> LearnerConfig:
    """The configuration of a run, if this version of the code still reads it the same way."""
    try:
        config = kind.from_content(run.config)
        changed = ", ".join(changes(run.config, config.content))
    except (KeyError, TypeError, RecursionError) as error:  # the last: nested without end
        changed = str(error)
    if changed:
        raise InputError(
            f"{run.folder} was trained by a version of toptail with other settings, {changed}: "
            "use it with that version, or train it again into another folder."
        )
    return config


def require_data(run: str | Path, trained_on: str, source: str, sha256: str) -> None:
    """Refuse a run of other training data than is at hand, whatever its task is called.

    ``trained_on`` and ``sha256`` are content hashes of the run's training split, and of the one at
    hand, which is from ``source``.
    """
    if trained_on != sha256:
        raise InputError(
            f"The run {run} was trained on other data than {source} (content hash "
            f"{trained_on[:12]}…, not {sha256[:12]}…): name runs of this data set, or give the "
            "data that the run was trained on."
        )


def invalidate(folder: str | Path, reason: str) -> Run:
    """Record that a run is invalid because of a confirmed bug that changes the objective."""
    run = read_run(folder)
    if not reason.strip():
        raise InputError("A run is recorded as invalid for a reason: give one.")
    with training_lock(run.folder.parent):
        mark_invalid(run, Fault("recorded by a person", reason.strip()))
    return read_run(run.folder)


def mark_invalid(run: Run, fault: Fault) -> None:
    """Write a fault into a run's record."""
    entry = {"cause": fault.cause, "detail": fault.detail, "at": now()}
    write_json(run.folder / RECORD, run.record | {"state": "invalid", "invalid": entry})


def archive(run: Run, fault: Fault) -> None:
    """Move an invalid run's files to ``history/ATTEMPT``, so that its seed can be repeated."""
    if run.state != "invalid":
        mark_invalid(run, fault)
    target = run.folder / HISTORY / str(run.attempt)
    target.mkdir(parents=True, exist_ok=True)
    files = [path for path in entries(run.folder) if path.is_file()]
    # The record goes last: where it still is, an interrupted move is done again.
    for path in sorted(files, key=lambda path: (path.name == RECORD, path.name)):
        path.replace(target / path.name)
