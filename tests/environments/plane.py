"""A point on a plane: a task of one's own, small enough to be walked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.environments.protocol import StoredRow
from toptail.lab.tasks.files import save_file
from toptail.lab.tasks.trajectories import FloatArray, Trajectories

STEP = 0.1
NEAR = 0.15

FILE = """
import numpy as np

class Plane:
    def restore(self, row):
        self.at = row.observation.astype(np.float64)
        return self.at
    def step(self, action):
        self.at = self.at + 0.1 * np.asarray(action, np.float64)
        return self.at, -float(np.linalg.norm(self.at)), False

class GoalPlane(Plane):
    def reached(self, goal):
        return np.linalg.norm(self.at - goal) <= 0.15

class ActingPlane(Plane):
    def act(self, observations, goals):
        assert goals is None
        return -observations

class Planes:
    def __init__(self, size):
        self.at = np.zeros((size, 2))
    def restore(self, slots, rows):
        self.at[slots] = np.stack([row.observation for row in rows])
    def observations(self):
        return self.at
    def step(self, slots, actions):
        self.at[slots] += 0.1 * actions.astype(np.float64)
        return -np.linalg.norm(self.at[slots], axis=1), np.zeros(len(slots), bool)

def batch(size):
    return Planes(size)

class Lost(Plane):
    def restore(self, row):
        return super().restore(row) + 1

class Broken(Plane):
    def step(self, action):
        raise RuntimeError("out of order")

class Deaf:
    def restore(self, row):
        return row.observation

def inward(states, actions):
    return -np.linalg.norm(states + 0.1 * actions, axis=1)

def outward(states, actions):
    return -inward(states, actions)

def towards(states, actions, goals):
    return -np.linalg.norm(states + 0.1 * actions - goals, axis=1)

def away(states, actions, goals):
    return -towards(states, actions, goals)
"""


class Plane:
    """Restores from the observation, pays minus the distance from the middle, ends far out."""

    def restore(self, row: StoredRow) -> NDArray[np.float64]:
        self.at = row.observation.astype(np.float64)
        return self.at

    def step(self, action: FloatArray) -> tuple[NDArray[np.float64], float, bool]:
        self.at = self.at + STEP * action.astype(np.float64)
        far = float(np.linalg.norm(self.at))
        return self.at, -far, far > 1.6


class GoalPlane(Plane):
    """The same with goals."""

    def reached(self, goal: FloatArray) -> bool:
        return bool(np.linalg.norm(self.at - goal) <= NEAR)


def records(count: int, rows: int, seed: int) -> Trajectories:
    """Walks by random actions, which drift in a direction of their own."""
    rng = np.random.default_rng(seed)
    drift = rng.normal(0, 0.4, (count, 1, 2))
    actions = np.clip(drift + rng.normal(0, 0.5, (count, rows, 2)), -1, 1).astype(np.float32)
    moved = np.cumsum(STEP * actions[:, :-1], axis=1)
    start = rng.uniform(-1, 1, (count, 1, 2))
    seen = np.concatenate([start, start + moved], axis=1).astype(np.float32)
    ends = np.tile(np.arange(rows) == rows - 1, count)
    return Trajectories(seen.reshape(-1, 2), actions.reshape(-1, 2), ends)


def write_plane(folder: Path, rows: int = 12) -> Path:
    """Data, environments and critics; returns the path of the training file."""
    save_file(folder / "plane.npz", records(60, rows, 0))
    save_file(folder / "plane-val.npz", records(60, rows, 1))
    (folder / "mine.py").write_text(FILE)
    return folder / "plane.npz"


def small(**changes: Any) -> dict[str, Any]:
    """Sizes of a check that takes a second."""
    sizes = {"per_group": 60, "pool_size": 8, "near": 20, "starts": 60, "horizon": 8}
    return {**sizes, "follow_k": (1, 8), "resamples": 200, **changes}
