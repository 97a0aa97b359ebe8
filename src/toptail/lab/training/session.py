"""Training runs that can be killed at any moment and go on where they stopped.

The seeds of a critic train together, as a batch of runs. Step t draws from fold_in(key, t), and
steps run in chunks that start at fixed numbers, so that a run that was killed and resumed ends with
the same bits as one that was not.

A finished run keeps its last state. With more steps it goes on from there as from a checkpoint: a
run of 100 steps that is extended to 200 ends with the same bits as a run of 200.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from toptail.errors import InputError, check_whole, refusing
from toptail.io.files import entries, sha256
from toptail.io.json_files import write_json
from toptail.lab.training.checkpoints import (
    STATE,
    Arrays,
    BatchCheckpoint,
    find_checkpoints,
    save_checkpoint,
)
from toptail.lab.training.config import LearnerConfig, require_seeds
from toptail.lab.training.run_batch import RunBatch, Watch
from toptail.lab.training.run_files import (
    CONFIG,
    METRICS,
    PARAMS,
    RECORD,
    Run,
    attempt_at,
    differences,
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
"""Entry of a record while its run is being extended: the configuration with the new length."""


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
    """Train one run per seed: start it, resume it, extend it, or leave it if it is finished.

    Runs go to ``out/TASK/NAME/seed-N``. Their state is stored every ``checkpoint_every`` steps,
    rounded up to a multiple of ``config.log_every``. ``command`` is written into the records, and
    ``watch`` is called after every chunk of steps.

    Returns
    -------
    The run of each seed: finished, or invalid for the reason in its record.
    """
    require_seeds(seeds)
    check_whole("checkpoint_every", checkpoint_every, 1)
    home = out / config.task / config.name
    every = config.log_every * max(1, -(-checkpoint_every // config.log_every))
    with training_lock(home):
        _extend_runs(config, data.sha256, home, seeds)
        attempts = {
            seed: attempt
            for seed in seeds
            if (attempt := _open_attempt(home, seed, config, data)) is not None
        }
        for members, checkpoint in _batches(home, config, attempts):
            RunBatch(config, data, home, members, checkpoint, every, command, watch).train()
        _remove_used_checkpoints(home)
    return [read_run(run_folder(home, seed)) for seed in seeds]


def _open_attempt(home: Path, seed: int, config: LearnerConfig, data: TaskData) -> int | None:
    """Which attempt at a seed to train; None if its run is finished and valid."""
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
    changed = differences(run.config, config.content)
    if run.record.get("data", {}).get("train") != data.sha256:
        changed.append("the data")
    if changed:
        raise InputError(
            f"{run.folder} holds a run with other settings, {', '.join(changed)}: choose another "
            "folder, or give the settings of that run."
        )
    return attempt_at(folder) if run.state == "running" else None


def _checkpoint_fault(run: Run, home: Path) -> Fault | None:
    """Whether the checkpoint of an unfinished run is missing or damaged."""
    step = int(run.record.get("checkpoint_step", 0))
    seed = int(run.record["seed"])
    if not step or _latest(home, run.record["config_hash"], seed, run.attempt) is not None:
        return None
    return Fault("unreadable checkpoint", f"the state at step {step} cannot be read")


def _latest(home: Path, config_hash: str, seed: int, attempt: int) -> BatchCheckpoint | None:
    """The newest sound checkpoint of an attempt whose metrics are complete up to it."""
    folder = run_folder(home, seed)
    logged = [int(line["step"] or 0) for line in read_lines(folder / METRICS)]
    for stored in find_checkpoints(home):
        own = stored.config_hash == config_hash and stored.attempts.get(seed) == attempt
        if own and stored.is_sound():
            log_every = int(read_run(folder).config["log_every"])
            if [n for n in logged if n <= stored.step] == logged_steps(stored.step, log_every):
                return stored
    return None


def _batches(
    home: Path, config: LearnerConfig, attempts: Mapping[int, int]
) -> list[tuple[dict[int, int], BatchCheckpoint | None]]:
    """Seeds that resume from the same checkpoint are one batch; so are those that start."""
    batches: dict[Path | None, tuple[dict[int, int], BatchCheckpoint | None]] = {}
    for seed, attempt in attempts.items():
        stored = _latest(home, config.hash, seed, attempt)
        members, _ = batches.setdefault(stored.folder if stored else None, ({}, stored))
        members[seed] = attempt
    return list(batches.values())


def _remove_used_checkpoints(home: Path) -> None:
    needed = set()
    for stored in find_checkpoints(home):
        for seed, attempt in stored.attempts.items():
            folder = run_folder(home, seed)
            if (folder / RECORD).is_file():
                run = read_run(folder)
                if run.state == "running" and run.attempt == attempt:
                    needed.add(stored.folder.parent)
    for folder in entries(home, "checkpoint-*"):
        if folder not in needed:
            shutil.rmtree(folder)


def _extend_runs(config: LearnerConfig, data: str, home: Path, seeds: Sequence[int]) -> None:
    """Turn finished, shorter runs into unfinished runs of the new length, at their last step.

    ``data`` is the hash of the training split. Runs that differ in anything but their length are
    left alone. Killed at any moment, the same call goes on.
    """
    by_step: dict[int, list[Run]] = {}
    for seed in seeds:
        folder = run_folder(home, seed)
        run = read_run(folder) if (folder / RECORD).is_file() else None
        if run is not None and (step := _step_to_extend(run, config, data)):
            by_step.setdefault(step, []).append(run)
    for step, runs in by_step.items():
        states = [_last_state(run) for run in runs]
        joint = {name: np.concatenate([state[name] for state in states]) for name in states[0]}
        attempts = {int(run.record["seed"]): run.attempt for run in runs}
        save_checkpoint(home, config.hash, attempts, step, joint)
        for run in runs:
            _reopen(run, config, step)


def _step_to_extend(run: Run, config: LearnerConfig, data: str) -> int:
    """The last step of a finished run that is to be extended; 0 for other runs."""
    if run.record.get(EXTENDING) == config.content:  # an earlier call was killed here
        return int(run.record["finished_step"])
    if run.state != "finished" or run.record.get("data", {}).get("train") != data:
        return 0
    shorter = run.config.get("steps", 0) < config.steps
    if not shorter or differences({**run.config, "steps": config.steps}, config.content):
        return 0
    if find_fault(run) is not None:
        return 0
    _require_last_state(run, config)
    return run.steps


def _require_last_state(run: Run, config: LearnerConfig) -> None:
    """Refuse to extend a run that could not end with the bits of one long run."""
    begin = f"{run.folder} holds a finished run of {run.steps:,} steps that cannot go on to"
    other = "train the longer one in another folder."
    if run.steps % config.log_every:
        raise InputError(
            f"{begin} {config.steps:,}: it did not end with a whole line of metrics (every "
            f"{config.log_every} steps); {other}"
        )
    stored = run.record.get("state_sha256")
    if stored is None or not (run.folder / STATE).is_file() or sha256(run.folder / STATE) != stored:
        raise InputError(
            f"{begin} {config.steps:,}: its last state, {STATE}, is not there or not what training "
            f"wrote; {other}"
        )


def _last_state(run: Run) -> Arrays:
    with refusing(run.folder / STATE, "does not hold a state", "train in another folder"):
        return load_file(run.folder / STATE)


def _reopen(run: Run, config: LearnerConfig, step: int) -> None:
    """Make a finished run unfinished; the record first says what it is extended to."""
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
