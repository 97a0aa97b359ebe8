from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from conftest import is_large
from toptail.lab.tasks.names import TaskName
from toptail.lab.tasks.simulator import Simulator
from toptail.lab.tasks.trajectories import IntArray, Trajectories

DATA = Path(__file__).parent / "data"
SAMPLES = sorted(path.stem for path in DATA.glob("*-v0.npz"))
"""Data sets of which there is a small sample."""


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests never look at the person's own data, nor at a mirror they have set."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TOPTAIL_DATA", raising=False)
    monkeypatch.delenv("TOPTAIL_MIRRORS", raising=False)


@pytest.fixture(autouse=True)
def environments_given_back() -> Iterator[None]:
    """Free what a test simulated: environments are cyclic, and a quarter of a gigabyte each."""
    yield
    if is_large():
        gc.collect()


def hand_made(lengths: tuple[int, ...] = (4, 2, 5), columns: int = 2) -> Trajectories:
    """Trajectories whose observation is (row, trajectory), so that every mistake shows."""
    rows = sum(lengths)
    terminals = np.zeros(rows, dtype=bool)
    terminals[np.cumsum(lengths) - 1] = True
    trajectory = np.repeat(np.arange(len(lengths)), lengths)
    observations = np.stack([np.arange(rows), trajectory], axis=1).astype(np.float32)
    actions = np.linspace(-1, 1, rows * columns, dtype=np.float32).reshape(rows, columns)
    return Trajectories(observations, actions, terminals, qpos=observations, qvel=observations)


def restore_errors(
    task: TaskName, trajectories: Trajectories, rows: IntArray
) -> NDArray[np.float64]:
    """Restore rows, take their recorded actions, and compare with the recorded next rows.

    For each row the largest of |o − o*| / max(1, |o*|) over the next observation's numbers, where
    o is simulated and o* is recorded.
    """
    simulator = Simulator(task)
    errors = np.empty(len(rows))
    for i, row in enumerate(rows):
        simulator.restore(trajectories, int(row))
        found = simulator.step(trajectories.actions[row])
        recorded = trajectories.observations[row + 1].astype(np.float64)
        errors[i] = np.max(np.abs(found - recorded) / np.maximum(1.0, np.abs(recorded)))
    return errors
