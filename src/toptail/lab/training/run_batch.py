"""A batch of runs: the seeds of one critic that train together, chunk by chunk."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import jax
import numpy as np

from toptail.io.files import sha256, sweep
from toptail.io.json_files import read_object, write_json
from toptail.lab.critics.base import Info, Params, parameter_count
from toptail.lab.training.checkpoints import (
    BatchCheckpoint,
    arrays_of,
    flush_to_disk,
    save_checkpoint,
    save_last_state,
    save_params,
)
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.loop import TrainState
from toptail.lab.training.programs import (
    Advance,
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
from toptail.lab.training.run_files import (
    CONFIG,
    METRICS,
    PARAMS,
    RECORD,
    Line,
    append_line,
    cut_lines,
    machine,
    metrics_line,
    now,
    read_run,
    run_folder,
    versions,
)
from toptail.lab.training.runs import find_fault, mark_invalid
from toptail.lab.training.task_data import TaskData
from toptail.provenance import commit


@dataclass(frozen=True)
class BatchProgress:
    """The progress of a batch of runs, for `Watch`."""

    stage: Literal["compiling", "training"]
    """What the batch is doing."""
    critic: str
    """Name of the critic."""
    seeds: tuple[int, ...]
    """The seeds of the batch."""
    step: int
    """Steps done."""
    steps: int
    """Steps of the whole run."""
    lines: dict[int, Line]
    """Each seed's newest line of metrics; empty before the first chunk."""
    stored: bool
    """Whether this step has just been written to a checkpoint."""


Watch: TypeAlias = Callable[[BatchProgress], None]


@dataclass(frozen=True, eq=False)
class RunBatch:
    """Seeds that train together in one program, with their folders and their first state."""

    config: LearnerConfig
    """The critic and its training."""
    data: TaskData
    """The data set."""
    home: Path
    """``OUT/TASK/CRITIC``."""
    attempts: dict[int, int]
    """Seed to the number of the attempt."""
    checkpoint: BatchCheckpoint | None
    """The state to resume from; None starts at step 0."""
    checkpoint_every: int
    """Steps between two checkpoints."""
    command: str
    """The command line for the records."""
    watch: Watch | None = None
    """Called after every chunk of steps."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in the order of the state's rows."""
        return tuple(self.attempts)

    def folder(self, seed: int) -> Path:
        """A seed's run folder."""
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
            "data": {"train": data.sha256, "val": data.val_sha256, "source": data.source},
            "trained_with": list(self.seeds),
            "resumed": [],
        }

    def _start(self) -> TrainState:
        training, rows = self.config.training, with_twin(self.seeds)
        if self.checkpoint is None:
            return fresh_state(training, self.seeds, self.data.rows)
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
