"""What one does with runs: load them, record a bug, put an invalid one away to repeat it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar, overload

import jax
import numpy as np

from toptail.errors import InputError
from toptail.io.files import entries, sha256
from toptail.lab.critics.base import Params, TrainedCritic
from toptail.lab.tasks.files import write_json
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import LearnerConfig, RunConfig, changes
from toptail.lab.training.run_files import (
    CONFIG,
    HISTORY,
    METRICS,
    PARAMS,
    RECORD,
    Run,
    digest,
    find_runs,
    logged_steps,
    now,
    read_lines,
    read_run,
    training_lock,
)

Cause: TypeAlias = Literal[
    "steps missing",
    "unreadable checkpoint",
    "non-finite parameters or losses",
    "wrong task or configuration",
    "recorded by a person",
]
"""Every reason for which a run may be invalid."""


class Fault(NamedTuple):
    """Why a run is invalid."""

    cause: Cause
    """The kind of fault."""

    detail: str
    """What was seen."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


def invalid_reason(run: Run, task: str | None = None, config_hash: str | None = None) -> str | None:
    """Why a run is invalid, in words, or None; see `find_fault`."""
    fault = find_fault(run, task, config_hash)
    return None if fault is None else str(fault)


def find_fault(run: Run, task: str | None = None, config_hash: str | None = None) -> Fault | None:
    """Why a run is invalid or not what whoever wants to use it expects, or None."""
    if run.state == "invalid":
        recorded = run.record.get("invalid", {})
        cause = recorded.get("cause", "recorded by a person")
        return Fault(cause, str(recorded.get("detail", "without a reason")))
    return (
        identity_fault(run, task, config_hash)
        or _loss_fault(run)
        or _steps_fault(run)
        or _params_fault(run)
    )


def identity_fault(
    run: Run, task: str | None = None, config_hash: str | None = None
) -> Fault | None:
    """Whether record and configuration are what was written, belong together, and are expected."""

    def wrong(detail: str) -> Fault:
        return Fault("wrong task or configuration", detail)

    if not run.record:
        return wrong(f"{RECORD} cannot be read")
    if not run.config or run.config_hash != digest(run.config):
        return wrong(f"{CONFIG} does not have the content of its hash")
    if run.record.get("config_hash") != run.config_hash:
        return wrong(f"{RECORD} and {CONFIG} state different configuration hashes")
    for name in ("task", "critic"):
        if run.record.get(name) != run.config.get(name):
            return wrong(f"{RECORD} and {CONFIG} state different names of the {name}")
    if run.folder.name != f"seed-{run.record.get('seed')}":
        return wrong(f"{RECORD} is that of seed {run.record.get('seed')}")
    if task is not None and run.config["task"] != task:
        return wrong(f"it was trained on {run.config['task']}, not on {task}")
    if config_hash is not None and run.config_hash != config_hash:
        return wrong(f"its configuration is {run.config_hash}, not {config_hash}")
    return None


def is_finite(params: Params) -> bool:
    """Whether every parameter is a finite number."""
    return all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(params))


def _loss_fault(run: Run) -> Fault | None:
    for line in read_lines(run.folder / METRICS):
        if line.get("loss") is None:
            return Fault(
                "non-finite parameters or losses",
                f"a loss among the steps up to {line['step']} is not finite",
            )
    return None


def _steps_fault(run: Run) -> Fault | None:
    logged = [line["step"] for line in read_lines(run.folder / METRICS)]
    wanted = logged_steps(run.steps, int(run.config["log_every"]))
    if run.state == "finished" and logged == wanted:
        return None
    return Fault("steps missing", f"{METRICS} has {len(logged)} of {len(wanted)} lines")


def _params_fault(run: Run) -> Fault | None:
    path = run.folder / PARAMS
    if not path.is_file():
        return Fault("unreadable checkpoint", f"{PARAMS} is missing")
    if sha256(path) != run.record.get("params_sha256"):
        return Fault("unreadable checkpoint", f"{PARAMS} is not the file that training wrote")
    try:
        finite = is_finite(load_params(path))
    except InputError as error:
        return Fault("unreadable checkpoint", str(error))
    if not finite:
        return Fault("non-finite parameters or losses", f"{PARAMS} holds such numbers")
    return None


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
