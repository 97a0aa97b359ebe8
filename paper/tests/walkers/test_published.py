"""Walkers by the published recipe: the loss against a slow one, and a training from end to end."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toptail.lab.walkers.walker import Walker
from toptail_paper.walkers import published
from toptail_paper.walkers.published import (
    RECIPES,
    Noise,
    PublishedRecipe,
    PublishedSAC,
    ReplayRows,
    init_params,
    loss,
    policy,
    train_published,
)

TINY = replace(
    RECIPES["antball"],
    hidden=(6, 5),
    batch=4,
    environments=4,
    interval=2,
    replay=40,
    random_steps=8,
)


def case(recipe: PublishedRecipe) -> tuple[Any, Any, ReplayRows, Noise]:
    """Networks that are not symmetric in anything, a batch, and noise."""
    rng = np.random.default_rng(0)
    params = init_params(recipe, 3, 2, jax.random.key(0))
    params, target = (
        jax.tree.map(lambda x: jnp.asarray(x + 0.3 * rng.normal(size=x.shape)), tree)
        for tree in (params, params["critic"])
    )
    shapes = ((4, 3), (4, 2), (4,), (4,), (4, 3))
    batch = ReplayRows(*(jnp.asarray(rng.normal(size=shape)) for shape in shapes))
    batch = batch._replace(masks=jnp.asarray([1.0, 0.0, 1.0, 1.0]))
    noise = Noise(*(jnp.asarray(rng.normal(size=(4, 2))) for _ in range(2)))
    return params, target, batch, noise


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def slow_q(critic: Any, which: int, x: Any) -> float:
    for i, layer in enumerate(critic["layers"]):
        x = x @ np.asarray(layer["kernel"][which]) + np.asarray(layer["bias"][which])
        if i < len(critic["layers"]) - 1:
            x = gelu(x)
            if critic["norms"]:
                x = (x - x.mean()) / np.sqrt(x.var() + 1e-6)
                norm = critic["norms"][i]
                x = x * np.asarray(norm["scale"][which]) + np.asarray(norm["shift"][which])
    return float(x[0])


def slow_action(actor: Any, x: Any, noise: Any) -> tuple[Any, float]:
    """The action and its log density, by the change of variables, coordinate by coordinate."""
    for layer in actor[:-1]:
        x = gelu(x @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"]))
    out = x @ np.asarray(actor[-1]["kernel"]) + np.asarray(actor[-1]["bias"])
    mean, std = out[:2], np.exp(np.clip(out[2:], -5, 2))
    raw = mean + std * noise
    action = np.tanh(raw)
    density = np.exp(-((raw - mean) ** 2) / (2 * std**2)) / np.sqrt(2 * np.pi) / std
    return action, float(np.log(density / (1 - action**2)).sum())


@pytest.mark.parametrize("layer_norm", [False, True])
def test_loss_is_the_slow_one(layer_norm: bool) -> None:
    recipe = replace(TINY, layer_norm=layer_norm)
    params, target, batch, noise = case(recipe)
    alpha = float(np.exp(params["log_alpha"]))
    parts = []
    for i in range(4):
        state, action, reward, mask, following = (np.asarray(x[i]) for x in batch)
        ahead, log_ahead = slow_action(params["actor"], following, noise.following[i])
        inputs = np.append(following, ahead)
        soft = min(slow_q(target, j, inputs) for j in (0, 1)) - alpha * log_ahead
        wanted = reward + 0.99 * mask * soft
        found = [slow_q(params["critic"], j, np.append(state, action)) for j in (0, 1)]
        own, log_own = slow_action(params["actor"], state, noise.here[i])
        best = min(slow_q(params["critic"], j, np.append(state, own)) for j in (0, 1))
        entropy = alpha * (-log_own - recipe.entropy * 2)
        parts.append(np.mean((np.array(found) - wanted) ** 2) + alpha * log_own - best + entropy)
    found = jax.jit(loss, static_argnums=4)(params, target, batch, noise, recipe)
    assert found == pytest.approx(np.mean(parts), rel=1e-4)


@pytest.mark.slow
def test_gradients_of_the_parts_stay_apart() -> None:
    """The critics do not learn from the actor's loss, nor the actor from the critics' error."""
    params, target, batch, noise = case(TINY)
    grads = jax.grad(loss)(params, target, batch, noise, TINY)
    other = batch._replace(rewards=batch.rewards + 5.0)
    moved = jax.grad(loss)(params, target, other, noise, TINY)
    same = [
        jnp.allclose(a, b)
        for a, b in zip(*map(jax.tree.leaves, (grads["actor"], moved["actor"])), strict=True)
    ]
    assert all(same)
    noisy = noise._replace(here=-noise.here)
    moved = jax.grad(loss)(params, target, batch, noisy, TINY)
    pairs = zip(*map(jax.tree.leaves, (grads["critic"], moved["critic"])), strict=True)
    assert all(jnp.allclose(a, b) for a, b in pairs)


def test_stored_walker_acts_as_the_networks_do(tmp_path: Path) -> None:
    learner = PublishedSAC("ant", replace(RECIPES["ant"], hidden=(7, 6)))
    state = learner.init(3)
    learner.walker("ant", state).save(tmp_path / "actor.safetensors")
    observations = np.random.default_rng(0).normal(size=(5, 29)).astype(np.float32)
    expected = jnp.tanh(policy(state.params["actor"], jnp.asarray(observations))[0])
    walker = Walker.load(tmp_path / "actor.safetensors")
    np.testing.assert_allclose(walker(observations), expected, atol=1e-5)


@pytest.mark.slow
def test_training_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    recipe = replace(
        RECIPES["ant"], steps=64, environments=4, replay=40, random_steps=16, hidden=(8,)
    )
    monkeypatch.setattr(published, "_SAVE_SECONDS", 0.0)
    monkeypatch.setattr(published, "evaluate", lambda *_: [{"speed": 0.0}])
    stepped, calls = published._stepped, count(1)

    def interrupted(episodes: Any, actions: Any) -> ReplayRows:
        if next(calls) == 9:
            raise KeyboardInterrupt
        return stepped(episodes, actions)

    monkeypatch.setattr(published, "_stepped", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_published("ant", tmp_path, 0, recipe, threads=1)
    assert (tmp_path / "state.npz").exists()
    record = train_published("ant", tmp_path, 0, recipe, threads=1)
    assert next(calls) == 9 + 64 // 4 - 8 + 1, "eight of sixteen vector steps were left"
    assert [point["steps"] for point in record["curve"]] == [64]
    assert not (tmp_path / "state.npz").exists()
    before = PublishedSAC("ant", recipe).init(0).params["actor"][0]["kernel"]
    after = Walker.load(tmp_path / "actor.safetensors").kernels[0]
    assert not np.allclose(before, after)
