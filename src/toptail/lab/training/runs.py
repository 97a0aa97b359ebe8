"""Stored runs: whether one is valid, loading it, and recording that it is not valid.

The only reasons for which a run is invalid are those of `Cause`. How good a critic is never
decides: poor results, unusual curves and disagreement between seeds are no faults. An invalid run
is repeated with the same seed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypeVar, overload

import jax
import numpy as np

from toptail.errors import InputError
from toptail.io.files import entries, sha256
from toptail.io.json_files import write_json
from toptail.lab.critics.base import Params, TrainedCritic
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import LearnerConfig, RunConfig
from toptail.lab.training.run_files import (
    CONFIG,
    HISTORY,
    METRICS,
    PARAMS,
    RECORD,
    Run,
    differences,
    digest,
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
    "confirmed bug",
]
"""Every reason for which a run may be invalid."""


class Fault(NamedTuple):
    """Why a run is invalid."""

    cause: Cause
    """The kind of fault."""
    detail: str
    """What is wrong, in words."""

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


def invalid_reason(run: Run, task: str | None = None, config_hash: str | None = None) -> str | None:
    """Why a run is invalid, in words, or None; see `find_fault`."""
    fault = find_fault(run, task, config_hash)
    return None if fault is None else str(fault)


def find_fault(run: Run, task: str | None = None, config_hash: str | None = None) -> Fault | None:
    """Why a run is invalid or not of the expected task and configuration; None if it is valid."""
    if run.state == "invalid":
        recorded = run.record.get("invalid", {})
        cause = recorded.get("cause", "confirmed bug")
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
    """Whether record and configuration are unchanged, belong together, and are as expected."""

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


def load_run(
    folder: str | Path,
    task: str | None = None,
    config_hash: str | None = None,
    *,
    in_float32: bool = False,
) -> TrainedCritic:
    """Load the critic of a finished run; an invalid or unexpected run is refused, with the reason.

    With ``in_float32`` it computes in float32 even if it was trained with bfloat16 products, in
    which a value near -50 is a multiple of 0.25: as much as one action changes it.
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
    """The configuration of a run; refused if it has another meaning in this version of the code."""
    try:
        config = kind.from_content(run.config)
        changed = ", ".join(differences(run.config, config.content))
    except (KeyError, TypeError, RecursionError) as error:
        changed = str(error)
    if changed:
        raise InputError(
            f"{run.folder} was trained by a version of toptail with other settings, {changed}: "
            "use it with that version, or train it again into another folder."
        )
    return config


def require_data(run: str | Path, trained_on: str, source: str, sha256: str) -> None:
    """Refuse a run that was trained on other data.

    ``trained_on`` is the content hash of the run's training split, ``sha256`` that of the split
    that was loaded from ``source``.
    """
    if trained_on != sha256:
        raise InputError(
            f"The run {run} was trained on other data than {source} (content hash "
            f"{trained_on[:12]}…, not {sha256[:12]}…): name runs of this data set, or give the "
            "data that the run was trained on."
        )


def invalidate(folder: str | Path, reason: str) -> Run:
    """Record that a run is invalid because of a confirmed bug that changes its objective."""
    run = read_run(folder)
    if not reason.strip():
        raise InputError("A run is recorded as invalid for a reason: give one.")
    with training_lock(run.folder.parent):
        mark_invalid(run, Fault("confirmed bug", reason.strip()))
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
    # The record is moved last: while it is there, an interrupted move is repeated.
    for path in sorted(files, key=lambda path: (path.name == RECORD, path.name)):
        path.replace(target / path.name)
