"""Contrastive losses, softplus and lengths by hand and at extreme inputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toptail.lab.critics.embedding import capped_score
from toptail.lab.critics.losses import (
    CONTRASTS,
    Contrast,
    softplus,
    squared_td_error,
)
from toptail.lab.critics.networks import Embeddings, norm, unit


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
