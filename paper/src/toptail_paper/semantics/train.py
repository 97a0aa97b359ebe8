"""The runs that the semantics study needs: critics, reference, behaviour models, temperatures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toptail.errors import InputError
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.losses import Contrast
from toptail.lab.critics.registry import MAIN, entry, names
from toptail.lab.judges.reference import REFERENCE_CRITIC
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.runs import Run
from toptail.lab.training.session import TrainingJob, Watch
from toptail_paper.semantics.config import SWEEP, SemanticsConfig
from toptail_paper.study.training import Settings, TrainingSettings, train_missing

LEARNED: Settings = (("learn_temperature", True), ("temperature", 0.1))
"""The temperature study's learned temperature, and where it starts."""


@dataclass(frozen=True)
class SemanticsTraining(TrainingSettings):
    """What the semantics study trains where it is missing, and how."""

    critics: tuple[str, ...] = (*MAIN, *names("two_head"))
    """Critics on navigation tasks."""
    play_critics: tuple[str, ...] = MAIN
    """Critics on manipulation tasks, where only retrieval is measured."""
    play_steps: int = 50_000
    """Optimizer steps of those critics."""
    sweep: bool = False
    """Whether to train the temperature study, on the navigation tasks."""
    temperatures: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
    """Fixed temperatures of that study; a learned one is added."""
    contrasts: tuple[Contrast, ...] = ("binary_nce", "symmetric_info_nce")
    """Contrastive losses of that study."""
    sweep_steps: int = 20_000
    """Optimizer steps of that study."""
    sweep_seeds: tuple[int, ...] = (0, 1, 2)
    """Training seeds of that study; none of them is reported elsewhere."""

    def __post_init__(self) -> None:
        for critic in (*self.critics, *self.play_critics):
            entry(critic)  # says which there are


def train_semantics(
    config: SemanticsConfig,
    training: SemanticsTraining,
    runs: Path,
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train what the study's tasks and seeds need and ``runs`` does not hold: `train_missing`."""
    jobs_of = partial(semantics_jobs, config, training, runs)
    return train_missing(config.tasks, jobs_of, command, watch)


def semantics_jobs(
    config: SemanticsConfig, training: SemanticsTraining, runs: Path, task: TaskDataset
) -> Iterator[TrainingJob]:
    if not task.navigation:
        for critic in dict.fromkeys(training.play_critics):
            run = training.critic(task.name, critic, training.play_steps)
            yield TrainingJob(run, config.seeds, runs)
        return
    reference = (config.oracle_seed,)
    for critic in dict.fromkeys(training.critics):
        seeds = (*config.seeds, *reference) if critic == REFERENCE_CRITIC else config.seeds
        yield TrainingJob(training.critic(task.name, critic), seeds, runs)
    if REFERENCE_CRITIC not in training.critics:
        yield TrainingJob(training.critic(task.name, REFERENCE_CRITIC), reference, runs)
    if training.diffusion_steps:
        yield TrainingJob(training.behaviour_model(task.name), config.diffusion_seeds, runs)
    if training.sweep:
        yield from _sweep_jobs(training, task, runs, config.seeds)


def _sweep_jobs(
    training: SemanticsTraining, task: TaskDataset, runs: Path, reported: Sequence[int]
) -> Iterator[TrainingJob]:
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
            own = (*own, ("contrast", contrast))
            run = training.critic(task.name, Cosine.name, training.sweep_steps, own)
            out = runs / SWEEP / setting_name(contrast, temperature)
            yield TrainingJob(run, training.sweep_seeds, out)


def setting_name(contrast: Contrast, temperature: float | None) -> str:
    """``binary_nce-0.05``, or ``binary_nce-learned`` where the temperature is None."""
    return f"{contrast}-learned" if temperature is None else f"{contrast}-{temperature:g}"
