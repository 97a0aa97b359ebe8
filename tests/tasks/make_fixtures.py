"""Collect the small samples in ``tests/tasks/data``: python -m tests.tasks.make_fixtures.

Ants, humanoids and soccer players take random actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.tasks.conftest import DATA, SAMPLES
from toptail.lab.tasks.collect import Collection, collect
from toptail.lab.tasks.episodes import Situation
from toptail.lab.tasks.files import record_path
from toptail.lab.tasks.names import parse_name

EPISODES, VAL_EPISODES, ROWS, SEED = 4, 2, 61, 0


class RandomExpert:
    """Uniformly random actions, each from its episode's own generator."""

    def __init__(self, action_size: int) -> None:
        self._action_size = action_size
        self._rngs: Sequence[np.random.Generator] = ()

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        self._rngs = rngs

    def actions(self, situation: Situation) -> NDArray[Any]:
        del situation
        return np.stack([rng.uniform(-1, 1, self._action_size) for rng in self._rngs])

    def describe(self) -> str:
        return "uniformly random actions"


def collection(name: str) -> Collection:
    task = parse_name(name)
    expert = None
    if task.is_maze and task.family != "pointmaze":
        assert task.dimensions is not None
        expert = RandomExpert(task.dimensions[1])
    return Collection(name, EPISODES, VAL_EPISODES, ROWS, SEED, expert)


def main() -> None:
    for name in SAMPLES:
        for path in DATA.glob(f"{name}*"):
            path.unlink()
        paths = collect(collection(name), DATA / f"{name}.npz")
        for path in paths.values():
            record_path(path).unlink()


if __name__ == "__main__":
    main()
