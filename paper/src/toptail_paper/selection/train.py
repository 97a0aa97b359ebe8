"""The runs that the selection study needs: reference ensemble, critics, behaviour model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from toptail.lab.critics.registry import names
from toptail.lab.judges.reference import REFERENCE_CRITIC
from toptail.lab.scorers.training import TrainingJob, TrainingSettings, train_missing
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.run_batch import Watch
from toptail.lab.training.run_files import Run
from toptail_paper.selection.config import SelectionConfig


def train_selection(
    task: str,
    config: SelectionConfig,
    training: TrainingSettings,
    runs: Path,
    command: str = "",
    watch: Watch | None = None,
) -> list[Run]:
    """Train what a study needs and ``runs`` does not hold: `train_missing`."""
    return train_missing((task,), partial(selection_jobs, config, training, runs), command, watch)


def selection_jobs(
    config: SelectionConfig, training: TrainingSettings, runs: Path, data: TaskDataset
) -> Iterator[TrainingJob]:
    """Everything that the study needs, in the order of training."""
    reference = training.critic(data.name, REFERENCE_CRITIC)
    yield TrainingJob(reference, config.reference.seeds, runs)
    for critic in names("main", "two_head", "control", "other"):
        yield TrainingJob(training.critic(data.name, critic), config.seeds, runs)
    if training.diffusion_steps:
        model = training.behaviour_model(data.name)
        yield TrainingJob(model, (config.pools.policy_seed,), runs)
