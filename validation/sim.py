"""``python -m validation sim``: environment steps per second, batched against one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.table import Row

ENVIRONMENTS = (
    "pointmaze-medium-v0",
    "antmaze-medium-v0",
    "humanoidmaze-medium-v0",
    "antsoccer-arena-v0",
)


def bench_sim(
    environments: tuple[str, ...] = ENVIRONMENTS,
    size: int = 256,
    rounds: int = 9,
    seconds: float = 0.4,
) -> Iterator[Row]:
    """Rows of the benchmark table, each as soon as it is measured.

    Both sides take uniformly random actions in the same maze: the package's gymnasium
    environment step by step on one core, and a batch of ``size`` copies on every core. They
    take turns, and medians over the rounds are reported, so that other work on the machine
    weighs on both alike.
    """
    from toptail.lab.tasks.simulator import available_cores

    threads = available_cores()
    for environment in environments:
        sides = (_one_by_one(environment), _batched(environment, size, threads))
        speeds = np.array([[_speed(side, seconds) for side in sides] for _ in range(rounds)])
        slow, fast = np.median(speeds, axis=0)
        ratio = np.median(speeds[:, 1] / speeds[:, 0])
        yield Row(
            f"{environment}, {size} copies on {threads} threads",
            f"{fast:,.0f} steps/s, {ratio:.1f} times as fast",
            f"{slow:,.0f} steps/s one by one",
        )


def _speed(steps: Callable[[], int], seconds: float) -> float:
    """Call a function that returns the steps it took until the time is over; steps per second."""
    taken, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        taken += steps()
    return taken / elapsed


def _one_by_one(environment: str) -> Callable[[], int]:
    """Return a function that takes some steps of the package's own environment."""
    from toptail.lab.tasks.simulator import make_env, package_randomness

    env = make_env(environment, terminate_at_goal=False, max_episode_steps=10**9)
    with package_randomness(np.random.SeedSequence(0)) as seed:
        env.reset(seed=seed)
    rng, columns = np.random.default_rng(0), env.action_space.shape[0]

    def steps(count: int = 100) -> int:
        for action in _actions(rng, count, columns):
            env.step(action)
        return count

    return steps


def _batched(environment: str, size: int, threads: int) -> Callable[[], int]:
    """Return a function that takes some steps of a batch, observations included."""
    from toptail.lab.tasks.simulator import MazeBatch, package_randomness

    batch = MazeBatch(environment, size, threads)
    with package_randomness(np.random.SeedSequence(0)) as seed:
        batch.env.reset(seed=seed)
    data = batch.env.unwrapped.data
    batch.restore(np.tile(data.qpos, (size, 1)), np.tile(data.qvel, (size, 1)))
    rng = np.random.default_rng(0)

    def steps(count: int = 10) -> int:
        for action in _actions(rng, count, size, batch.action_size):
            batch.step(action)
            batch.observations()
        return count * size

    return steps


def _actions(rng: np.random.Generator, *shape: int) -> NDArray[Any]:
    """Draw actions; always new ones, since repeated ones would press the agents to the walls."""
    return rng.uniform(-1, 1, shape).astype(np.float32)
