"""Finished runs made longer: they go on from their last state, as if it had been a checkpoint.

A finished run keeps everything that training carries from step to step (`STATE`), and what a step
draws depends on its number alone. So a run of 100 steps that is extended to 200 ends with the same
bits as one that was asked for 200 at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from toptail.errors import InputError, refusing
from toptail.io.files import atomic, sha256
from toptail.io.json_files import write_json
from toptail.lab.training.config import LearnerConfig, changes
from toptail.lab.training.joint import Arrays, save_joint
from toptail.lab.training.policy import find_fault
from toptail.lab.training.run_files import CONFIG, PARAMS, RECORD, Run, now, read_run, run_folder

STATE = "state.safetensors"
"""The last state of a finished run: parameters, Adam's moments, key and step."""

EXTENDING = "extending"
"""Entry of a record while its run is being made longer: the configuration that it is to have."""


def save_state(folder: Path, arrays: Arrays, row: int) -> str:
    """Keep one row of a joint state in its run's folder; returns the file's hash."""
    own = {name: np.ascontiguousarray(array[row : row + 1]) for name, array in arrays.items()}
    atomic(folder / STATE, lambda target: save_file(own, target))
    return sha256(folder / STATE)


def extend_runs(config: LearnerConfig, data: str, home: Path, seeds: Sequence[int]) -> None:
    """Turn finished runs that are shorter into unfinished ones of this length, at their last step.

    ``data`` is the hash of the training split. Runs that differ in anything but their length stay
    as they are. Killed at any moment, the same call goes on.
    """
    by_step: dict[int, list[Run]] = {}
    for seed in seeds:
        folder = run_folder(home, seed)
        run = read_run(folder) if (folder / RECORD).is_file() else None
        if run is not None and (step := _extends(run, config, data)):
            by_step.setdefault(step, []).append(run)
    for step, runs in by_step.items():
        states = [_state(run) for run in runs]
        joint = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
        attempts = {int(run.record["seed"]): run.attempt for run in runs}
        save_joint(home, config.hash, attempts, step, joint)
        for run in runs:
            _reopen(run, config, step)


def _extends(run: Run, config: LearnerConfig, data: str) -> int:
    """The step that a finished, shorter run goes on from; 0 where it is none."""
    if run.record.get(EXTENDING) == config.content:  # a call that was killed in the middle
        return int(run.record["finished_step"])
    if run.state != "finished" or run.record.get("data", {}).get("train") != data:
        return 0
    shorter = run.config.get("steps", 0) < config.steps
    if not shorter or changes({**run.config, "steps": config.steps}, config.content):
        return 0
    if find_fault(run) is not None:
        return 0
    _require_state(run, config)
    return run.steps


def _require_state(run: Run, config: LearnerConfig) -> None:
    """Refuse a run that cannot go on as if it had never ended."""
    begin = f"{run.folder} holds a finished run of {run.steps:,} steps that cannot go on to"
    other = "train the longer one in another folder."
    if run.steps % config.log_every:
        raise InputError(
            f"{begin} {config.steps:,}: it did not end with a whole line of metrics (every "
            f"{config.log_every} steps); {other}"
        )
    kept = run.record.get("state_sha256")
    if kept is None or not (run.folder / STATE).is_file() or sha256(run.folder / STATE) != kept:
        raise InputError(
            f"{begin} {config.steps:,}: its last state, {STATE}, is not there or not what training "
            f"wrote; {other}"
        )


def _state(run: Run) -> Arrays:
    with refusing(run.folder / STATE, "does not hold a state", "train in another folder"):
        return load_file(run.folder / STATE)


def _reopen(run: Run, config: LearnerConfig, step: int) -> None:
    """Make a run an unfinished one; its record says first what it is on the way to."""
    record = run.record
    write_json(run.folder / RECORD, {**record, EXTENDING: config.content})
    write_json(run.folder / CONFIG, {"hash": config.hash, "config": config.content})
    for name in (PARAMS, "curves.svg", "curves.png"):
        (run.folder / name).unlink(missing_ok=True)
    write_json(run.folder / RECORD, _reopened(record, config, step))


def _reopened(record: Mapping[str, Any], config: LearnerConfig, step: int) -> dict[str, Any]:
    ended = ("finished", "finished_step", "parameter_count", "params_sha256", "state_sha256")
    before = {"from_step": step, "config_hash": record["config_hash"], "at": now()}
    left = {k: v for k, v in record.items() if k not in (*ended, EXTENDING)}
    return {
        **left,
        "state": "running",
        "steps": config.steps,
        "config_hash": config.hash,
        "checkpoint_step": step,
        "extended": [*record.get("extended", []), before],
    }
