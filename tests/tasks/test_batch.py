from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.tasks.simulator import MazeBatch, make_env, package_randomness

SIZES = {
    "pointmaze-medium-v0": 400,
    "pointmaze-large-v0": 200,
    "antmaze-medium-v0": 25,
    "humanoidmaze-medium-v0": 25,
    "antsoccer-arena-v0": 25,
}


def environments(name: str, count: int) -> list[Any]:
    envs = [make_env(name, terminate_at_goal=False, max_episode_steps=10_000) for _ in range(count)]
    for i, env in enumerate(envs):
        with package_randomness(np.random.SeedSequence(i)) as seed:
            env.action_space.seed(seed)
            env.reset(seed=seed)
    return envs


def state(envs: list[Any], name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.stack([getattr(env.unwrapped.data, name) for env in envs])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", SIZES)
def test_a_batch_steps_bit_for_bit_like_the_environments(name: str, threads: int) -> None:
    envs = environments(name, 3)
    batch = MazeBatch(name, 3, threads)
    batch.restore(state(envs, "qpos"), state(envs, "qvel"))
    rng = np.random.default_rng(0)
    touched = 0
    for t in range(SIZES[name]):
        # Steady pushes for a while, so that the points run into walls and along them.
        if t % 40 == 0:
            push = rng.uniform(-1, 1, (3, batch.action_size))
        noise = rng.normal(0, 0.3, push.shape)
        actions = np.clip(push + noise, -1, 1).astype(np.float32)
        expected = np.stack(
            [env.step(action)[0] for env, action in zip(envs, actions, strict=True)]
        )
        batch.step(actions)
        np.testing.assert_array_equal(batch.qpos, state(envs, "qpos"))
        np.testing.assert_array_equal(batch.qvel, state(envs, "qvel"))
        # The humanoid's observation has matrix products, whose last bit a BLAS may choose.
        np.testing.assert_allclose(batch.observations(), expected, rtol=0, atol=1e-12)
        touched += int(np.any(batch.qvel != 0, axis=1).sum())
    if name.startswith("pointmaze"):
        assert touched > SIZES[name] // 10, "the points never met a wall"


def test_goal_seekers_are_the_ball_in_soccer_and_the_agent_in_mazes() -> None:
    (soccer,) = environments("antsoccer-arena-v0", 1)
    batch = MazeBatch("antsoccer-arena-v0", 1)
    batch.restore(state([soccer], "qpos"), state([soccer], "qvel"))
    agent, ball = soccer.unwrapped.get_agent_ball_xy()
    np.testing.assert_array_equal(batch.positions()[0], agent)
    np.testing.assert_array_equal(batch.goal_seekers()[0], ball)


def test_a_restored_batch_forgets_what_it_did() -> None:
    batch = MazeBatch("antmaze-medium-v0", 2)
    (env,) = environments("antmaze-medium-v0", 1)
    qpos, qvel = (np.tile(state([env], name), (2, 1)) for name in ("qpos", "qvel"))
    actions = np.random.default_rng(0).uniform(-1, 1, (10, 2, 8)).astype(np.float32)
    actions[:, 1] = actions[:, 0]
    seen = []
    for _ in range(2):
        batch.restore(qpos, qvel)
        for action in actions:
            batch.step(action)
        seen.append(batch.observations())
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0][0], seen[0][1])


def test_some_are_restored_while_the_others_go_on() -> None:
    envs = environments("antmaze-medium-v0", 3)
    qpos, qvel = state(envs, "qpos"), state(envs, "qvel")
    actions = np.random.default_rng(0).uniform(-1, 1, (10, 3, 8)).astype(np.float32)
    mixed, going_on, fresh = (MazeBatch("antmaze-medium-v0", 3) for _ in range(3))
    for batch in (mixed, going_on):
        batch.restore(qpos, qvel)
        for action in actions:
            batch.step(action)
    again = np.array([0, 2])
    mixed.restore(qpos[again], qvel[again], again)
    fresh.restore(qpos, qvel)
    for action in actions:
        for batch in (mixed, going_on, fresh):
            batch.step(action)
        np.testing.assert_array_equal(mixed.observations()[again], fresh.observations()[again])
        np.testing.assert_array_equal(mixed.observations()[1], going_on.observations()[1])
    assert (going_on.observations()[again] != fresh.observations()[again]).any()


@pytest.mark.parametrize("name", ["pointmaze-teleport-v0", "cube-single-v0"])
def test_what_cannot_be_batched_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be stepped in batches"):
        MazeBatch(name, 2)
