"""The main settings of the paper's tasks: data, walkers, and further rows of the tables.

A task whose fingerprint was found uses it (``paper/docs/results/settled.md``, a). Where none was,
it is OGBench's default data set, walked by walkers of the published recipe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toptail_paper.study.naming import PAPER_TASKS, data_set, task_title

if TYPE_CHECKING:
    from toptail.lab.tasks.files import TaskDataset

PUBLISHED_WALKERS: Final = Path(__file__).parents[1] / "walkers" / "actors"
"""Walkers that `toptail_paper.walkers.published` trained: an ant and a dribbler, seed 0."""

OTHER_REWARD: Final = ("tdq[reward=0/1]", "hybrid[reward=0/1]")
"""The critics with a Bellman loss, with the reward 0/1 that the paper's text describes."""


@dataclass(frozen=True)
class MainSettings:
    """How a task is run for the main tables."""

    data: str
    """The data set."""
    walkers: Path | None = None
    """Folder of the walkers that collect it; the library's own, or none are needed."""
    also: tuple[str, ...] = ()
    """Critics beside those that every task has."""
    two_heads: bool = True
    """Whether the two-head critics are trained."""
    deployment: bool = True
    """Whether actors are trained and critics followed at every step."""
    rollout_queries: int = 167
    """Queries of each of the three distance groups that are rolled out, for every seed."""


MAIN_SETTINGS: Final = {
    **{task: MainSettings(data) for task, data in PAPER_TASKS.items()},
    "PointMaze": MainSettings("pointmaze-medium-navigate-v0", also=OTHER_REWARD),
    "AntMaze": MainSettings("antmaze-medium-navigate-v0", PUBLISHED_WALKERS, OTHER_REWARD),
    "HumanoidMaze": MainSettings("humanoidmaze-giant-navigate-v0", deployment=False),
    "AntSoccer": MainSettings("antsoccer-arena-navigate-v0", PUBLISHED_WALKERS, two_heads=False),
}
"""Task -> its settings, in the paper's order. The paper has no two-head critics on AntSoccer and
deploys nothing on HumanoidMaze."""


def main_settings(task: str) -> MainSettings:
    """The settings of one of the paper's tasks; of another data set those of collecting it here."""
    return MAIN_SETTINGS.get(task, MainSettings(task))


def load_task(name_or_path: str) -> TaskDataset:
    """A data set by the paper's name, OGBench's or its path, called in tables as the paper does."""
    from toptail.lab.tasks.files import TaskDataset

    task = TaskDataset.load(data_set(name_or_path))
    return replace(task, key=task_title(task.name))
