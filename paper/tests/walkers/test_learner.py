from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.quick import quick
from toptail.lab.walkers.walker import Walker
from toptail_paper.walkers.bodies import BODIES
from toptail_paper.walkers.learner import (
    SAC,
    Normalizer,
    deviation,
    draw_action,
    normalize,
    policy,
    spread_over,
    support,
)
from toptail_paper.walkers.settings import DEFAULTS, ExpertSettings, small

TINY = {
    name: replace(
        small(name), environments=6, replay=6 * 40, batch=32, actor=(16, 16), critic=(32,), atoms=11
    )
    for name in BODIES
}


def fresh(learner: SAC) -> Any:
    """A fresh state, drawn by one compiled program."""
    return jax.jit(lambda: learner.init(0))()


def filled(learner: SAC, steps: int) -> tuple[Any, Any]:
    """A replay of random steps, and the same rows as a plain array."""
    body, rng = learner.body, np.random.default_rng(0)
    replay, rows = learner.empty(), []
    n = learner.settings.environments
    for _ in range(steps):
        observations = rng.normal(size=(n, body.observation_size))
        actions = rng.uniform(-1, 1, (n, body.action_size))
        ends = np.stack([rng.uniform(size=n) < 0.2, np.zeros(n)], axis=1)
        ends[:, 1] = (ends[:, 0] == 0) & (rng.uniform(size=n) < 0.2)
        outcome = rng.normal(size=(n, body.observation_size + 3))
        parts = (observations, actions, np.concatenate([outcome, ends], axis=1))
        replay = learner.insert(replay, *(jnp.asarray(part, jnp.float32) for part in parts))
        rows.append(np.concatenate(parts, axis=1).astype(np.float32))
    return replay, np.stack(rows)


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("relabelled", [0.0, 1.0])
def test_a_batch_holds_the_returns_of_a_slow_walk(name: str, relabelled: float) -> None:
    body, settings = BODIES[name], replace(TINY[name], relabelled=relabelled)
    learner = SAC(body, settings)
    replay, rows = filled(learner, 55)  # more than there are slots
    size = body.inputs(np.ones((1, body.observation_size))).shape[1]
    plain = Normalizer(jnp.asarray(1.0), jnp.zeros(size), jnp.ones(size) - 1e-4)
    batch = jax.device_get(learner.draw(replay, plain, jax.random.key(3)))
    seen, moved = body.observation_size, body.action_size
    kept = rows[-learner.slots :]
    flat = kept.reshape(-1, kept.shape[-1])
    turned = 0
    for i in range(settings.batch):
        (place,) = np.flatnonzero((flat[:, seen : seen + moved] == batch.actions[i]).all(axis=1))
        t, env = divmod(place, settings.environments)
        command = flat[place, seen - 2 : seen][None].astype(np.float64)
        if relabelled:
            command = found_command(body, flat[place, :seen], batch.inputs[i])
            turned += int(not np.allclose(command, flat[place, seen - 2 : seen], atol=1e-2))
        expected, weight = 0.0, 1.0
        for k in range(settings.returns):
            row = kept[t + k, env]
            after, features = row[seen + moved : 2 * seen + moved], row[2 * seen + moved :][:3]
            expected += weight * float(body.reward(features[None].astype(float), command)[0])
            command = body.advance(command, features[None])
            weight *= settings.discount
            if row[-2] or row[-1]:
                break
        discount = 0.0 if row[-2] else weight
        following = np.append(after[:-2], command[0])[None]
        assert batch.rewards[i] == pytest.approx(expected, rel=1e-3, abs=1e-2)
        assert batch.discounts[i] == pytest.approx(discount, rel=1e-5)
        np.testing.assert_allclose(
            batch.following[i], np.clip(body.inputs(following)[0], -10, 10), atol=2e-2
        )
    assert turned == 0 if not relabelled else turned > settings.batch // 2


def found_command(body: Any, observation: Any, inputs: Any) -> Any:
    """Find the angle of the command under which a stored observation looks like the inputs."""
    length = np.linalg.norm(observation[-2:])

    def under(angles: Any) -> tuple[Any, Any]:
        commands = length * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        rows = np.concatenate([np.tile(observation[:-2], (len(angles), 1)), commands], axis=1)
        seen = np.clip(body.inputs(rows.astype(np.float64)), -10, 10)
        return commands, np.abs(seen - inputs).sum(axis=1)

    middle, width = np.pi, np.pi
    for _ in range(6):
        angles = middle + np.linspace(-width, width, 200)
        commands, off = under(angles)
        middle, width = angles[off.argmin()], width / 40
    return commands[[off.argmin()]]


def test_values_are_given_to_their_neighbours_and_keep_their_mean() -> None:
    points = support(ExpertSettings())
    assert points[0] == pytest.approx(-100, rel=1e-4)
    assert points[-1] == pytest.approx(1000, rel=1e-4)
    rng = np.random.default_rng(0)
    values = rng.uniform(-100, 1000, (5, 7))
    weights = rng.dirichlet(np.ones(7), 5)
    shares = np.asarray(spread_over(points, jnp.asarray(values), jnp.asarray(weights)))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(shares @ points, (values * weights).sum(axis=1), rtol=1e-3)
    single = np.asarray(spread_over(points, jnp.asarray([[5000.0], [-5000.0]]), jnp.ones((2, 1))))
    np.testing.assert_allclose(single[:, [-1, 0]], np.eye(2), atol=1e-6)
    assert ((shares > 1e-6).sum(axis=1) <= 14).all()


def test_log_probabilities_are_those_of_the_density() -> None:
    body = BODIES["ant"]
    state = fresh(SAC(body, TINY["ant"]))
    inputs = jax.random.normal(jax.random.key(0), (50, 32))
    action, log_prob = jax.jit(draw_action, static_argnums=3)(
        state.actor, inputs, jax.random.key(1), jnp.float32
    )
    mean, spread = jax.jit(policy, static_argnums=2)(state.actor, inputs, jnp.float32)
    raw = np.arctanh(np.clip(np.asarray(action, np.float64), -1 + 1e-9, 1 - 1e-9))
    z = (raw - mean) / spread
    gauss = -0.5 * z**2 - np.log(spread) - 0.5 * np.log(2 * np.pi)
    inside = np.abs(np.asarray(action)).max(axis=1) < 0.999
    expected = (gauss - np.log(1 - np.asarray(action, np.float64) ** 2)).sum(axis=1)
    np.testing.assert_allclose(log_prob[inside], expected[inside], rtol=1e-2, atol=1e-2)
    assert inside.sum() > 20


def test_updates_compile_once_and_change_everything() -> None:
    # The ball's commands move with the body; what else differs between bodies is in a batch.
    learner = SAC(BODIES["antball"], TINY["antball"])
    replay, _ = filled(learner, 10)
    state = fresh(learner)
    before = jax.device_get((state.actor, state.critic, state.target, state.log_temperature))
    for step in range(3):
        observations = replay.rows[step, :, : learner.body.observation_size]
        actions, state = learner.act(state, observations, jnp.asarray(step == 0))
        assert actions.shape == (6, learner.body.action_size)
        assert np.abs(actions).max() <= 1
        state, scalars = learner.update(state, replay)
    assert learner.update._cache_size() == 1  # type: ignore[attr-defined]
    assert all(np.isfinite(value) for value in scalars.values())
    after = jax.device_get((state.actor, state.critic, state.target, state.log_temperature))
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        assert (a != b).any()


def test_running_moments_are_those_of_all_inputs() -> None:
    learner = SAC(BODIES["humanoid"], TINY["humanoid"])
    state = fresh(learner)
    rng = np.random.default_rng(0)
    seen = []
    for scale in range(1, 60):
        observations = np.float32(rng.normal(scale, 2, (6, 69)))
        seen.append(BODIES["humanoid"].inputs(observations))
        _, state = learner.act(state, jnp.asarray(observations), jnp.asarray(False))
    everything = np.concatenate(seen)
    # The first moments count as one observation at 0.
    np.testing.assert_allclose(state.normalizer.mean, everything.mean(axis=0), rtol=0.05, atol=0.5)
    np.testing.assert_allclose(
        state.normalizer.variance, everything.var(axis=0), rtol=0.1, atol=0.5
    )


@pytest.mark.parametrize("name", quick(BODIES, ["antball"]))
def test_the_stored_actor_acts_like_the_learner(name: str, tmp_path: Any) -> None:
    learner = SAC(BODIES[name], replace(TINY[name], actor=DEFAULTS[name].actor))
    state = fresh(learner)
    state = state._replace(actor=jax.tree.map(lambda x: 3 * x, state.actor))
    rng = np.random.default_rng(0)
    observations = rng.normal(0, 1, (20, BODIES[name].observation_size)).astype(np.float32)
    _, state = learner.act(
        state, jnp.asarray(np.float32(rng.normal(0, 2, observations.shape))), jnp.asarray(True)
    )
    layers = jax.device_get(state.actor)
    actor = Walker(
        name,
        np.asarray(state.normalizer.mean),
        np.asarray(deviation(state.normalizer)),
        tuple(layer["kernel"] for layer in layers),
        tuple(layer["bias"] for layer in layers),
    )
    actor.save(tmp_path / "actor.safetensors")
    inputs = learner.body.inputs(jnp.asarray(observations), jnp)
    mean, _ = policy(state.actor, normalize(state.normalizer, inputs), jnp.float32)
    stored = Walker.load(tmp_path / "actor.safetensors")
    np.testing.assert_allclose(
        stored(observations), np.tanh(np.asarray(mean)), rtol=1e-3, atol=1e-4
    )
    assert (tmp_path / "actor.safetensors").stat().st_size < 2_000_000
    from safetensors.numpy import load_file

    same = load_file(tmp_path / "actor.safetensors")
    np.testing.assert_array_equal(same["0/kernel"], actor.kernels[0])
