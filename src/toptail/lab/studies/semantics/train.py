"""Training what the study needs and nobody has trained yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.losses import Contrast
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion_runs import DiffusionRun
from toptail.lab.studies.semantics.config import SWEEP, TEMPERATURE, SemanticsConfig
from toptail.lab.studies.semantics.draws import TaskDataset
from toptail.lab.training.config import LearnerConfig, RunConfig
from toptail.lab.training.defaults import checkpoint_every, keep_compiled, log_every, on_gpu
from toptail.lab.training.group import Watch
from toptail.lab.training.policy import find_fault
from toptail.lab.training.run_files import RECORD, Run, read_run, run_folder
from toptail.lab.training.session import train_runs
from toptail.lab.training.task_data import TaskData

MAIN = ("raw", "cosine", "tdq", "hybrid")
"""The four critics of the main table."""

Settings = tuple[tuple[str, Any], ...]

LEARNED: Settings = (("learn_temperature", True), ("temperature", 0.1))
"""The temperature study's learned temperature, and where it starts."""


@dataclass(frozen=True)
class Training:
    """What ``--train`` trains where it is missing."""

    critics: tuple[str, ...] = (*MAIN, "two_head_separate", "two_head_joint")
    """Critics on navigation tasks."""

    steps: int = 100_000
    """Optimizer steps of those critics and of the value oracle."""

    play_critics: tuple[str, ...] = MAIN
    """Critics on manipulation tasks, where only retrieval is measured."""

    play_steps: int = 50_000
    """Optimizer steps of those critics."""

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

    sweep: bool = False
    """Whether to train the temperature study, on the navigation tasks."""

    temperatures: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
    """Fixed temperatures of that study; a learned one comes beside them."""

    contrasts: tuple[Contrast, ...] = ("binary_nce", "symmetric_info_nce")
    """Contrastive losses of that study."""

    sweep_steps: int = 20_000
    """Optimizer steps of that study."""

    sweep_seeds: tuple[int, ...] = (0, 1, 2)
    """Training seeds of that study; none of them is reported elsewhere."""


@dataclass(frozen=True)
class Job:
    """One configuration with its seeds: what one call of the trainer does."""

    config: LearnerConfig
    """What to train."""

    seeds: tuple[int, ...]
    """One run each, all trained together."""

    out: Path
    """Runs go to ``out/TASK/CRITIC/seed-N``."""

    def missing(self) -> bool:
        """Whether a seed has no finished and valid run, whatever its settings are."""
        home = self.out / self.config.task / self.config.critic
        return any(_is_missing(run_folder(home, seed)) for seed in self.seeds)


def train_missing(
    config: SemanticsConfig,
    training: Training,
    runs: Path,
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train the runs that a study's tasks and seeds need and ``runs`` does not hold.

    Critics whose seeds are all there stay as they are, whatever their settings. Where some seeds
    are missing, they train with these settings, and runs of other settings among the finished
    seeds are refused: seeds of one critic must not differ in anything else. Killed at any
    moment, the same call goes on.

    Parameters
    ----------
    config
        Tasks and seeds.
    training
        Critics, steps and settings.
    runs
        Folder of the runs.
    command
        What the records say was called.
    watch
        Told after every chunk of steps.

    Returns
    -------
    The runs of everything that was incomplete: finished, or invalid for the recorded reason.
    """
    keep_compiled()
    trained: list[Run] = []
    for name in config.tasks:
        task = TaskDataset.load(name)
        jobs = [job for job in _jobs(config, training, task, runs) if job.missing()]
        if not jobs:
            continue
        most = max(len(job.seeds) for job in jobs)
        data = TaskData.place(task.data, [job.config for job in jobs], most)
        for job in jobs:
            trained += train_runs(
                job.config,
                data,
                job.seeds,
                job.out,
                checkpoint_every=checkpoint_every(),
                command=command,
                watch=watch,
            )
    return trained


def _jobs(
    config: SemanticsConfig, training: Training, task: TaskDataset, runs: Path
) -> Iterator[Job]:
    """Everything that one task needs, in the order of training."""
    critics = training.critics if task.navigation else training.play_critics
    steps = training.steps if task.navigation else training.play_steps
    # The trainer's own default is left unsaid, so that the runs of `toptail train` fit.
    chosen = () if Cosine.temperature == TEMPERATURE else (("temperature", TEMPERATURE),)
    for critic in dict.fromkeys(critics):
        with_oracle = task.navigation and critic == "tdq"
        seeds = (*config.seeds, config.oracle_seed) if with_oracle else config.seeds
        run = _run(training, task, critic, steps, (*chosen, *training.settings))
        yield Job(run, seeds, runs)
    if task.navigation and "tdq" not in critics:
        run = _run(training, task, "tdq", steps, training.settings)
        yield Job(run, (config.oracle_seed,), runs)
    if task.navigation and training.diffusion_steps:
        model = DiffusionRun(
            task=task.name,
            critic=Diffusion.name,
            steps=training.diffusion_steps,
            batch_size=training.batch_size,
            learning_rate=training.learning_rate,
            bfloat16=on_gpu(),
            log_every=log_every(),
            settings=training.diffusion_settings,
        )
        yield Job(model, config.diffusion_seeds, runs)
    if task.navigation and training.sweep:
        yield from _sweep_jobs(training, task, runs, config.seeds)


def _sweep_jobs(
    training: Training, task: TaskDataset, runs: Path, reported: Sequence[int]
) -> Iterator[Job]:
    """The temperature study: ``RUNS/temperature/SETTING/TASK/cosine/seed-N``."""
    both = sorted(set(training.sweep_seeds) & set(reported))
    if both:
        raise InputError(
            f"Seed {both[0]} is reported and cannot choose the temperature: give the temperature "
            "study seeds of its own."
        )
    temperatures: list[float | None] = [*training.temperatures, None]
    for contrast in training.contrasts:
        for temperature in temperatures:
            own: Settings = (("temperature", temperature),) if temperature else LEARNED
            settings = (*training.settings, *own, ("contrast", contrast))
            run = _run(training, task, Cosine.name, training.sweep_steps, settings)
            out = runs / SWEEP / setting_name(contrast, temperature)
            yield Job(run, training.sweep_seeds, out)


def setting_name(contrast: Contrast, temperature: float | None) -> str:
    """``binary_nce-0.05``, or ``binary_nce-learned`` where the temperature is None."""
    return f"{contrast}-learned" if temperature is None else f"{contrast}-{temperature:g}"


def _run(
    training: Training, task: TaskDataset, critic: str, steps: int, settings: Settings
) -> RunConfig:
    return RunConfig(
        task=task.name,
        critic=critic,
        steps=steps,
        batch_size=training.batch_size,
        learning_rate=training.learning_rate,
        bfloat16=on_gpu(),
        log_every=log_every(),
        settings=tuple(dict(settings).items()),
    )


def _is_missing(folder: Path) -> bool:
    return not (folder / RECORD).is_file() or find_fault(read_run(folder)) is not None
