"""The fused loop against a plain one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Critic, Info, Params, Read
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.networks import Stack, StackedEncoders, join
from toptail.lab.critics.raw import Raw
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.loop import TrainConfig, init_state, make_train, uniform_rows

TINY = StackedEncoders((4,), 2, 1, layer_norm=False)


@dataclass(frozen=True)
class Regression(Critic):
    """One small network, fitted to the reward."""

    name = "regression"
    deployed = "q"
    network = Stack((("q", 1),), (4,), 1, layer_norm=False)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        return self.network.init(key, {"q": state_dim + goal_dim + action_dim})

    def q(self, params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        return self.network.apply(params, {"q": join(s, g, a)})["q"][0, ..., 0]

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        return squared_td_error(self.q(params, *batch[:3]), batch.rewards)

    def readouts(self) -> Mapping[str, Read]:
        return {"q": self.q}


SMALL = Regression()
CRITICS = [SMALL, Raw(TINY)]


def data_of(seed: int, rows: int = 50) -> Batch:
    rng = np.random.default_rng(seed)
    states, actions, goals = (
        jnp.asarray(rng.normal(size=(rows, dim)), jnp.float32) for dim in (2, 2, 2)
    )
    return Batch(states, actions, goals, jnp.asarray(-rng.random(rows), jnp.float32))


def config_of(critic: Critic, steps: int = 12) -> TrainConfig:
    return TrainConfig(critic, steps=steps, batch_size=6, learning_rate=0.01)


def plain_loop(config: TrainConfig, key: jax.Array, data: Batch) -> tuple[Params, list[float]]:
    """The same updates with a Python loop, and Adam written out in NumPy."""
    state = init_state(config, key, data)
    leaves, tree = jax.tree.flatten(state.params)
    params = [np.asarray(leaf, np.float64) for leaf in leaves]
    first, second = ([np.zeros_like(p) for p in params] for _ in range(2))
    gradient = jax.jit(jax.value_and_grad(config.learner.loss, has_aux=True))
    losses = []
    for step in range(config.steps):
        key_batch, key_loss = jax.random.split(jax.random.fold_in(state.key, step))
        rows = jax.random.randint(key_batch, (config.batch_size,), 0, len(data.states))
        batch = Batch(data.states[rows], data.actions[rows], data.goals[rows], data.rewards[rows])
        now = jax.tree.unflatten(tree, [np.float32(p) for p in params])
        (loss, _), grads = gradient(now, batch, key_loss)
        losses.append(float(loss))
        t = step + 1
        for i, leaf in enumerate(jax.tree.leaves(grads)):
            g = np.asarray(leaf, np.float64)
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            size = np.sqrt(second[i] / (1 - 0.999**t)) + 1e-8
            params[i] = params[i] - config.learning_rate * first[i] / (1 - 0.9**t) / size
    return jax.tree.unflatten(tree, params), losses


def assert_trees_equal(a: Params, b: Params) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("critic", CRITICS, ids=lambda critic: critic.name)
def test_make_train_is_a_plain_loop_of_the_same_updates(critic: Critic) -> None:
    config, key, data = config_of(critic), jax.random.key(3), data_of(0)
    state, info = jax.jit(make_train(config))(key, data)
    params, losses = plain_loop(config, key, data)
    np.testing.assert_allclose(info["loss"], losses, rtol=1e-4, atol=1e-6)
    for fused, plain in zip(jax.tree.leaves(state.params), jax.tree.leaves(params), strict=True):
        np.testing.assert_allclose(fused, plain, rtol=2e-3, atol=2e-5)
    assert int(state.step) == config.steps


def test_training_lowers_the_loss() -> None:
    _, info = jax.jit(make_train(config_of(SMALL, steps=300)))(jax.random.key(0), data_of(0))
    assert float(info["loss"][-20:].mean()) < 0.5 * float(info["loss"][:20].mean())


def test_rows_are_drawn_uniformly_with_matching_columns() -> None:
    rows = 10
    column = jnp.arange(rows, dtype=jnp.float32)[:, None]
    data = Batch(column, column, column, column[:, 0])
    drawn = uniform_rows(jax.random.key(0), data, 5_000)
    for part in drawn[:3]:
        np.testing.assert_array_equal(part[:, 0], drawn.rewards)
    counts = np.bincount(np.asarray(drawn.rewards, int), minlength=rows)
    # Chi-square with 9 degrees of freedom: 27.9 is its 99.9 % point.
    assert ((counts - 500) ** 2 / 500).sum() < 27.9


def test_the_trainer_calls_the_hook_after_each_update() -> None:
    class Shrinking(Regression):
        def after_update(self, params: Params) -> Params:
            halved: Params = jax.tree.map(lambda leaf: leaf * 0.5, params)
            return halved

    config = TrainConfig(Shrinking(), steps=1, batch_size=6, learning_rate=0.0)
    start = init_state(config, jax.random.key(0), data_of(0))
    state, _ = make_train(config)(jax.random.key(0), data_of(0))
    for before, after in zip(
        jax.tree.leaves(start.params), jax.tree.leaves(state.params), strict=True
    ):
        np.testing.assert_allclose(after, before * 0.5, rtol=1e-6)


def test_the_optimizer_is_adam_at_the_configured_rate() -> None:
    updates, _ = (optimizer := config_of(SMALL).optimizer).update(
        {"x": jnp.ones(1)}, optimizer.init({"x": jnp.zeros(1)})
    )
    expected, _ = (adam := optax.adam(0.01)).update(
        {"x": jnp.ones(1)}, adam.init({"x": jnp.zeros(1)})
    )
    np.testing.assert_array_equal(updates["x"], expected["x"])


def test_checkpoints_come_back_bit_for_bit(tmp_path: Path) -> None:
    params = Raw(TINY).init(jax.random.key(0), 2, 2, 2)
    path = tmp_path / "params.safetensors"
    save_params(path, params)
    assert_trees_equal(load_params(path), jax.tree.map(np.asarray, params))
    assert [p.name for p in tmp_path.iterdir()] == ["params.safetensors"]


@pytest.mark.parametrize("content", [b"", b"not a checkpoint at all"])
def test_damaged_checkpoints_are_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "params.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"params\.safetensors cannot be read"):
        load_params(path)
