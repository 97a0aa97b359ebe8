"""Scoring in blocks of rows: the same scores, few rows at a time."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toptail.lab.critics.base import CPU_BLOCK, Params, in_blocks


@pytest.mark.parametrize("n", [1, CPU_BLOCK, CPU_BLOCK + 1, 3 * CPU_BLOCK, 3 * CPU_BLOCK - 5])
def test_every_row_gets_its_own_score(n: int) -> None:
    seen: list[tuple[int, ...]] = []

    def read(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        seen.append(s.shape)
        w: jax.Array = params["w"]
        return w * s[..., 0] + 10 * a[..., 0] + 100 * g[..., 0] * a[..., 1]

    rng = np.random.default_rng(n)
    rows = [jnp.asarray(rng.normal(size=(n, dim)), jnp.float32) for dim in (3, 2, 1)]
    params = {"w": jnp.float32(2.0)}
    plain = read(params, *rows)
    seen.clear()
    np.testing.assert_allclose(in_blocks(read)(params, *rows), plain, rtol=1e-6, atol=1e-5)
    if jax.default_backend() == "cpu":
        assert max(shape[0] for shape in seen) <= CPU_BLOCK


def test_axes_that_broadcast_are_left_to_the_readout() -> None:
    def read(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        w: jax.Array = params["w"]
        return w * (s * a * g)[..., 0]

    s, a, g = jnp.ones((700, 1, 2)), 2 * jnp.ones((1, 3, 2)), jnp.ones((2,))
    scores = in_blocks(read)({"w": jnp.float32(3.0)}, s, a, g)
    np.testing.assert_array_equal(scores, np.full((700, 3), 6.0))


@pytest.mark.parametrize("n", [2, CPU_BLOCK + 3])
def test_rows_may_lie_along_another_axis_of_the_results(n: int) -> None:
    x = jnp.arange(2.0 * n).reshape(n, 2)

    def read(params: Params, x: jax.Array) -> jax.Array:
        w: jax.Array = params["w"]
        return w[:, None, None] * x

    params = {"w": jnp.array([1.0, 10.0, 100.0])}
    np.testing.assert_array_equal(in_blocks(read, axis=1)(params, x), read(params, x))
