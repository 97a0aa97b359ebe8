"""A training that can be killed at any moment: the same call goes on where it stopped.

All seeds of a critic train together. Step t draws from fold_in(key, t), and steps run in chunks
that start at the same numbers whatever happened before, so that a run that was stopped ends with
the same bits as one that was not.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from toptail.errors import InputError, check_whole
from toptail.io.files import entries, sha256
from toptail.io.guard import refusing
from toptail.lab.tasks.files import write_json
from toptail.lab.training.checkpoints import STATE, Arrays, JointCheckpoint, find_joint, save_joint
from toptail.lab.training.config import LearnerConfig, changes, require_seeds
from toptail.lab.training.run_batch import Group, Watch
from toptail.lab.training.run_files import (
    CONFIG,
    METRICS,
    PARAMS,
    RECORD,
    Run,
    attempt_at,
    logged_steps,
    now,
    read_lines,
    read_run,
    run_folder,
    training_lock,
)
from toptail.lab.training.runs import Fault, archive, find_fault, identity_fault
from toptail.lab.training.task_data import TaskData

EXTENDING = "extending"
"""Entry of a record while its run is being made longer: the configuration that it is to have."""


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


def train_runs(
    config: LearnerConfig,
    data: TaskData,
    seeds: Sequence[int],
    out: Path,
    *,
    checkpoint_every: int = 10_000,
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train one run per seed, or go on with them, or leave them if they are finished.

    Finished runs that differ in their length alone, and are shorter, go on to the new length.

    Runs go to ``out/TASK/NAME/seed-N``. ``checkpoint_every`` so many steps, rounded up to whole
    lines of metrics, their state is stored. ``command`` is what the records say was called, and
    ``watch`` is told after every chunk of steps.

    Returns
    -------
    The run of each seed: finished, or invalid for the reason in its record.
    """
    require_seeds(seeds)
    check_whole("checkpoint_every", checkpoint_every, 1)
    home = out / config.task / config.name
    config = _as_recorded(config, home, seeds)
    every = config.log_every * max(1, -(-checkpoint_every // config.log_every))
    with training_lock(home):
        extend_runs(config, data.sha256, home, seeds)
        attempts = {
            seed: attempt
            for seed in seeds
            if (attempt := _open_attempt(home, seed, config, data)) is not None
        }
        for members, checkpoint in _groups(home, config, attempts):
            Group(config, data, home, members, checkpoint, every, command, watch).train()
        _remove_used_checkpoints(home)
    return [read_run(run_folder(home, seed)) for seed in seeds]


def _as_recorded(config: LearnerConfig, home: Path, seeds: Sequence[int]) -> LearnerConfig:
    """The configuration as the runs that are there spell it, where they mean the same.

    One left a setting at its default that another gives: their hashes differ, their results not.
    """
    for seed in seeds:
        folder = run_folder(home, seed)
        stored = read_run(folder).config if (folder / RECORD).is_file() else {}
        if stored and not changes(stored, config.content):
            return config.as_recorded(stored)
    return config


def _open_attempt(home: Path, seed: int, config: LearnerConfig, data: TaskData) -> int | None:
    """Which attempt at a seed to work on; None if its run is finished and valid."""
    folder = run_folder(home, seed)
    if not (folder / RECORD).is_file():
        return attempt_at(folder)
    run = read_run(folder)
    if run.state == "running":
        fault = identity_fault(run) or _checkpoint_fault(run, home)
    else:
        fault = find_fault(run)
    if fault is not None:
        archive(run, fault)
        return attempt_at(folder)
    _require_same(run, config, data)
    return attempt_at(folder) if run.state == "running" else None


def _checkpoint_fault(run: Run, home: Path) -> Fault | None:
    """Whether the state that a stopped run should go on from is gone."""
    step = int(run.record.get("checkpoint_step", 0))
    seed = int(run.record["seed"])
    if not step or _latest(home, run.record["config_hash"], seed, run.attempt) is not None:
        return None
    return Fault("unreadable checkpoint", f"the state at step {step} cannot be read")


def _require_same(run: Run, config: LearnerConfig, data: TaskData) -> None:
    """Refuse to mix: a valid run of another configuration or other data is not touched."""
    changed = changes(run.config, config.content)
    if run.record.get("data", {}).get("train") != data.sha256:
        changed.append("the data")
    if changed:
        raise InputError(
            f"{run.folder} holds a run with other settings, {', '.join(changed)}: choose another "
            "folder, or give the settings of that run."
        )


def _latest(home: Path, config_hash: str, seed: int, attempt: int) -> JointCheckpoint | None:
    """The newest sound checkpoint of an attempt whose metrics are complete up to it."""
    folder = run_folder(home, seed)
    logged = [int(line["step"] or 0) for line in read_lines(folder / METRICS)]
    for found in find_joint(home):
        if found.config_hash == config_hash and found.holds(seed, attempt) and found.sound():
            log_every = int(read_run(folder).config["log_every"])
            if [n for n in logged if n <= found.step] == logged_steps(found.step, log_every):
                return found
    return None


def _groups(
    home: Path, config: LearnerConfig, attempts: Mapping[int, int]
) -> list[tuple[dict[int, int], JointCheckpoint | None]]:
    """Seeds that go on from one checkpoint go on together; so do those that start."""
    groups: dict[Path | None, tuple[dict[int, int], JointCheckpoint | None]] = {}
    for seed, attempt in attempts.items():
        found = _latest(home, config.hash, seed, attempt)
        members, _ = groups.setdefault(found.folder if found else None, ({}, found))
        members[seed] = attempt
    return list(groups.values())


def _remove_used_checkpoints(home: Path) -> None:
    """Remove the checkpoints that no unfinished run can go on from."""
    needed = set()
    for found in find_joint(home):
        for seed, attempt in found.attempts.items():
            folder = run_folder(home, seed)
            if (folder / RECORD).is_file():
                run = read_run(folder)
                if run.state == "running" and run.attempt == attempt:
                    needed.add(found.folder.parent)
    for folder in entries(home, "checkpoint-*"):
        if folder not in needed:
            shutil.rmtree(folder)
