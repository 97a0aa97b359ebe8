"""Episodes to a goal, stepped together, and how many of them succeed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.lab.environments.ogbench import MazeEnvironments
from toptail.lab.environments.rollout import BatchMaker, RolloutRules, RolloutStarts, roll_out
from toptail.lab.tasks.simulator import make_env, package_randomness
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.stats import wilson
from toptail_paper.selection.deployment.config import EpisodeConfig

Act: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Observations [n, o] of all episodes at one step, to actions [n, a]; called once per step."""

Share: TypeAlias = Callable[[float], None]
"""Called with the share of the work that is done."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """Where n episodes start, and where they should lead."""

    make: BatchMaker
    starts: RolloutStarts
    """State and goal of each episode, as the simulation has them."""
    goal: NDArray[Any]
    """[n] number of the evaluation goal, from 1."""
    limit: int
    """Steps after which an episode has failed."""

    def __len__(self) -> int:
        return len(self.goal)

    @property
    def goals(self) -> NDArray[np.float32]:
        """[n, o] the observation at the goal, which policies and critics are given."""
        assert self.starts.goals is not None
        return self.starts.goals.astype(np.float32)

    def take(self, at: IntArray) -> Episodes:
        """Some of the episodes, or some several times."""
        assert self.starts.goals is not None
        starts = RolloutStarts(
            self.starts.trajectories, self.starts.rows[at], self.starts.goals[at]
        )
        return Episodes(self.make, starts, self.goal[at], self.limit)


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
                observed, info = env.reset(seed=seed, options={"task_id": number})
            state = (inner.data.qpos.copy(), inner.data.qvel.copy())
            rows.append((number, observed, *state, info["goal"]))
    goal, observed, qpos, qvel, goals = (np.stack(column) for column in zip(*rows, strict=True))
    limit = config.limit if config.limit is not None else int(env.spec.max_episode_steps)
    still = np.zeros((len(goal), *env.action_space.shape), np.float32)
    env.close()
    resets = Trajectories(
        observed, still, np.ones(len(goal), dtype=bool), qpos, qvel, source=environment
    )
    starts = RolloutStarts(resets, np.arange(len(goal)), goals)
    return Episodes(cache(partial(MazeEnvironments, environment)), starts, goal, limit)


def reset_seed(seed: int, goal: int, episode: int) -> np.random.SeedSequence:
    """What the reset of one episode draws from."""
    return np.random.SeedSequence([seed, goal, episode])


def follow(episodes: Episodes, act: Act, tick: Share | None = None) -> IntArray:
    """Step all episodes with one policy until the last has reached its goal or the limit.

    All of them are stepped together. An episode that has reached its goal is still given actions,
    which are not taken.

    Returns
    -------
    [n] the step, from 1, after which the goal was first reached; 0 where it never was.
    """
    every = np.zeros((len(episodes), episodes.goals.shape[1]), np.float32)

    def policy(walks: IntArray, taken: IntArray, seen: NDArray[np.float32]) -> NDArray[np.float32]:
        every[walks] = seen
        if tick is not None:
            tick(taken[0] / episodes.limit)
        return act(every)[walks]

    rules = RolloutRules(episodes.limit)
    return roll_out(episodes.make, episodes.starts, policy, rules, slots=len(episodes)).reached


def success(goal: NDArray[Any], reached: IntArray, limit: int) -> dict[str, Any]:
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
