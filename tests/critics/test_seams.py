"""What further critics may need: members of embeddings, settings, numbers beside the rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics import slow_full as slow
from tests.critics.full_cases import KEY, double, quick_jit, random_batch, random_params
from tests.training.toy import toy_config, toy_data
from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.embedding import capped_score
from toptail.lab.critics.losses import (
    CONTRASTS,
    Contrast,
    softplus,
    squared_td_error,
)
from toptail.lab.critics.networks import Embeddings, norm, unit
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import with_settings
from toptail.lab.training.config import RunOptions, labelled
from toptail.lab.training.data import GoalSampling
from toptail.lab.training.loop import TrainConfig, init_state, train_step


@pytest.mark.parametrize("members", [2, 10])
def test_an_ensemble_of_embeddings_has_a_minimum_and_a_lower_bound(members: int) -> None:
    critic = with_settings(Raw(), {"hidden": (16, 16), "embed_dim": 8, "ensemble": members})
    params, batch = random_params(critic), random_batch()
    rows = (batch.states, batch.actions, batch.goals)
    readouts = critic.readouts()
    found = quick_jit(lambda *at: {name: of(params, *at) for name, of in readouts.items()})(*rows)
    wide = slow.Settings(members=members)
    phi, psi = slow.embed(double(params), wide, *(np.asarray(x, np.float64) for x in rows))
    scores = (phi * psi).sum(axis=-1)
    assert scores.shape == (members, len(batch.states))
    spread = np.sqrt(((scores - scores.mean(0)) ** 2).mean(0))
    for name, expected in {
        "f_raw": scores.mean(0),
        "f_raw_min": scores.min(0),
        "f_raw_lcb": scores.mean(0) - spread,
    }.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4)
        assert critic.factors(name) is not None


def test_a_setting_that_only_one_critic_has_stands_in_labels() -> None:
    options = RunOptions(steps=4, log_every=2, batch_size=8)
    config = options.config("walks", "conservative[penalty=0.25,drawn=2,hidden=8]")
    settings = config.build().settings()
    assert (settings["penalty"], settings["drawn"], settings["hidden"]) == (0.25, 2, (8, 8, 8))
    assert config.name == "conservative[drawn=2,hidden=8,penalty=0.25]"
    assert labelled(config, config.name).content == config.content
    with pytest.raises(InputError, match="drawn is 'x', not a number"):
        options.config("walks", "conservative[drawn=x]")
    with pytest.raises(InputError, match="has no effect on raw"):
        options.config("walks", "raw[penalty=1]")
    with pytest.raises(InputError, match="no critic has a setting 'patience'"):
        options.config("walks", "raw[patience=1]")
    assert options.config("walks", "nce_mlp[negatives=15]").build().settings()["negatives"] == 15


def test_numbers_beside_the_rows_are_part_of_the_data() -> None:
    plain = toy_data()
    extra = np.arange(2.0 * len(plain.rows.actions), dtype=np.float32).reshape(-1, 2)
    data = plain.with_extra(extra, made="elsewhere")
    assert data.sha256 == plain.sha256
    assert data.extra["made"] == "elsewhere"
    assert plain.extra == {}
    assert data.extra["sha256"] != plain.with_extra(extra + 1).extra["sha256"]
    assert data.rows.extra is not None
    np.testing.assert_array_equal(data.rows.extra, extra)

    class Beside(Raw):
        def further(self, key: jax.Array, data: object, batch: Batch) -> dict[str, jax.Array]:
            del key
            return {"beside": data.extra[column(batch, "rows")]}  # type: ignore[attr-defined]

        def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
            loss, _ = super().loss(params, batch, key)
            return loss, {name: column(batch, name) for name in ("rows", "beside")}

    critic = with_settings(Beside(), dict(toy_config().settings))
    config = TrainConfig(critic, batch_size=16, sample=GoalSampling())
    rows = data.rows
    step = quick_jit(lambda key: train_step(config, init_state(config, key, rows), rows)[1])
    info = step(KEY)
    np.testing.assert_array_equal(info["beside"], extra[np.asarray(info["rows"])])
    with pytest.raises(InputError, match="3 rows of further numbers for 200 rows"):
        plain.with_extra(extra[:3])


# Contrastive losses, softplus and lengths by hand and at extreme inputs.


@pytest.mark.parametrize("name", CONTRASTS)
def test_contrast_falls_when_positives_rise_and_is_finite_at_extremes(name: Contrast) -> None:
    contrast = quick_jit(jax.value_and_grad(lambda logits: CONTRASTS[name](logits)[0]))
    low, high = (float(contrast(level * jnp.eye(4)[None])[0]) for level in (0.0, 5.0))
    assert high < low
    for level in (0.0, 1e4, -1e4):
        value, slope = contrast(jnp.full((1, 4, 4), level) + level * jnp.eye(4))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


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
