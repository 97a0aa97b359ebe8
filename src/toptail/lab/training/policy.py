"""The seed policy: the only reasons for which a run is invalid.

Nothing here looks at how good a critic is: poor results, unusual curves and disagreement between
seeds never decide. An invalid run is repeated with the same seed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import jax
import numpy as np

from toptail.errors import InputError
from toptail.io.files import sha256
from toptail.lab.critics.learner import Params
from toptail.lab.training.checkpoint import load_params
from toptail.lab.training.metrics import logged_steps, read_lines
from toptail.lab.training.run_files import CONFIG, METRICS, PARAMS, RECORD, Run, digest

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
