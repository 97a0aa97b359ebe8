"""Data sets under the names that runs, scores and tables know them by."""

from __future__ import annotations

from dataclasses import dataclass

from toptail.errors import InputError
from toptail.lab.tasks.files import Dataset, find, load, task_of
from toptail.lab.tasks.names import Split, TaskName
from toptail.lab.tasks.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class TaskDataset:
    """A data set and what a study must know of its task."""

    name: str
    """Name of the data set: OGBench's, or the file's."""

    key: str
    """Name in tables."""

    navigation: bool
    """Whether gamma^d is a value there."""

    data: Dataset
    """Both splits."""

    @classmethod
    def load(cls, name_or_path: str) -> TaskDataset:
        """Load and check a data set by OGBench's name, the paper's name, or its path."""
        path = find(name_or_path)
        task = task_of(path)
        name = path.stem if task is None else task.name
        data = load(path)
        if data.train.observations.ndim != 2 or data.train.actions.ndim != 2:
            raise InputError(
                f"{path} has observations of shape {data.train.observations.shape[1:]} and actions "
                f"of shape {data.train.actions.shape[1:]}: critics score vectors only."
            )
        return cls(name, task_key(name, task), is_navigation(task), data)

    def split(self, name: Split) -> Trajectories:
        """One of the splits."""
        return self.data.val if name == "val" else self.data.train


def task_key(name: str, task: TaskName | None) -> str:
    """A task's name in tables: the paper's where the data set is the paper's, else its own."""
    return (task.paper_name if task is not None else None) or name


def is_navigation(task: TaskName | None) -> bool:
    """Whether gamma^d is a value: in mazes, and in data sets that are not OGBench's.

    In play data the recorded way to a goal is no attempt to reach it, and so its length says
    nothing; of data that nobody knows, whoever brings it knows best.
    """
    return task is None or task.is_maze
