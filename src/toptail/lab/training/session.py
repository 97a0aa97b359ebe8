"""Training runs that can be killed at any moment and go on where they stopped.

The seeds of a critic train together, as a batch of runs. Step t draws from fold_in(key, t), and
steps run in chunks that start at fixed numbers, so that a run that was killed and resumed ends with
the same bits as one that was not.

A finished run keeps its last state. With more steps it goes on from there as from a checkpoint: a
run of 100 steps that is extended to 200 ends with the same bits as a run of 200.
"""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import jax
import numpy as np
from safetensors.numpy import load_file

from toptail.errors import InputError, check_whole, option, refusing
from toptail.io.files import entries, sha256, sweep
from toptail.io.json_files import read_object, write_json
from toptail.jobs.job import Job, Resources
from toptail.lab.critics.base import FROZEN, Info, Params, parameter_count, trained_only
from toptail.lab.tasks.files import Dataset, load
from toptail.lab.training.checkpoints import (
    STATE,
    Arrays,
    BatchCheckpoint,
    arrays_of,
    find_checkpoints,
    flush_to_disk,
    save_checkpoint,
    save_last_state,
    save_params,
)
from toptail.lab.training.config import (
    LearnerConfig,
    keep_compiled,
    on_gpu,
    require_seeds,
    takes_base,
)
from toptail.lab.training.data import TaskData
from toptail.lab.training.loop import (
    Advance,
    TrainState,
    check_fits,
    compile_chunk,
    free_bytes,
    fresh_state,
    program_bytes,
    shapes_of,
    state_shapes,
    take_row,
    tree_bytes,
    with_twin,
)
from toptail.lab.training.runs import (
    CONFIG,
    METRICS,
    PARAMS,
    RECORD,
    Fault,
    Line,
    Run,
    append_line,
    archive,
    attempt_at,
    cut_lines,
    differences,
    find_fault,
    identity_fault,
    load_run,
    logged_steps,
    machine,
    mark_invalid,
    metrics_line,
    now,
    read_lines,
    read_run,
    require_data,
    run_folder,
    training_lock,
    versions,
)
from toptail.provenance import commit


@dataclass(frozen=True)
class BatchProgress:
    """The progress of a batch of runs, for `Watch`."""

    stage: Literal["compiling", "training"]
    critic: str
    seeds: tuple[int, ...]
    step: int
    steps: int
    lines: dict[int, Line]
    """Each seed's newest line of metrics; empty before the first chunk."""
    stored: bool
    """Whether this step has just been written to a checkpoint."""


Watch: TypeAlias = Callable[[BatchProgress], None]


class FrozenRun(NamedTuple):
    """A run whose parameters another run reads."""

    params: Params
    origin: dict[str, str]
    """The run's name and hash, for the record of the run that reads it."""


@dataclass(frozen=True, eq=False)
class RunBatch:
    """Seeds that train together in one program, with their folders and their first state."""

    config: LearnerConfig
    data: TaskData
    home: Path
    """``OUT/TASK/CRITIC``."""
    attempts: dict[int, int]
    """Seed to the number of the attempt."""
    checkpoint: BatchCheckpoint | None
    """The state to resume from; None starts at step 0."""
    checkpoint_every: int
    command: str
    watch: Watch | None = None
    frozen: Mapping[int, FrozenRun] = field(default_factory=dict)
    """Seed to the run whose parameters it reads frozen; empty for a critic without a base."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in the order of the state's rows."""
        return tuple(self.attempts)

    def folder(self, seed: int) -> Path:
        return run_folder(self.home, seed)

    def train(self) -> None:
        """Train to the last step and leave every run finished, or invalid with the reason."""
        start = 0 if self.checkpoint is None else self.checkpoint.step
        self._tell("compiling", start)
        advance = self._compiled(start)
        begun = {
            "started": now(),
            "command": self.command,
            "versions": versions(),
            "commit": commit(),
            "machine": machine(),
            "node": platform.node(),
        }
        for seed in self.seeds:
            self._open(seed, start, begun)
        state, step = self._start(), start
        self.data.probe.read(self.config.training.learner, state.params)  # to compile it now
        self._tell("training", start)
        began = time.monotonic()
        while step < self.config.steps:
            length = min(self.config.log_every, self.config.steps - step)
            state, info = advance[length](state, self.data.rows)
            step += length
            lines = self._log(step, state, info)
            lost = all(line["loss"] is None for line in lines.values())
            stored = step == self.config.steps or step % self.checkpoint_every == 0
            if stored and not lost:
                self._store(state, step, time.monotonic() - began)
                began = time.monotonic()
            self._tell("training", step, lines, stored)
            if lost:
                break
        params: Params = jax.tree.map(np.asarray, state.params)
        arrays = arrays_of(state, len(self.seeds))
        for row, seed in enumerate(self.seeds):
            state_sha256 = save_last_state(self.folder(seed), arrays, row)
            self._close(seed, step, take_row(params, row), state_sha256)

    def _compiled(self, start: int) -> dict[int, Advance]:
        """The programs of a whole chunk and of a last, shorter one, if they fit the device."""
        total, chunk = self.config.steps, self.config.log_every
        whole = {chunk} if total // chunk > start // chunk else set()
        lengths = whole | ({total % chunk} if total % chunk and start < total else set())
        training, rows = self.config.training, len(with_twin(self.seeds))
        shapes = shapes_of(self.data.rows)
        programs = {n: compile_chunk(training, n, rows, shapes) for n in lengths}
        needed = tree_bytes(state_shapes(training, rows, shapes))
        needed += max((program_bytes(program) for program in programs.values()), default=0)
        what = f"Training {self.config.name} with {len(self.seeds)} seeds at once"
        check_fits(what, needed, free_bytes())
        return programs

    def _open(self, seed: int, start: int, begun: dict[str, Any]) -> None:
        """Write the record of a run that starts or resumes, and cut its metrics at that step."""
        folder = self.folder(seed)
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        cut_lines(folder / METRICS, start)
        if start:
            record = read_object(folder / RECORD)
            record["resumed"] = [*record["resumed"], {"from_step": start, **begun}]
            record["checkpoint_step"] = start  # a kill may have come before it was recorded
        else:
            content = {"hash": self.config.hash, "config": self.config.content}
            write_json(folder / CONFIG, content)
            record = self._new_record(seed) | begun
        write_json(folder / RECORD, record)

    def _new_record(self, seed: int) -> dict[str, Any]:
        data = self.data
        return {
            "state": "running",
            "task": self.config.task,
            "critic": self.config.critic,
            "seed": seed,
            "attempt": self.attempts[seed],
            "steps": self.config.steps,
            "checkpoint_step": 0,
            "seconds": 0.0,
            "config_hash": self.config.hash,
            "data": {
                "train": data.sha256,
                "val": data.val_sha256,
                "source": data.source,
                **({"extra": dict(data.extra)} if data.extra else {}),
            },
            "trained_with": list(self.seeds),
            "resumed": [],
            **({"frozen": self.frozen[seed].origin} if self.frozen else {}),
        }

    def _start(self) -> TrainState:
        training, rows = self.config.training, with_twin(self.seeds)
        if self.checkpoint is None:
            state = fresh_state(training, self.seeds, self.data.rows)
            return (
                _with_frozen(state, [self.frozen[seed] for seed in rows]) if self.frozen else state
            )
        shapes = state_shapes(training, len(rows), self.data.rows)
        return self.checkpoint.load(shapes, rows)

    def _log(self, step: int, state: TrainState, info: Info) -> dict[int, Line]:
        """Append a line to each run's metrics: means over the chunk, and the probe's numbers."""
        means = {name: np.asarray(x, np.float64).mean(axis=1) for name, x in info.items()}
        probed = self.data.probe.read(self.config.training.learner, state.params)
        lines = {}
        for row, seed in enumerate(self.seeds):
            scalars = {"loss": 0.0} | {name: float(mean[row]) for name, mean in means.items()}
            lines[seed] = metrics_line(step, scalars | probed[row])
            append_line(self.folder(seed) / METRICS, lines[seed])
        return lines

    def _store(self, state: TrainState, step: int, seconds: float) -> None:
        """Write a checkpoint; the metrics before it must be on the disk first."""
        for seed in self.seeds:
            flush_to_disk(self.folder(seed) / METRICS)
        arrays = arrays_of(state, len(self.seeds))
        save_checkpoint(self.home, self.config.hash, self.attempts, step, arrays)
        for seed in self.seeds:
            before = read_object(self.folder(seed) / RECORD)["seconds"]
            self._update(seed, checkpoint_step=step, seconds=round(before + seconds, 2))

    def _close(self, seed: int, step: int, params: Params, state_sha256: str) -> None:
        """Store the parameters of a run, and record whether it is valid."""
        folder = self.folder(seed)
        save_params(folder / PARAMS, params)
        self._update(
            seed,
            state="finished",
            finished=now(),
            finished_step=step,
            parameter_count=parameter_count(params),
            params_sha256=sha256(folder / PARAMS),
            state_sha256=state_sha256,
        )
        run = read_run(folder)
        fault = find_fault(run)
        if fault is not None:
            mark_invalid(run, fault)

    def _update(self, seed: int, **entries: Any) -> None:
        path = self.folder(seed) / RECORD
        write_json(path, read_object(path) | entries)

    def _tell(
        self,
        stage: Literal["compiling", "training"],
        step: int,
        lines: dict[int, Line] | None = None,
        stored: bool = False,
    ) -> None:
        if self.watch is not None:
            name, steps = self.config.name, self.config.steps
            self.watch(BatchProgress(stage, name, self.seeds, step, steps, lines or {}, stored))


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
    frozen = _frozen_runs(config, data, seeds)
    with training_lock(home):
        _extend_runs(config, data.sha256, home, seeds)
        attempts = {
            seed: attempt
            for seed in seeds
            if (attempt := _open_attempt(home, seed, config, data, frozen.get(seed))) is not None
        }
        for members, checkpoint in _batches(home, config, attempts):
            how = (members, checkpoint, every, command, watch, frozen)
            RunBatch(config, data, home, *how).train()
        _remove_used_checkpoints(home)
    return [read_run(run_folder(home, seed)) for seed in seeds]


def _frozen_runs(
    config: LearnerConfig, data: TaskData, seeds: Sequence[int]
) -> dict[int, FrozenRun]:
    """The runs whose parameters a learner with a base reads; empty for other learners."""
    if not takes_base(config.training.learner):
        return {}
    learner: Any = config.training.learner
    if learner.base is None and data.extra:
        params = learner.frozen({}, data.rows)
        return {seed: FrozenRun(params, dict(data.extra)) for seed in seeds}
    if config.base is None or config.on is None:
        raise InputError(
            f"{config.name} is trained on the frozen parameters of another run: name the folder of "
            f"its runs, {option('on')} RUNS/TASK/CRITIC, or embeddings of your own, "
            f"{option('embed')} FILE.py:FUNCTION."
        )
    found = {}
    for seed in seeds:
        folder = run_folder(config.on, seed)
        params = load_run(folder, config.task, config.base.hash).params
        record = read_run(folder).record
        require_data(folder, record["data"]["train"], data.source, data.sha256)
        origin = {"run": "/".join(folder.parts[-3:]), "params_sha256": record["params_sha256"]}
        found[seed] = FrozenRun(learner.frozen(trained_only(params), data.rows), origin)
    return found


def _with_frozen(state: TrainState, runs: Sequence[FrozenRun]) -> TrainState:
    """A fresh state in which every row has the parameters of its run."""
    stacked = jax.tree.map(lambda *x: jax.numpy.stack(x), *(run.params for run in runs))
    return state._replace(params={**state.params, FROZEN: stacked})


def _open_attempt(
    home: Path, seed: int, config: LearnerConfig, data: TaskData, frozen: FrozenRun | None
) -> int | None:
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
    trained_on = run.record.get("data", {})
    if trained_on.get("train") != data.sha256 or trained_on.get("extra", {}) != data.extra:
        changed.append("the data")
    if frozen is not None and run.record.get("frozen") != frozen.origin:
        changed.append("the run that it is trained on")
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


_OF_THE_DEVICE: Final = ("bfloat16", "log_every")


@dataclass(frozen=True)
class TrainingJob:
    """One configuration with its seeds: what one call of the trainer does."""

    config: LearnerConfig

    seeds: tuple[int, ...]
    """One run each, all trained together."""

    out: Path
    """Runs go to ``out/TASK/CRITIC/seed-N``."""

    def job(
        self,
        source: str,
        every: int,
        command: str = "",
        prepare: Callable[[TaskData, Dataset], TaskData] | None = None,
    ) -> Job:
        """The training as a job of a command, on the data set of this name or path.

        ``prepare`` adds to the data what its rows do not have. Precision and lines of metrics
        follow from the device, of which a list knows nothing.
        """
        home = self.out / self.config.task / self.config.name
        content = {k: v for k, v in self.config.content.items() if k not in _OF_THE_DEVICE}

        def work() -> None:
            keep_compiled()
            dataset = load(source)
            data = TaskData.place(dataset, [self.config], len(self.seeds))
            if prepare is not None:
                data = prepare(data, dataset)
            train_runs(
                self.config, data, self.seeds, self.out, checkpoint_every=every, command=command
            )

        return Job(
            name=f"train {home}",
            content={"config": content, "seeds": list(self.seeds), "data": source},
            home=self.out,
            outputs=[run_folder(home, seed) for seed in self.seeds],
            work=work,
            done=lambda: not self.missing(),
            resources=Resources(1.0, 1.0 if on_gpu() else 0.0),
        )

    def missing(self) -> bool:
        """Whether a seed has no finished and valid run, whatever its settings are."""
        home = self.out / self.config.task / self.config.name
        folders = [run_folder(home, seed) for seed in self.seeds]
        return any(not (f / RECORD).is_file() or find_fault(read_run(f)) for f in folders)
