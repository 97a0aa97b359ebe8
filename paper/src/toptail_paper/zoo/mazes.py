"""Mazes with the policy that collected their data as their own, for ``toptail check --env``.

    toptail check --task antmaze-medium-navigate-v0 --judge rollouts --env mazes.py:antmaze ...

After a judged action this policy goes on to the goal, with the noise of the data.
"""

from __future__ import annotations

import numpy as np

from toptail.lab.environments.ogbench import MazeEnvironments
from toptail.lab.tasks.names import parse_name, published_recipe
from toptail.lab.tasks.trajectories import FloatArray
from toptail_paper.selection.expert_rollouts import expert_continuation
from toptail_paper.study.main_settings import main_settings


class CollectedMaze(MazeEnvironments):
    """A maze of the main settings whose policy is its collector, with the noise of its data.

    The noise is one stream over all calls, so that candidates of a query do not share theirs.
    """

    def __init__(self, task: str, size: int) -> None:
        data = main_settings(task).data
        name = parse_name(data)
        super().__init__(name.environment, size)
        self._policy, _ = expert_continuation(data)
        recipe = published_recipe(name)
        assert recipe is not None  # known of every maze
        self._noise, self._rng = recipe.noise, np.random.default_rng(0)

    def act(self, observed: FloatArray, goals: FloatArray) -> FloatArray:
        """Actions ``[m, a]`` towards goals, within ±1."""
        keys = np.zeros((len(observed), 3), dtype=np.int64)  # the policy itself draws nothing
        actions = self._policy(keys, observed, goals)
        noisy = actions + self._rng.normal(0.0, self._noise, actions.shape)
        return np.clip(noisy, -1.0, 1.0).astype(np.float32)


def pointmaze(size: int) -> CollectedMaze:
    return CollectedMaze("PointMaze", size)


def antmaze(size: int) -> CollectedMaze:
    return CollectedMaze("AntMaze", size)


def humanoidmaze(size: int) -> CollectedMaze:
    return CollectedMaze("HumanoidMaze", size)


def antsoccer(size: int) -> CollectedMaze:
    return CollectedMaze("AntSoccer", size)
