"""Noise schedule, noise predictor and loss against NumPy, and what the trainer asks of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.proposals.mixture import Floats
from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Params, parameter_count
from toptail.lab.proposals.denoiser import Diffusion, Schedule
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.loop import TrainConfig, init_state, train_step

N = 20_000
SCHEDULE = Schedule(levels=20)


def test_levels_go_from_the_action_to_almost_pure_noise() -> None:
    angle = SCHEDULE.angle
    assert angle.shape == (21,)
    assert angle[0] == 0
    assert (np.diff(angle) > 0).all()
    np.testing.assert_allclose(np.cos(angle[-1]), 0.05)
    np.testing.assert_allclose(angle[10], angle[20] / 4)  # half the time, a quarter of the angle


def test_the_number_of_levels_only_cuts_the_same_process_finer() -> None:
    np.testing.assert_allclose(Schedule(40).angle[::2], SCHEDULE.angle, rtol=1e-12)


def test_marginals_are_those_of_the_steps() -> None:
    """x_t = sqrt(1 - beta_t) x_{t-1} + sqrt(beta_t) z has the closed form's mean and variance."""
    rng = np.random.default_rng(0)
    action = np.array([0.8, -0.3])
    signal = np.cos(SCHEDULE.angle) ** 2
    beta = 1 - signal[1:] / signal[:-1]
    x = np.tile(action, (N, 1))
    for level in range(1, 21):
        x = np.sqrt(1 - beta[level - 1]) * x + np.sqrt(beta[level - 1]) * rng.normal(size=x.shape)
        closed = SCHEDULE.noised(
            jnp.asarray(action, jnp.float32),
            jnp.full(N, level),
            jax.random.normal(jax.random.key(level), (N, 2)),
        )
        variance = 1 - signal[level]
        for sample in (x, np.asarray(closed)):
            # Five standard errors of a mean and of a normal sample's variance.
            off = np.abs(sample.mean(axis=0) - np.sqrt(signal[level]) * action)
            assert (off < 5 * np.sqrt(variance / N)).all()
            assert (np.abs(sample.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / N)).all()


def test_noised_broadcasts_levels_over_rows() -> None:
    actions, noise = jnp.ones((3, 1, 2)), jnp.ones((5, 2))
    level = jnp.array([[0], [10], [20]])
    x = SCHEDULE.noised(actions, level, noise)
    angle = SCHEDULE.angle[np.array([0, 10, 20])]
    expected = np.broadcast_to((np.cos(angle) + np.sin(angle))[:, None, None], (3, 5, 2))
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"levels": 0}, "at least 1"), ({"left": 0.0}, "between 0"), ({"left": 1.0}, "between 0")],
)
def test_impossible_schedules_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schedule(**settings)  # type: ignore[arg-type]


MODEL = Diffusion(hidden=(16, 16), levels=10, time_dim=4, ema_decay=0.9)
STATE, ACTION, GOAL = 3, 2, 4
LOSS = jax.jit(MODEL.loss)
GRADIENT = jax.jit(jax.value_and_grad(MODEL.loss, has_aux=True))


def params_of(model: Diffusion = MODEL, seed: int = 0) -> Params:
    """Parameters that are nowhere 0 or 1, unlike fresh ones."""
    init = jax.jit(model.init, static_argnums=(1, 2, 3))
    rng = np.random.default_rng(seed)
    moved: Params = jax.tree.map(
        lambda leaf: np.float32(leaf + 0.1 * rng.normal(size=leaf.shape)),
        init(jax.random.key(seed), STATE, ACTION, GOAL),
    )
    return moved


def batch_of(rows: int, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    states, actions, goals = (
        jnp.asarray(rng.uniform(-1, 1, (rows, dim)), jnp.float32) for dim in (STATE, ACTION, GOAL)
    )
    return Batch(states, actions, goals, jnp.zeros(rows))


def slow_network(params: Params, x: Floats) -> Floats:
    """Dense, GELU, LayerNorm, twice, then a linear layer, for one row in float64."""
    p = {name: np.asarray(value, np.float64)[0] for name, value in params.items()}
    h = x @ p["kernel_denoiser"]
    for i in range(2):
        h = h + p[f"bias_{i}"]
        h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        h = (h - h.mean()) / np.sqrt(h.var() + 1e-6) * p[f"scale_{i}"] + p[f"shift_{i}"]
        h = h @ p[f"kernel_{i + 1}"]
    result: Floats = h + p["bias_2"]
    return result


def slow_error(params: Params, batch: Batch, row: int, level: int, noise: Floats) -> float:
    """The squared error of the noise, over the squared amplitude that is left of the action."""
    angle = (level / 10) ** 2 * np.arccos(0.05)
    s, a, g = (np.asarray(x, np.float64)[row] for x in (batch.states, batch.actions, batch.goals))
    x = np.cos(angle) * a + np.sin(angle) * noise
    phase = level / 10 * np.array([1.0, 1000.0])
    network = slow_network(params, np.concatenate([s, g, x, np.sin(phase), np.cos(phase)]))
    predicted = np.sin(angle) * x + np.cos(angle) * network
    return float(((predicted - noise) ** 2).mean() / np.cos(angle) ** 2)


def test_errors_on_known_noise_are_the_slow_networks() -> None:
    params, batch = params_of(), batch_of(12)
    del params["target"]
    level = np.arange(12) % 10 + 1
    noise = np.random.default_rng(1).normal(size=(12, ACTION))
    got = jax.jit(MODEL.errors)(
        params,
        batch.states,
        batch.actions,
        batch.goals,
        jnp.asarray(level),
        jnp.asarray(noise, jnp.float32),
    )
    expected = [slow_error(params, batch, i, int(level[i]), noise[i]) for i in range(12)]
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=1e-5)


def test_a_network_of_zeros_errs_by_the_velocity() -> None:
    """With F = 0 the error is (cos noise - sin action)^2: a number one can write down."""
    params = jax.tree.map(np.zeros_like, params_of())
    action, noise = jnp.array([[0.5, -1.0]]), jnp.array([[1.0, 2.0]])
    rows = (jnp.zeros((1, STATE)), action, jnp.zeros((1, GOAL)))
    angle = 0.49 * np.arccos(0.05)
    expected = (
        (np.cos(angle) - np.sin(angle) * 0.5) ** 2 + (2 * np.cos(angle) + np.sin(angle)) ** 2
    ) / 2
    got = jax.jit(MODEL.errors)(params, *rows, jnp.array([7]), noise)
    np.testing.assert_allclose(got, [expected], rtol=1e-5)


def test_the_loss_is_the_mean_error_at_the_drawn_levels_and_noise() -> None:
    params, batch, key = params_of(), batch_of(20), jax.random.key(5)
    loss, info = LOSS(params, batch, key)
    key_level, key_noise = jax.random.split(key)
    level = np.asarray(MODEL.draw_levels(key_level, 20))
    noise = np.asarray(jax.random.normal(key_noise, (20, ACTION)), np.float64)
    trained = {name: value for name, value in params.items() if name != "target"}
    errors = np.array([slow_error(trained, batch, i, int(level[i]), noise[i]) for i in range(20)])
    np.testing.assert_allclose(loss, errors.mean(), rtol=1e-3)
    np.testing.assert_allclose(info["low_noise_loss"], errors[level <= 5].mean(), rtol=1e-3)
    np.testing.assert_allclose(info["high_noise_loss"], errors[level > 5].mean(), rtol=1e-3)


def test_levels_are_uniform_and_spread_evenly() -> None:
    keys = jax.random.split(jax.random.key(0), 4_000)
    level = np.asarray(jax.vmap(lambda key: MODEL.draw_levels(key, 20))(keys))
    assert level.min() == 1
    assert level.max() == 10
    for column in (0, 7, 19):  # each row alone is uniform: 27.9 is chi-square's 99.9 % point
        counts = np.bincount(level[:, column], minlength=11)[1:]
        assert ((counts - 400) ** 2 / 400).sum() < 27.9
    per_batch = np.stack([np.bincount(row, minlength=11)[1:] for row in level[:200]])
    assert per_batch.min() >= 1
    assert per_batch.max() <= 3


def test_the_average_follows_and_only_the_network_has_a_gradient() -> None:
    config = TrainConfig(MODEL, steps=4, batch_size=8, learning_rate=0.05)
    data, key = batch_of(30), jax.random.key(1)
    state = jax.jit(partial(init_state, config))(key, data)
    step = jax.jit(partial(train_step, config))
    average = jax.tree.map(np.asarray, state.params["target"])
    for _ in range(4):
        state, _ = step(state, data)
        average = {
            name: 0.9 * value + 0.1 * np.asarray(state.params[name])
            for name, value in average.items()
        }
    for name, value in average.items():
        np.testing.assert_allclose(state.params["target"][name], value, rtol=1e-4, atol=1e-6)
    assert "target" not in MODEL.compute_params(state.params)
    inputs = STATE + GOAL + ACTION + 4
    assert parameter_count(state.params) == inputs * 16 + 16 * 16 + 16 * 2 + 6 * 16 + 2


def test_bfloat16_is_the_same_model_more_coarsely() -> None:
    half = replace(MODEL, bfloat16=True)
    params, batch, key = params_of(), batch_of(20), jax.random.key(2)
    fine, _ = LOSS(params, batch, key)
    coarse, _ = jax.jit(half.loss)(half.compute_params(params), batch, key)
    assert coarse.dtype == jnp.float32
    np.testing.assert_allclose(coarse, fine, rtol=0.03)
    assert float(coarse) != float(fine)


@pytest.mark.parametrize("size", [1e4, 1e12])
def test_loss_and_gradient_are_finite_at_extreme_inputs(size: float) -> None:
    params, batch = params_of(), batch_of(16)
    far = batch._replace(states=batch.states * size, goals=batch.goals * size)
    (loss, _), grads = GRADIENT(params, far, jax.random.key(0))
    assert np.isfinite(loss)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(grads))


def test_held_out_actions_broadcast_and_meet_the_average() -> None:
    params, batch = params_of(), batch_of(6)
    score = jax.jit(lambda *args: MODEL.held_out(*args)["score"])
    rows = score(params, batch.states, batch.actions, batch.goals)
    grid = score(params, batch.states[:, None], batch.actions[None], batch.goals[:, None])
    np.testing.assert_allclose(np.diagonal(grid), rows, rtol=1e-4)
    only_average = {**jax.tree.map(np.zeros_like, params), "target": params["target"]}
    other = score(only_average, batch.states, batch.actions, batch.goals)
    np.testing.assert_array_equal(other, rows)


@pytest.mark.slow
def test_usual_actions_are_denoised_best(mixture_policy: DiffusionPolicy) -> None:
    usual = [[0.7, 0.5], [0.4, -0.6]]  # two modes of this state and goal
    strange = [[-0.9, -0.9], [0.9, -0.1], [0.05, 0.9]]
    rows = (jnp.asarray(x, jnp.float32) for x in ([[1.0]], usual + strange, [[0.2]]))
    scores = np.asarray(mixture_policy.model.held_out(mixture_policy.params, *rows)["score"])
    assert scores[:2].min() > scores[2:].max()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"time_dim": 3}, "even"),
        ({"time_dim": 0}, "even"),
        ({"ema_decay": 1.0}, "below 1"),
        ({"hidden": ()}, "hidden layer"),
        ({"levels": 0}, "noise level"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Diffusion(**settings)
