from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from tests.quick import quick
from toptail.errors import InputError
from toptail.lab.tasks.episodes import Situation
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import load_module, make_env, package_randomness
from toptail.lab.walkers.experts import dribbling_inputs, expert_for, walking_inputs
from toptail.lab.walkers.walker import Walker, turn
from toptail_paper.walkers.bodies import BODIES, Body, body_named

STEPS = {"ant": 1000, "antball": 200, "humanoid": 450}
COUNT = 3


def same_start(env: Any, body: Body, i: int) -> None:
    """Reset the package's environment, and put simulation i where it is."""
    with package_randomness(np.random.SeedSequence(i)) as seed:
        env.reset(seed=seed)
    data = env.unwrapped.data
    body.reset(np.array([i]), data.qpos[None].copy(), data.qvel[None].copy())
    body.commands[i] = command(env)


def action_series(steps: int, size: int, rng: np.random.Generator) -> Any:
    """Held pushes with noise, so that bodies run, flip and hit the ball."""
    pushes = np.repeat(rng.uniform(-1, 1, (steps // 10 + 1, COUNT, size)), 10, axis=0)[:steps]
    return np.clip(pushes + rng.normal(0, 0.3, pushes.shape), -1, 1).astype(np.float32)


@pytest.mark.parametrize("name", quick(BODIES, ["antball"]))
def test_a_body_steps_like_the_packages_environment(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    envs = [online(name, monkeypatch) for _ in range(COUNT)]
    body = body_named(name)(COUNT, threads=2)
    for i, env in enumerate(envs):
        same_start(env, body, i)
    every = body.command_steps
    changes, age = 0, [0] * COUNT
    for t, actions in enumerate(
        action_series(STEPS[name], body.action_size, np.random.default_rng(1))
    ):
        commands = body.commands.copy()
        features, ended = body.step(actions)
        rewards = body.reward(features, commands)
        for i, env in enumerate(envs):
            with package_randomness(np.random.SeedSequence([i, t])):
                observation, reward, terminated, truncated, info = env.step(actions[i])
            data = env.unwrapped.data
            np.testing.assert_array_equal(body.qpos[i], data.qpos)
            np.testing.assert_array_equal(body.qvel[i], data.qvel)
            assert rewards[i] == pytest.approx(reward, abs=1e-9)
            assert bool(ended[i]) == terminated
            if every is not None and (t + 1) % every == 0:
                assert (command(env) != commands[i]).any()
                body.commands[i] = command(env)
                changes += 1
            # The humanoid's observation has matrix products, whose last bit a BLAS may choose.
            np.testing.assert_allclose(body.observations()[i], observation, rtol=0, atol=1e-9)
            assert body.succeeded()[i] == (info.get("success", 0.0) == 1.0)
            age[i] += 1
            assert truncated == (age[i] == body.episode_steps)
            if terminated:
                same_start(env, body, i)
                age[i] = 0
    assert changes == (0 if every is None else COUNT * (STEPS[name] // every))


@pytest.mark.parametrize("name", BODIES)
def test_a_start_is_the_packages(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = online(name, monkeypatch)
    for seed in range(5):
        env.reset(seed=seed)  # the package draws poses from this generator, places from another
        body = body_named(name)(1)
        body.start(np.array([0]), np.random.default_rng(seed))
        places = [0, 1, -7, -6] if name == "antball" else []
        kept = np.delete(np.arange(body.qpos.shape[1]), places)
        np.testing.assert_array_equal(body.qpos[0, kept], env.unwrapped.data.qpos[kept])
        np.testing.assert_array_equal(body.qvel[0], env.unwrapped.data.qvel)
        body.commands[0] = command(env)
        if not places:
            observation = np.append(env.unwrapped._get_obs(), command(env))
            np.testing.assert_allclose(body.observations()[0], observation, rtol=0, atol=1e-12)


def test_places_of_ant_ball_and_goal_fill_the_packages_squares() -> None:
    body = body_named("antball")(500)
    body.start(np.arange(500), np.random.default_rng(0))
    goals = body.qpos[:, -7:-5] + body.commands
    for places, side in ((body.qpos[:, :2], 1), (body.qpos[:, -7:-5], 2), (goals, 12)):
        assert 0.9 * side < np.abs(places).max() <= side
        assert np.abs(places.mean()) < 0.1 * side


@pytest.mark.parametrize("name", BODIES)
def test_rewards_follow_from_features_for_any_command(name: str) -> None:
    body = body_named(name)(4)
    rng = np.random.default_rng(0)
    body.start(np.arange(4), rng)
    for actions in rng.uniform(-1, 1, (30, 4, body.action_size)):
        before = body.commands.copy()
        features, _ = body.step(actions)
        np.testing.assert_allclose(body.commands, body.advance(before, features), atol=1e-12)
        on_device = body.reward(jnp.asarray(features), jnp.asarray(before), jnp)
        np.testing.assert_allclose(on_device, body.reward(features, before), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", BODIES)
def test_inputs_do_not_change_when_the_world_is_turned(name: str) -> None:
    body = body_named(name)(4)
    rng = np.random.default_rng(0)
    body.start(np.arange(4), rng)
    for actions in rng.uniform(-1, 1, (20, 4, body.action_size)):
        body.step(actions)
    expected = body.inputs(body.observations())
    on_device = body.inputs(jnp.asarray(body.observations(), jnp.float32), jnp)
    np.testing.assert_allclose(on_device, expected, rtol=1e-4, atol=1e-4)
    angle = 1.1
    turned_qpos, turned_qvel = body.qpos.copy(), body.qvel.copy()
    opposite = np.tile([np.cos(angle), -np.sin(angle)], (4, 1))  # `turn` undoes a command's angle
    half = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    for q, v in ((0, 0), (15, 14))[: 1 + (name == "antball")]:
        turned_qpos[:, q : q + 2] = turn(turned_qpos[:, q : q + 2], opposite, np)
        turned_qpos[:, q + 3 : q + 7] = [product(half, x) for x in turned_qpos[:, q + 3 : q + 7]]
        turned_qvel[:, v : v + 2] = turn(turned_qvel[:, v : v + 2], opposite, np)
    body.commands[:] = turn(body.commands, opposite, np)
    body.reset(np.arange(4), turned_qpos, turned_qvel)
    np.testing.assert_allclose(body.inputs(body.observations()), expected, atol=1e-6)
    assert expected.shape == (4, {"ant": 32, "antball": 42, "humanoid": 67}[name])


def product(a: Any, b: Any) -> Any:
    """Product of two quaternions."""
    w, v = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.append(w, v)


def test_training_starts_of_the_humanoid_stand_lie_and_fall() -> None:
    body = body_named("humanoid")(400)
    ids = np.arange(400)
    early = body.training_start(ids, np.random.default_rng(0), env_steps=0)
    standing = body.standing()
    assert 0.35 < (early == 50).mean() < 0.85
    assert standing[early == 50].mean() > 0.4
    late = body.training_start(ids, np.random.default_rng(0), env_steps=6_000_000)
    assert (late == 200).mean() > 0.75
    assert np.isfinite(body.observations()).all()


def test_an_unknown_body_is_refused() -> None:
    with pytest.raises(InputError, match="no body 'snake': expected one of ant, antball, humanoid"):
        body_named("snake")


def test_the_walker_sees_what_its_online_environment_showed() -> None:
    """The body's own observation of a state, against the one made of a maze's."""
    ant = BODIES["ant"](1)
    rng = np.random.default_rng(0)
    ant.start(np.array([0]), rng)
    shown: list[Any] = []
    env = make_env("antmaze-medium-v0")
    observation = np.concatenate([ant.qpos, ant.qvel], axis=1)
    situation = Situation(
        observation, ant.qpos[:, :2], np.zeros((1, 2)), ant.commands, Maze.of(env)
    )
    guide = expert_for(parse_name("antmaze-medium-navigate-v0"))
    assert guide is not None
    shown = [guide.actions(situation), Walker.shipped("ant")(ant.observations())]
    np.testing.assert_array_equal(*shown)


def test_players_see_what_their_online_environments_showed() -> None:
    ball = BODIES["antball"](3)
    ball.start(np.arange(3), np.random.default_rng(1))
    rows = np.concatenate([ball.qpos, ball.qvel], axis=1)
    goals = ball.qpos[:, -7:-5] + ball.commands
    maze = Maze.of(make_env("antsoccer-arena-v0"))
    situation = Situation(rows, ball.qpos[:, :2], goals, np.zeros((3, 2)), maze)
    np.testing.assert_allclose(dribbling_inputs(situation, goals), ball.observations())
    walking = walking_inputs(situation, goals)
    assert walking.shape == (3, BODIES["ant"].observation_size)
    np.testing.assert_array_equal(walking[:, :13], rows[:, 2:15])
    np.testing.assert_array_equal(walking[:, 13:27], rows[:, 22:36])
    np.testing.assert_allclose(np.linalg.norm(walking[:, 27:], axis=1), 1.0, atol=1e-5)


# The package's own online environments, one at a time, as what the bodies must equal.


def online(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make an online environment with the wrapper that the experts were trained in."""
    load_module("ogbench.online_locomotion")
    wrappers = load_module("ogbench.online_locomotion.wrappers")
    if name == "antball":
        # Its constructor renders a frame to place the camera; no display is needed without.
        rendering = load_module("gymnasium.envs.mujoco.mujoco_rendering")
        monkeypatch.setattr(rendering, "MujocoRenderer", _Blind)
        return make_env("online-antball-v0")
    if name == "humanoid":
        env = make_env("online-humanoid-v0")
        return wrappers.DMCHumanoidXYWrapper(env, resample_interval=200)
    return wrappers.GymXYWrapper(make_env("online-ant-v0"), resample_interval=100)


def command(env: Any) -> Any:
    """The direction, or the way from the ball to the goal."""
    if hasattr(env, "z"):
        return env.z
    return env.unwrapped.cur_goal_xy - env.unwrapped.data.qpos[-7:-5]


class _Blind:
    def __init__(self, *_args: Any, **_options: Any) -> None:
        camera = SimpleNamespace(lookat=[0, 0, 0], distance=0, elevation=0)
        self.viewer = SimpleNamespace(cam=camera)

    def render(self, mode: str | None) -> None: ...

    def close(self) -> None: ...
