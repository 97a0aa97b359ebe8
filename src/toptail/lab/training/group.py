"""Seeds of one critic that train together, from one chunk of steps to the next."""

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
from toptail.lab.critics.learner import Info, Params, parameter_count
from toptail.lab.training.checkpoint import save_params
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.extend import save_state
from toptail.lab.training.joint import JointCheckpoint, arrays_of, reach_the_disk, save_joint
from toptail.lab.training.loop import TrainState
from toptail.lab.training.memory import check_fits, free_bytes, program_bytes, tree_bytes
from toptail.lab.training.metrics import Line, append_line, cut_lines, metrics_line
from toptail.lab.training.policy import find_fault
from toptail.lab.training.programs import (
    Advance,
    compile_chunk,
    fresh_state,
    shapes_of,
    state_shapes,
    take_row,
    with_twin,
)
from toptail.lab.training.run_files import (
    CONFIG,
    METRICS,
    PARAMS,
    RECORD,
    machine,
    now,
    read_run,
    run_folder,
    versions,
)
from toptail.lab.training.runs import mark_invalid
from toptail.lab.training.task_data import TaskData
from toptail.provenance import commit


@dataclass(frozen=True)
class Standing:
    """Where a group stands."""

    stage: Literal["compiling", "training"]
    """What it is doing."""

    critic: str
    """Name of the critic."""

    seeds: tuple[int, ...]
    """The seeds that train together."""

    step: int
    """Steps done."""

    steps: int
    """Steps wanted."""

    lines: dict[int, Line]
    """Each seed's newest line of metrics; empty before the first chunk."""

    stored: bool
    """Whether this step has just been written to a checkpoint."""


Watch: TypeAlias = Callable[[Standing], None]


@dataclass(frozen=True, eq=False)
class Group:
    """What trains together, where it is stored, and where it starts."""

    config: LearnerConfig
    """The critic and how it is trained."""

    data: TaskData
    """What it is trained on."""

    home: Path
    """``OUT/TASK/CRITIC``."""

    attempts: dict[int, int]
    """The seeds, and which attempt at each this is."""

    checkpoint: JointCheckpoint | None
    """The state to go on from; None starts at step 0."""

    checkpoint_every: int
    """Steps between two checkpoints."""

    command: str
    """What the record says was called."""

    watch: Watch | None = None
    """Told after every chunk of steps."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, in the order of the state's rows."""
        return tuple(self.attempts)

    def folder(self, seed: int) -> Path:
        """A seed's run folder."""
        return run_folder(self.home, seed)

    def train(self) -> None:
        """Train to the end and leave every seed's run finished, or invalid if it is."""
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
        self.data.probe.read(self.config.training.learner, state.params)  # compiles it
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
            kept = save_state(self.folder(seed), arrays, row)
            self._close(seed, step, take_row(params, row), kept)

    def _compiled(self, start: int) -> dict[int, Advance]:
        """The programs for whole chunks and for the rest, and whether they fit the device."""
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
        """Write down what starts here, and forget what was logged after the checkpoint."""
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
        """Append a line to each seed's metrics: means over the chunk, and the probe's numbers."""
        means = {name: np.asarray(x, np.float64).mean(axis=1) for name, x in info.items()}
        probed = self.data.probe.read(self.config.training.learner, state.params)
        lines = {}
        for row, seed in enumerate(self.seeds):
            scalars = {"loss": 0.0} | {name: float(mean[row]) for name, mean in means.items()}
            lines[seed] = metrics_line(step, scalars | probed[row])
            append_line(self.folder(seed) / METRICS, lines[seed])
        return lines

    def _store(self, state: TrainState, step: int, seconds: float) -> None:
        """Write a joint checkpoint; the lines before it must be on the disk first."""
        for seed in self.seeds:
            reach_the_disk(self.folder(seed) / METRICS)
        arrays = arrays_of(state, len(self.seeds))
        save_joint(self.home, self.config.hash, self.attempts, step, arrays)
        for seed in self.seeds:
            before = read_object(self.folder(seed) / RECORD)["seconds"]
            self._update(seed, checkpoint_step=step, seconds=round(before + seconds, 2))

    def _close(self, seed: int, step: int, params: Params, state_sha256: str) -> None:
        """Store a seed's parameters and decide, by the policy alone, whether its run is valid."""
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
            self.watch(Standing(stage, name, self.seeds, step, steps, lines or {}, stored))
