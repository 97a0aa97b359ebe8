"""Value targets by hand, target networks, and the copies that a step computes with."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.critics.facts import facts
from tests.critics.full_cases import (
    BATCH,
    KEY,
    TAU,
    make,
    quick_jit,
    random_batch,
    random_params,
    target_source,
)
from tests.critics.slow_full import expectile
from toptail.lab.critics.base import Batch, trained_only
from toptail.lab.critics.bellman import Bellman, expectile_loss
from toptail.lab.critics.registry import CRITICS
from toptail.lab.critics.tdq import TDQ
from toptail.lab.critics.two_head_separate import TwoHeadSeparate
from toptail.lab.training import loop
from toptail.lab.training.loop import TrainConfig, init_state, make_train, train_step

TARGETED = [name for name, each in facts().items() if each.target]
BELLMAN = [name for name in TARGETED if name != "spectral"]  # which keeps vectors there


def test_expectile_loss() -> None:
    errors = jnp.array([2.0, -1.0, 0.0, 3.0])
    assert float(expectile_loss(errors, 0.9)) == pytest.approx((0.9 * 13 + 0.1 * 1) / 4)
    draws = np.random.default_rng(0).normal(size=200)
    for level in (0.5, 0.9):
        assert float(expectile_loss(jnp.asarray(draws, jnp.float32), level)) == pytest.approx(
            expectile(draws, level), rel=1e-5
        )


def test_expectile_of_half_is_the_mean() -> None:
    q = jnp.array([0.0, 1.0, 5.0])
    best = [
        minimize_scalar(lambda v, t=t: float(expectile_loss(q - v, t)), bounds=(0, 5)).x
        for t in (0.5, 0.9, 0.999)
    ]
    assert best[0] == pytest.approx(2.0, abs=1e-2)
    assert best[0] < best[1] < best[2] < 5.0


def test_iql_by_hand() -> None:
    """Two rows: one goes on (aim -1 + 0.5 * 4 = 1), one ends (aim 0, whatever V says after)."""
    batch = random_batch(size=2)._replace(
        rewards=jnp.array([-1.0, 0.0]), masks=jnp.array([1.0, 0.0])
    )
    q, target_q = jnp.array([[1.0, 1.0], [3.0, 0.0]]), jnp.array([[1.0, 2.0], [3.0, 0.0]])
    v, next_v = jnp.array([0.0, 2.0]), jnp.array([4.0, 100.0])
    loss, info = Bellman(gamma=0.5, expectile=0.9).losses(q, v, target_q, next_v, batch)
    q_loss = (0 + 1 + 4 + 0) / 4
    v_loss = (0.9 * 1**2 + 0.1 * 2**2) / 2  # the smaller targets are 1 and 0
    assert {k: float(x) for k, x in info.items()} == pytest.approx(
        {"q_loss": q_loss, "v_loss": v_loss, "q_mean": 1.25, "td_rmse": q_loss**0.5}
    )
    assert float(loss) == pytest.approx(q_loss + v_loss)


def test_missing_columns() -> None:
    batch = random_batch()
    for name in BELLMAN:
        loss, params = make(name).loss, random_params(make(name))
        needed = ["next_states", *(["masks"] if make(name).reads_rewards else [])]
        for column in needed:
            with pytest.raises(ValueError, match=rf"needs batch\.{column}"):
                jax.eval_shape(loss, params, Batch(**{**batch._asdict(), column: None}), KEY)


def leaves(tree: Any) -> dict[str, np.ndarray[Any, Any]]:
    found = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in found}


@pytest.mark.parametrize("name", BELLMAN)
def test_after_update(name: str) -> None:
    """Q's slow copy moves by tau, V's is V to the last bit, and nothing else moves."""
    critic = make(name)
    params = random_params(critic)
    after = critic.after_update(params)
    for label, leaf in leaves(after).items():
        if not label.startswith("['target']"):
            np.testing.assert_array_equal(leaf, leaves(params)[label], err_msg=label)
    trained, before = leaves(target_source(name, params)), leaves(params["target"])
    joint = isinstance(critic, TDQ | TwoHeadSeparate)  # V is the last network of the Q stack
    assert len(before) > 0
    for label, leaf in leaves(after["target"]).items():
        rates = [TAU] * len(leaf)
        if joint and "kernel_q" not in label:
            rates[-1] = 1.0
        for moved, old, new, rate in zip(leaf, before[label], trained[label], rates, strict=True):
            if rate == 1.0:
                np.testing.assert_array_equal(moved, new, err_msg=label)
            else:
                expected = (1 - TAU) * old.astype(np.float64) + TAU * new.astype(np.float64)
                np.testing.assert_allclose(moved, expected, rtol=1e-5, atol=1e-6, err_msg=label)


@pytest.mark.parametrize("name", CRITICS)
def test_target_has_no_optimizer_state(name: str) -> None:
    critic, data = make(name), random_batch()
    config = TrainConfig(critic, batch_size=BATCH)
    state = jax.eval_shape(lambda key: init_state(config, key, data), KEY)
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path(state.opt_state)
    ]
    trained = trained_only(state.params)
    assert not any("target" in path for path in paths)
    assert len(paths) == 2 * len(jax.tree.leaves(trained)) + 1  # two moments, and Adam's count


@pytest.mark.parametrize("name", CRITICS)
def test_compute_params(name: str) -> None:
    """In bfloat16 every kernel is copied, at any depth; the loss does not notice the copy."""
    half, full = make(name, bfloat16=True), make(name)
    params = random_params(half)
    compute = half.compute_params(params)
    for label, leaf in leaves(compute).items():
        kernel = "kernel" in label.rsplit("['", 1)[1]
        assert leaf.dtype == (jnp.bfloat16 if kernel else np.float32), label
    assert full.compute_params(params) is params
    # What is no copy is not carried from step to step beside the parameters.
    kernels = {label for label in leaves(params) if "kernel" in label.rsplit("['", 1)[1]}
    assert set(leaves(loop._copies(half, params))) == kernels
    assert leaves(loop._copies(full, params)) == {}
    if name == "hybrid":  # the one with parameters at every depth stands for the rest
        loss = quick_jit(lambda p: half.loss(p, random_batch(), KEY)[0])
        assert float(loss(compute)) == float(loss(params))


def test_run_equals_its_steps() -> None:
    """A run that carries its bfloat16 copy along is the steps that make it anew, one by one."""
    critic = make("two_head_separate", bfloat16=True, hidden=(16,), ensemble=1)
    config = TrainConfig(critic, steps=4, batch_size=BATCH, learning_rate=1e-2)
    data = random_batch(size=40)
    run, info = quick_jit(make_train(config))(KEY, data)
    step = quick_jit(partial(train_step, config))
    state, losses = init_state(config, KEY, data), []
    start = leaves(state.params)
    for _ in range(config.steps):
        state, scalars = step(state, data)
        losses.append(float(scalars["loss"]))
    np.testing.assert_allclose(info["loss"], losses, rtol=1e-5)
    assert int(run.step) == int(state.step) == config.steps
    single = leaves(state.params)
    moved = {label: np.linalg.norm(single[label] - start[label]) for label in single}
    for label, leaf in leaves(run.params).items():
        assert moved[label] > 0, label
        assert leaf.dtype == np.float32
        assert np.linalg.norm(leaf - single[label]) < 1e-3 * moved[label], label
    kernel = np.asarray(run.params["kernel_1"])
    assert np.any(kernel != kernel.astype(jnp.bfloat16).astype(np.float32))  # not the copy


def test_follow_keeps_to_its_names() -> None:
    target = {"a": jnp.zeros(2), "b": {"c": jnp.ones(1)}}
    params = {"a": jnp.ones(2), "b": {"c": jnp.zeros(1)}, "other": jnp.ones(3)}
    moved = Bellman(tau=0.25).follow(target, params)
    assert jax.tree.map(lambda x: x.tolist(), moved) == {"a": [0.25, 0.25], "b": {"c": [0.75]}}
