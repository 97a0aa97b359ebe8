"""Losses and readouts against slow NumPy arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from toptail.lab.critics.base import Batch, Critic, Info, Params
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.embedding import capped_score
from toptail.lab.critics.losses import (
    CONTRASTS,
    Contrast,
    softplus,
    squared_td_error,
)
from toptail.lab.critics.networks import Embeddings, Encoders, norm, unit
from toptail.lab.critics.raw import Raw

Floats = NDArray[np.float64]

KEY = jax.random.key(0)
TINY = Encoders(hidden=(4,), embed_dim=4, ensemble=2, layer_norm=True)
ROWS = 6


CRITICS = pytest.mark.parametrize(
    "critic",
    [Raw(TINY, "symmetric_info_nce"), Cosine(TINY, learn_temperature=True)],
    ids=lambda critic: critic.name,
)


def batch(rows: int = ROWS, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    states, actions, goals = (
        jnp.asarray(rng.normal(size=(rows, dim)), jnp.float32) for dim in (3, 2, 3)
    )
    return Batch(states, actions, goals, jnp.asarray(-rng.random(rows), jnp.float32))


@cache
def params_of(critic: Critic) -> Params:
    params: Params = jax.jit(lambda key: critic.init(key, 3, 2, 3))(jax.random.key(1))
    return params


@cache
def loss_of(critic: Critic) -> Callable[[Params, Batch, jax.Array], tuple[jax.Array, Info]]:
    return jax.jit(critic.loss)


@cache
def readouts_of(critic: Critic) -> Callable[..., dict[str, jax.Array]]:
    return jax.jit(
        lambda params, *rows: {n: f(params, *rows) for n, f in critic.readouts().items()}
    )


@pytest.mark.parametrize("name", CONTRASTS)
def test_contrast_falls_when_positives_rise_and_is_finite_at_extremes(name: Contrast) -> None:
    contrast = CONTRASTS[name]
    low, high = (float(contrast(level * jnp.eye(4)[None])[0]) for level in (0.0, 5.0))
    assert high < low
    gradient = jax.grad(lambda x: contrast(x)[0])
    for level in (0.0, 1e4, -1e4):
        logits = jnp.full((1, 4, 4), level) + level * jnp.eye(4)
        assert np.isfinite(contrast(logits)[0])
        assert np.isfinite(gradient(logits)).all()


def test_softplus_has_the_usual_value_and_gradient() -> None:
    x = jnp.array([-100.0, -3.0, 0.0, 3.0, 100.0])
    np.testing.assert_allclose(softplus(x), jax.nn.softplus(x), rtol=1e-6)
    slope = jax.vmap(jax.grad(softplus))(x)
    np.testing.assert_allclose(slope, jax.nn.sigmoid(x), rtol=1e-6)


def test_squared_td_error_by_hand_and_without_gradient_to_the_target() -> None:
    q, target = jnp.array([[1.0, 2.0], [3.0, 5.0]]), jnp.array([0.0, 2.0])
    loss, info = squared_td_error(q, target)
    assert float(loss) == pytest.approx((1 + 0 + 9 + 9) / 4)
    assert float(info["td_rmse"]) == pytest.approx(np.sqrt(19 / 4))
    assert not np.any(jax.grad(lambda t: squared_td_error(q, t)[0])(target))


def slow_network(params: Any, x: Floats, norms: bool) -> Floats:
    """An MLP written out: Dense, GELU (tanh form), LayerNorm, ..., Dense."""
    depth = sum(name.startswith("Dense") for name in params)
    for i in range(depth - 1):
        x = x @ params[f"Dense_{i}"]["kernel"] + params[f"Dense_{i}"]["bias"]
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        if norms:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
            x = x * params[f"LayerNorm_{i}"]["scale"] + params[f"LayerNorm_{i}"]["bias"]
    last = params[f"Dense_{depth - 1}"]
    return np.asarray(x @ last["kernel"] + last["bias"])


def member(tree: Any, e: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf[e], np.float64), tree)


def slow_embeddings(params: Params, data: Batch) -> list[tuple[Floats, Floats]]:
    s, a, g = (np.asarray(x, np.float64) for x in data[:3])
    return [
        (
            slow_network(member(params["phi"], e), np.hstack([s, a]), True),
            slow_network(member(params["psi"], e), g, True),
        )
        for e in range(2)
    ]


def cosine(x: Floats, y: Floats) -> Floats:
    return np.asarray(x @ y.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)))


def test_raw_and_cosine_losses_and_readouts_by_slow_arithmetic() -> None:
    data, params = batch(), params_of(Raw(TINY))
    pairs = slow_embeddings(params, data)
    raw_logits = np.stack([phi @ psi.T / 2.0 for phi, psi in pairs])
    cos = np.stack([cosine(phi, psi) for phi, psi in pairs])
    for critic, logits in ((Raw(TINY), raw_logits), (Cosine(TINY, temperature=0.2), cos / 0.2)):
        labels = np.eye(ROWS)
        bce = np.mean(np.log1p(np.exp(logits)) - labels * logits)
        assert float(loss_of(critic)(params, data, KEY)[0]) == pytest.approx(bce, rel=1e-4)
    reads = readouts_of(Raw(TINY))(params, *data[:3])
    expected = {
        "f_raw": np.mean([np.diag(phi @ psi.T) for phi, psi in pairs], axis=0),
        "f_cos": np.mean([np.diag(c) for c in cos], axis=0),
        "phi_norm": np.mean([np.linalg.norm(phi, axis=1) for phi, _ in pairs], axis=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(reads[name], values, rtol=2e-4, atol=1e-5)


def test_capped_score_shrinks_long_phi_only() -> None:
    phi = jnp.array([[[3.0, 4.0], [0.3, 0.4]], [[0.0, 2.0], [0.0, 0.5]]])
    psi = jnp.ones((2, 2, 2))
    # Member 0 is capped at 1: 7 becomes 7/5, 0.7 stays; member 1 at 4: 2 and 0.5 stay.
    capped = capped_score(Embeddings(phi, psi), jnp.array([1.0, 4.0]))
    np.testing.assert_allclose(capped, [(1.4 + 2.0) / 2, (0.7 + 0.5) / 2], rtol=1e-6)


def test_lengths_have_finite_gradients_at_zero() -> None:
    zero = jnp.zeros(4)
    assert np.isfinite(jax.grad(norm)(zero)).all()
    assert np.isfinite(jax.jacobian(unit)(zero)).all()


def finite_at_extreme_inputs(critic: Critic) -> None:
    params, data = params_of(critic), batch()

    @jax.jit
    def scaled(p: Params, scale: jax.Array) -> tuple[jax.Array, Params]:
        extreme: Batch = jax.tree.map(lambda x: x * scale, data)
        return jax.value_and_grad(lambda q: critic.loss(q, extreme, KEY)[0])(p)

    for scale in (0.0, 1e-20, 1e4):
        value, gradient = scaled(params, jnp.float32(scale))
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def same_loss_in_another_order(critic: Critic) -> None:
    params, data = params_of(critic), batch()
    shuffled: Batch = jax.tree.map(lambda x: x[::-1], data)
    loss = jax.jit(lambda rows: loss_of(critic)(params, rows, KEY)[0])
    assert float(loss(shuffled)) == pytest.approx(float(loss(data)), rel=1e-5)


def one_goal_serves_all_candidates(critic: Critic) -> None:
    params = params_of(critic)
    rng = np.random.default_rng(0)
    shapes = ((1, 3), (5, 2), (1, 3))
    rows = [rng.normal(size=(4, n, d)).astype(np.float32) for n, d in shapes]

    read = readouts_of(critic)
    full = [np.broadcast_to(x, (4, 5, x.shape[-1])) for x in rows]
    repeated = read(params, *full)
    for name, scores in read(params, *rows).items():
        assert scores.shape == (4, 5)
        np.testing.assert_allclose(scores, repeated[name], rtol=1e-4, atol=1e-5)


def no_implicit_promotion(critic: Critic) -> None:
    params, data = params_of(critic), batch()
    with jax.numpy_dtype_promotion("strict"):
        loss, score = jax.eval_shape(
            lambda: (critic.loss(params, data, KEY)[0], critic.score(params, *data[:3]))
        )
    assert loss.dtype == score.dtype == jnp.float32


CHECKS = (
    finite_at_extreme_inputs,
    same_loss_in_another_order,
    one_goal_serves_all_candidates,
    no_implicit_promotion,
)
"""What holds for the loss and the readouts of every small critic."""


@CRITICS
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_losses_and_readouts_of(critic: Critic, check: Callable[[Critic], None]) -> None:
    check(critic)
