"""Training what a study needs and nobody has trained yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from toptail.jobs.job import Job
from toptail.lab.critics.registry import split_label
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.config import (
    RunConfig,
    checkpoint_every,
    keep_compiled,
    labelled,
    log_every,
    on_gpu,
)
from toptail.lab.training.data import TaskData
from toptail.lab.training.runs import Run
from toptail.lab.training.session import TrainingJob, Watch, train_runs
from toptail_paper.study.main_settings import load_task

Settings: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class TrainingSettings:
    """How the runs of a study are trained where they are missing."""

    steps: int = 100_000
    """Optimizer steps of each critic."""
    diffusion_steps: int = 100_000
    """Optimizer steps of the behaviour models; 0 trains none."""
    batch_size: int = RunConfig.batch_size
    """Rows per step."""
    learning_rate: float = RunConfig.learning_rate
    """Adam's step size."""
    settings: Settings = ()
    """Settings of the critics that are not the default, such as ``("hidden", (256, 256))``."""
    diffusion_settings: Settings = ()
    """Settings of the behaviour models that are not the default, such as ``hidden``."""

    def critic(
        self, task: str, critic: str, steps: int | None = None, own: Settings = ()
    ) -> RunConfig:
        """The run of a critic or of a label; its ``own`` settings come behind those of all."""
        settings = tuple(dict((*self.settings, *own)).items())
        length = self.steps if steps is None else steps
        name = split_label(critic)[0]
        run = RunConfig(task, name, length, settings=settings, **self._how())
        return run if name == critic else labelled(run, critic)

    def behaviour_model(self, task: str) -> DiffusionRun:
        how = {"settings": self.diffusion_settings, **self._how()}
        return DiffusionRun(task, Diffusion.name, self.diffusion_steps, **how)

    def _how(self) -> dict[str, Any]:
        shared = {"batch_size": self.batch_size, "learning_rate": self.learning_rate}
        return {**shared, "bfloat16": on_gpu(), "log_every": log_every()}


def training_jobs(
    tasks: Sequence[str], jobs_of: Callable[[TaskDataset], Iterable[TrainingJob]], command: str
) -> list[Job]:
    """What `train_missing` would train, as jobs of a command."""
    every = checkpoint_every()
    return [
        training.job(name, every, command)
        for name in tasks
        for training in jobs_of(load_task(name))
    ]


def train_missing(
    tasks: Sequence[str],
    jobs_of: Callable[[TaskDataset], Iterable[TrainingJob]],
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train the runs that a study's tasks need and that are not there.

    Jobs whose seeds are all there stay as they are, whatever their settings. Where some seeds
    are missing, they train with these settings, and runs of other settings among the finished
    seeds are refused: seeds of one critic must not differ in anything else. Killed at any
    moment, the same call goes on.

    ``jobs_of`` says what one task needs, in the order of training; ``watch`` is told after every
    chunk of steps. Returns the runs of everything that was incomplete: finished, or invalid for
    the recorded reason.
    """
    keep_compiled()
    train = partial(train_runs, checkpoint_every=checkpoint_every(), command=command, watch=watch)
    trained: list[Run] = []
    for name in tasks:
        task = load_task(name)
        jobs = [job for job in jobs_of(task) if job.missing()]
        if not jobs:
            continue
        most = max(len(job.seeds) for job in jobs)
        data = TaskData.place(task.data, [job.config for job in jobs], most)
        for job in jobs:
            trained += train(job.config, data, job.seeds, job.out)
    return trained
