"""The fused passes: kernels against plain versions, plain versions against jax.grad."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics.full_cases import no_promotion, quick_jit
from toptail.lab.critics import fused
from toptail.lab.critics.losses import binary_nce

N, ROWS, WIDTH = 3, 32, 16  # networks; two blocks of rows for the backward kernel
NAMES = ("h", "bias", "scale", "shift")


def inputs(dtype: Any, rows: int = ROWS, width: int = WIDTH) -> tuple[jax.Array, ...]:
    """h, bias, scale, shift and a cotangent, all random; GELU's bend and both its tails occur."""
    rng = np.random.default_rng(11)
    h = jnp.asarray(2 * rng.normal(size=(N, rows, width)), dtype)
    bias, scale, shift = (jnp.asarray(rng.normal(size=(N, width)), jnp.float32) for _ in range(3))
    return h, bias, 1 + scale, shift, jnp.asarray(rng.normal(size=h.shape), dtype)


def straightforward(h: jax.Array, bias: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """Flax's own GELU and LayerNorm in float32, network by network."""
    networks = [
        nn.LayerNorm().apply(
            {"params": {"scale": scale[i], "bias": shift[i]}},
            nn.gelu(h[i].astype(jnp.float32) + bias[i]),
        )
        for i in range(N)
    ]
    return jnp.stack([jnp.asarray(x) for x in networks])


def with_gradient(function: Any, args: Any, cotangent: Any) -> Any:
    """The value of a function and its gradient, compiled as one."""

    def both(args: Any, cotangent: Any) -> Any:
        value, back = jax.vjp(function, *args)
        return value, back(cotangent)

    return quick_jit(both)(args, cotangent)


def assert_near(got: jax.Array, expected: jax.Array, rtol: float, label: str) -> None:
    """Within ``rtol`` of the largest entry."""
    wanted = np.asarray(expected, np.float64)
    atol = rtol * np.abs(wanted).max()
    np.testing.assert_allclose(np.asarray(got, np.float64), wanted, 0, atol, err_msg=label)


@pytest.mark.parametrize(("dtype", "rtol"), [(jnp.float32, 1e-5), (jnp.bfloat16, 2**-8)])
def test_plain_version_is_gelu_and_layer_norm(dtype: Any, rtol: float) -> None:
    *args, dy = inputs(dtype)
    y, gradient = with_gradient(fused.bias_gelu_norm, args, dy)
    expected, slow = with_gradient(straightforward, args, dy.astype(jnp.float32))
    assert y.dtype == dtype
    assert_near(y, expected, rtol, "value")
    for label, got, own in zip(NAMES, gradient, slow, strict=True):
        assert got.dtype == (dtype if label == "h" else jnp.float32)
        assert_near(got, own, rtol, label)


@pytest.mark.parametrize(("dtype", "rtol"), [(jnp.float32, 1e-5), (jnp.bfloat16, 2**-8)])
def test_kernels_are_the_plain_version(dtype: Any, rtol: float) -> None:
    *args, dy = inputs(dtype)
    h, bias, scale, _ = args
    y, saved = fused._forward(*args)
    got = fused._forward_gpu(*args, interpret=True)
    for label, x, own in zip(("y", "mean", "inverse"), got, (y, *saved[3:]), strict=True):
        assert x.dtype == own.dtype
        assert_near(x, own, rtol, label)
    kernel = fused._backward_gpu(h, bias, scale, *got[1:], dy, interpret=True)
    for label, x, own in zip(NAMES, kernel, fused._backward(saved, dy), strict=True):
        assert x.dtype == own.dtype
        assert_near(x, own, rtol, label)


@pytest.mark.parametrize(
    ("rows", "width", "dtype", "fits"),
    [
        (32, 16, jnp.bfloat16, True),
        (1024, 512, jnp.bfloat16, True),
        (24, 16, jnp.bfloat16, False),  # half a block of rows
        (32, 24, jnp.bfloat16, False),  # not a power of two
        (32, 8, jnp.bfloat16, False),  # too narrow
        (32, 16, jnp.float32, False),
    ],
)
def test_which_sizes_the_kernels_take(
    rows: int, width: int, dtype: Any, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    h = jnp.zeros((1, rows, width), dtype)
    assert not fused._fits(h)  # not off the GPU
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert fused._fits(h) == fits


def test_add_bias() -> None:
    rng = np.random.default_rng(3)
    h, dy = (jnp.asarray(rng.normal(size=(2, 24, 5)), jnp.float32) for _ in range(2))
    bias = jnp.asarray(rng.normal(size=(2, 5)), jnp.float32)
    y, back = jax.vjp(fused.add_bias, h, bias)
    np.testing.assert_array_equal(y, np.asarray(h) + np.asarray(bias)[:, None])
    dh, dbias = back(dy)
    np.testing.assert_array_equal(dh, dy)
    np.testing.assert_allclose(dbias, np.asarray(dy, np.float64).sum(axis=1), rtol=1e-5, atol=1e-5)


def test_add_bias_sums_in_float32() -> None:
    """A sum that bfloat16 cannot hold: 1 + 300 times 1/256."""
    dy = jnp.full((1, 301, 1), 2.0**-8, jnp.bfloat16).at[0, 0, 0].set(1.0)
    y, back = jax.vjp(fused.add_bias, jnp.zeros_like(dy), jnp.ones((1, 1)))
    dh, dbias = back(dy)
    assert (y.dtype, dh.dtype, dbias.dtype) == (jnp.bfloat16, jnp.bfloat16, jnp.float32)
    np.testing.assert_allclose(dbias, [[1 + 300 / 256]], rtol=1e-6)


def embeddings(dtype: Any) -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(6)
    phi, psi = (jnp.asarray(rng.normal(size=(2, 32, 8)), dtype) for _ in range(2))
    return phi, psi


def of_logits(phi: jax.Array, psi: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The same three numbers through the loss of plain logits in float32."""
    phi, psi = phi.astype(jnp.float32), psi.astype(jnp.float32)
    logits = phi @ jnp.swapaxes(psi, -1, -2)
    loss, info = binary_nce(logits)
    return loss, jnp.mean(logits), info["positive_logit"]


@pytest.mark.parametrize(("dtype", "rtol"), [(jnp.float32, 1e-5), (jnp.bfloat16, 2**-7)])
def test_binary_nce_pairs(dtype: Any, rtol: float) -> None:
    pair = embeddings(dtype)
    # A cotangent other than 1, since the loss may be one of several terms.
    ct = (jnp.float32(1.7), jnp.float32(0), jnp.float32(0))
    got, grads = with_gradient(fused.binary_nce_pairs, pair, ct)
    expected, own = with_gradient(of_logits, pair, ct)
    assert all(x.dtype == jnp.float32 for x in got)
    np.testing.assert_allclose(got, expected, rtol, rtol)
    for label, x, y in zip(("phi", "psi"), grads, own, strict=True):
        assert x.dtype == dtype
        assert_near(x, y, rtol, label)


def test_logged_numbers_carry_no_gradient() -> None:
    _, back = jax.vjp(fused.binary_nce_pairs, *embeddings(jnp.float32))
    grads = back((jnp.float32(0), jnp.float32(1), jnp.float32(1)))
    assert all(not np.any(x) for x in grads)


def test_binary_nce_pairs_at_extreme_logits() -> None:
    """Logits of +-900: the loss is their mean cross-entropy, and the gradient is finite."""
    sign = jnp.asarray([[[1.0], [-1.0]]], jnp.bfloat16)
    (loss, mean, positive), back = jax.vjp(fused.binary_nce_pairs, 30 * sign, 30 * sign)
    assert (float(loss), float(mean), float(positive)) == (0.0, 0.0, 900.0)
    (wrong, *_), back = jax.vjp(fused.binary_nce_pairs, 30 * sign, -30 * sign)
    assert float(wrong) == 900.0  # every pair costs 900
    zero = jnp.float32(0)
    # Each pair's slope is +-1/4 and its partner +-30: positives pull up, negatives push down.
    phi, _ = back((jnp.float32(1), zero, zero))
    np.testing.assert_allclose(np.ravel(phi), [15.0, -15.0])


def test_no_implicit_promotion() -> None:
    """In the kernels too, which the critics use only on a GPU."""
    for dtype in (jnp.float32, jnp.bfloat16):
        *args, dy = inputs(dtype)
        with no_promotion():
            got = quick_jit(lambda *a: fused._forward_gpu(*a, interpret=True))(*args)
            jax.make_jaxpr(lambda *a: fused._backward_gpu(*a, interpret=True))(
                *args[:3], *got[1:], dy
            )
            jax.make_jaxpr(lambda *a: jax.vjp(fused.bias_gelu_norm, *a)[1](a[0]))(*args)
