"""The evaluation episodes of a maze, all stepped together, and how many of them succeed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.lab.studies.selection.deployment.config import EpisodeConfig
from toptail.lab.tasks.batch import MazeBatch
from toptail.lab.tasks.simulator import make_env, package_randomness
from toptail.lab.tasks.trajectories import IntArray
from toptail.stats import wilson

Act: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Observations [n, o] of all episodes at one step, to actions [n, a]; called once per step."""

Share: TypeAlias = Callable[[float], None]
"""Told the share of the work that is done."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """Where n episodes start, and where they should lead."""

    environment: str
    """Gymnasium id."""

    limit: int
    """Steps after which an episode has failed."""

    goal: IntArray
    """[n] number of the evaluation goal, from 1."""

    qpos: NDArray[np.float64]
    """[n, nq] positions at the start."""

    qvel: NDArray[np.float64]
    """[n, nv] velocities at the start."""

    goals: NDArray[np.float32]
    """[n, o] the observation at the goal, which policies and critics are given."""

    targets: NDArray[np.float64]
    """[n, 2] the position that counts as the goal."""

    def __len__(self) -> int:
        return len(self.goal)

    def repeated(self, times: int) -> Episodes:
        """All episodes, ``times`` times one after another."""

        def tile(array: NDArray[Any]) -> NDArray[Any]:
            return np.tile(array, (times, *(1,) * (array.ndim - 1)))

        arrays = (self.goal, self.qpos, self.qvel, self.goals, self.targets)
        return Episodes(self.environment, self.limit, *(tile(array) for array in arrays))


def evaluation_episodes(environment: str, config: EpisodeConfig) -> Episodes:
    """Reset the environment to each of its evaluation goals, each episode from its own seed.

    Start and goal get the environment's own noise. Episode i of goal j is the same whatever
    other episodes there are.
    """
    env = make_env(environment, terminate_at_goal=False)
    inner = env.unwrapped
    numbers = range(1, inner.num_tasks + 1)
    rows: list[tuple[Any, ...]] = []
    for number in numbers:
        for episode in range(config.per_goal):
            with package_randomness(reset_seed(config.seed, number, episode)) as seed:
                env.action_space.seed(seed)
                _, info = env.reset(seed=seed, options={"task_id": number})
            state = (inner.data.qpos.copy(), inner.data.qvel.copy())
            rows.append((number, *state, info["goal"], np.array(inner.cur_goal_xy)))
    goal, qpos, qvel, goals, targets = (np.stack(column) for column in zip(*rows, strict=True))
    limit = config.limit if config.limit is not None else int(env.spec.max_episode_steps)
    env.close()
    return Episodes(environment, limit, goal, qpos, qvel, goals.astype(np.float32), targets)


def reset_seed(seed: int, goal: int, episode: int) -> np.random.SeedSequence:
    """What the reset of one episode draws from."""
    return np.random.SeedSequence([seed, goal, episode])


def follow(episodes: Episodes, act: Act, threads: int = 0, tick: Share | None = None) -> IntArray:
    """Step all episodes with one policy until the last has reached its goal or the limit.

    An episode that has reached its goal is still given actions, which are not taken. On 0 threads
    the simulator takes every core.

    Returns
    -------
    [n] the step, from 1, after which the goal was first within the environment's tolerance; 0
    where it never was.
    """
    batch = MazeBatch(episodes.environment, len(episodes), threads)
    batch.restore(episodes.qpos, episodes.qvel)
    reached = np.zeros(len(episodes), dtype=np.int64)
    for step in range(1, episodes.limit + 1):
        going = np.flatnonzero(reached == 0)
        batch.step(act(batch.observations().astype(np.float32)), going)
        away = np.linalg.norm(batch.goal_seekers() - episodes.targets, axis=1)
        reached[(reached == 0) & (away <= batch.goal_tolerance)] = step
        if tick is not None:
            tick(step / episodes.limit)
        if reached.all():
            break
    return reached


def success(goal: IntArray, reached: IntArray, limit: int) -> dict[str, Any]:
    """Success over all episodes and by goal, with 95 % Wilson intervals.

    The interval over all goals treats them as draws of one rate. The episodes are spread evenly
    over fixed goals, which can only make the true interval narrower. ``mean_length`` counts a
    failed episode, whose ``reached`` is 0, with the limit.
    """

    def count(own: IntArray) -> dict[str, Any]:
        hits, n = int(np.count_nonzero(own)), len(own)
        low, high = wilson(hits, n)
        return {
            "successes": hits,
            "episodes": n,
            "rate": hits / n,
            "low": float(low),
            "high": float(high),
            "mean_length": float(np.where(own > 0, own, limit).mean()),
        }

    by_goal = {str(number): count(reached[goal == number]) for number in np.unique(goal)}
    return {**count(reached), "goals": by_goal}
