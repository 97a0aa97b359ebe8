"""A plan's data sets: recorded ones as they are, or with constant coordinates per trajectory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from toptail.errors import InputError
from toptail.lab.critics.registry import split_label
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.names import Split
from toptail.lab.tasks.neighbours import nearest_rows
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import (
    Triples,
    hard_negatives,
    negatives,
    same_trajectory_pairs,
    sample_triples,
)
from toptail.lab.training.offline import OfflineData, device_data
from toptail_paper.grids.sizes import Sizes


@dataclass(frozen=True, eq=False)
class DrawnTriples:
    """What a critic is shown of one split."""

    triples: Triples
    """Rows of states, actions and goals."""

    negative_rows: IntArray
    """``[n, m]`` goals of other trajectories."""

    hard_negative_rows: IntArray
    """``[n]`` the goal of the nearest-state triple on another trajectory."""

    second_goal_rows: IntArray
    """``[n]`` a second goal of the same trajectory, -1 where there is none."""


@dataclass(frozen=True, eq=False)
class PlannedData:
    """One data set of a plan, and what is drawn from it, each when it is first needed."""

    name: str
    """As the plan has it."""

    task: TaskDataset
    """The data set."""

    width: int
    """Columns of an observation that are the task's own."""

    sizes: Sizes
    """How much is drawn."""

    @classmethod
    def load(cls, name: str, sizes: Sizes) -> PlannedData:
        """Load ``NAME`` or ``NAME[coordinates=8]``."""
        path, settings = split_label(name)
        if settings.keys() - {"coordinates"} or not settings.get("coordinates", "0").isdigit():
            raise InputError(f"{name}: a data set has the setting 'coordinates' alone, a number.")
        task = TaskDataset.load(path)
        width = task.data.train.observations.shape[1]
        count = int(settings.get("coordinates", 0))
        if count:
            rng = np.random.default_rng([sizes.draw_seed, count])
            splits = (task.data.train, task.data.val)
            train, val = (with_coordinates(split, count, rng) for split in splits)
            task = replace(task, data=replace(task.data, train=train, val=val))
        return cls(name, task, width, sizes)

    @cached_property
    def rows(self) -> OfflineData:
        """The training split on the device."""
        return device_data(self.task.data.train)

    @cached_property
    def held_out(self) -> DrawnTriples:
        """Triples of the validation split."""
        return self._drawn("val")

    @cached_property
    def seen(self) -> DrawnTriples:
        """Triples of the training split."""
        return self._drawn("train")

    def _drawn(self, name: Split) -> DrawnTriples:
        sizes, split = self.sizes, self.task.split(name)
        rng = np.random.default_rng([sizes.draw_seed, name == "train"])
        triples = sample_triples(split, sizes.triples, rng, sizes.max_offset, sizes.gamma)
        second = np.full(len(triples), -1, dtype=np.int64)
        two = np.minimum(sizes.max_offset, split.remaining(triples.rows)) >= 2
        pairs = same_trajectory_pairs(triples, split, rng, sizes.max_offset)
        second[two] = pairs.other_goal_rows
        others = negatives(triples, sizes.negatives, rng)
        return DrawnTriples(triples, others, hard_negatives(triples, split), second)

    def near_rows(self, name: Split, drawn: DrawnTriples) -> IntArray:
        """Rows ``[queries, k]`` of the nearest states of other trajectories, whose actions compete.

        Near by the task's own columns, for the first triples of a split.
        """
        split, anchors = self.task.split(name), drawn.triples.rows[: self.sizes.queries]
        rows = split.transitions
        inside, own = np.searchsorted(rows, anchors), split.observations[rows][:, : self.width]
        found: IntArray = rows[nearest_rows(own, inside, self.sizes.k, split.trajectory[rows])]
        return found


def with_coordinates(split: Trajectories, count: int, rng: np.random.Generator) -> Trajectories:
    """The trajectories with ``count`` normal numbers, the same along each, beside its states."""
    each = rng.standard_normal((len(split.ends), count)).astype(np.float32)
    observations = np.concatenate([split.observations, each[split.trajectory]], axis=1)
    return replace(split, observations=observations)
