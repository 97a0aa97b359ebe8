"""Frozen validation queries (state, goal), grouped by distance, stored with a hash."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, check_whole
from toptail.io.arrays import HashedFormat
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

_FORMAT = HashedFormat("toptail-queries-1", "a file of frozen queries", "freeze the queries again")
_ARRAYS = ("states", "actions", "goals", "rows", "goal_rows", "trajectory", "group")


@dataclass(frozen=True)
class QueryConfig:
    """Which queries to freeze."""

    per_group: int = 500
    """Queries in each distance group."""
    near: tuple[int, int] = (1, 20)
    """Smallest and largest distance of the near group, in steps along the trajectory."""
    medium: tuple[int, int] = (21, 60)
    """Distances of the medium group."""
    far: tuple[int, int] = (61, 150)
    """Distances of the far group."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        check_whole("per_group", self.per_group, 1)
        check_whole("seed", self.seed, 0)
        for name, (low, high) in self.groups().items():
            if not 1 <= low <= high:
                raise InputError(
                    f"The {name} group has bounds {low}..{high}: expected 1 ≤ low ≤ high."
                )

    def groups(self) -> dict[str, tuple[int, int]]:
        """Return the bounds of each group, by name."""
        return {"near": self.near, "medium": self.medium, "far": self.far}


@dataclass(frozen=True, eq=False)
class FrozenQueries:
    """Fixed (state, goal) pairs, with the action that the data takes there."""

    states: FloatArray
    """``[queries, observation]``."""
    actions: FloatArray
    """The action that the data has at the state, ``[queries, action]``."""
    goals: FloatArray
    """``[queries, observation]``."""
    rows: IntArray
    """Row of each state in the validation trajectories, ``[queries]``."""
    goal_rows: IntArray
    """Row of each goal, ``[queries]``."""
    trajectory: IntArray
    """Trajectory of both, which intervals cluster by, ``[queries]``."""
    group: NDArray[np.str_]
    """``near``, ``medium`` or ``far``, ``[queries]``."""
    config: QueryConfig
    """How they were drawn."""
    data_sha256: str
    """Content hash of the trajectories they were drawn from."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def distance(self) -> IntArray:
        """Steps from state to goal along the recorded trajectory, ``[queries]``."""
        return self.goal_rows - self.rows

    @property
    def sha256(self) -> str:
        """Hash of all fields: equal hashes are equal queries."""
        return _FORMAT.sha256(self._header(), self._arrays())

    def save(self, path: Path) -> None:
        """Write the queries with their hash."""
        _FORMAT.write(path, self._header(), self._arrays())

    def _header(self) -> dict[str, Any]:
        config = {**self.config.groups(), "per_group": self.config.per_group}
        return {**config, "seed": self.config.seed, "data": self.data_sha256}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in _ARRAYS}


def freeze_queries(val: Trajectories, config: QueryConfig) -> FrozenQueries:
    """Draw queries from the validation split.

    In each group, the state is a uniformly drawn row with at least the group's smallest
    distance left in its trajectory (without replacement while there are enough such rows), and
    the distance is uniform between the group's bounds, cut at the trajectory's end.
    """
    rng = np.random.default_rng(config.seed)
    remaining = val.remaining(np.arange(len(val)))
    rows, goal_rows = [], []
    for name, (low, high) in config.groups().items():
        able = np.flatnonzero(remaining >= low)
        if not len(able):
            raise InputError(
                f"{val.source} has no row with {low} steps left in its trajectory, which the "
                f"{name} group needs: its longest trajectory has {val.lengths.max()} rows."
            )
        drawn = rng.choice(able, size=config.per_group, replace=len(able) < config.per_group)
        farthest = np.minimum(high, remaining[drawn])
        rows.append(drawn)
        goal_rows.append(drawn + rng.integers(low, farthest, endpoint=True))
    at, to = np.concatenate(rows), np.concatenate(goal_rows)
    return FrozenQueries(
        states=val.observations[at],
        actions=val.actions[at],
        goals=val.observations[to],
        rows=at,
        goal_rows=to,
        trajectory=val.trajectory[at],
        group=np.repeat(np.array(list(config.groups())), config.per_group),
        config=config,
        data_sha256=val.sha256,
    )


def group_bounds(val: Trajectories) -> dict[str, tuple[int, int]]:
    """Bounds of the groups for short trajectories; empty where the default bounds fit."""
    longest, usual = int(val.lengths.max()) - 1, QueryConfig()
    if longest >= usual.far[0]:
        return {}
    if longest < 3:
        raise InputError(
            f"{val.source} has no trajectory of more than {longest + 1} rows: goals near, medium "
            "and far need at least 4."
        )
    near, medium = max(1, longest // 8), max(2, longest // 3)
    return {"near": (1, near), "medium": (near + 1, medium), "far": (medium + 1, longest)}


def load_queries(path: Path) -> FrozenQueries:
    """Read frozen queries; a file that was changed is refused."""
    return _FORMAT.read(path, _built)


def _built(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FrozenQueries:
    bounds: dict[str, Any] = {name: tuple(header[name]) for name in ("near", "medium", "far")}
    config = QueryConfig(per_group=header["per_group"], seed=header["seed"], **bounds)
    fields: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    return FrozenQueries(**fields, config=config, data_sha256=header["data"])
