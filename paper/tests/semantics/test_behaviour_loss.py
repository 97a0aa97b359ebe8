"""The loss of behaviour models on training and held-out data, and the gap between the two."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.proposals.test_diffusion_runs import CONFIG
from tests.training.toy import toy_dataset, walks
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.data import GoalSampling, device_data
from toptail.lab.training.loop import TrainConfig, make_train
from toptail_paper.semantics.draws import RowErrors, held_out_loss, loss_gap


def test_held_out_loss_is_the_training_loss_of_the_average() -> None:
    data, sampling = device_data(toy_dataset().val), GoalSampling()
    model = CONFIG.build()
    params = jax.jit(model.init, static_argnums=(1, 2, 3))(jax.random.key(0), 2, 2, 2)
    # Only the average is read: other parameters would give other errors.
    policy = DiffusionPolicy(model, jax.tree.map(np.zeros_like, params) | {"target": params})
    del policy.params["target"]["target"]
    key = jax.random.key(4)
    rows = held_out_loss(policy, data, key, sampling=sampling, rows=50)
    key_rows, key_level, key_noise = jax.random.split(key, 3)
    batch = jax.jit(sampling, static_argnums=2)(key_rows, data, 50)
    noise = jax.random.normal(key_noise, (50, 2))
    level = model.draw_levels(key_level, 50)
    expected = jax.jit(model.errors)(params, batch.states, batch.actions, batch.goals, level, noise)
    np.testing.assert_allclose(rows.error, expected, rtol=1e-4)
    # Four walks of 20 rows: the trajectory of a row is where its state is.
    row = np.asarray(jax.jit(sampling.rows, static_argnums=2)(key_rows, data, 50)[0])
    assert (np.unique(row // 20, return_inverse=True)[1] == rows.trajectory).all()


def test_the_gap_is_a_difference_of_means_with_a_clustered_interval() -> None:
    rng = np.random.default_rng(0)

    def split(shift: float) -> RowErrors:
        """60 trajectories of 10 rows that are all alike: 60 numbers, not 600."""
        own = rng.normal(shift, 0.5, 60)
        return RowErrors(np.repeat(own, 10), np.repeat(np.arange(60), 10))

    train, held_out = split(1.0), split(2.0)
    gap = loss_gap(train, held_out, np.random.default_rng(1))
    np.testing.assert_allclose(gap.gap, held_out.error.mean() - train.error.mean())
    np.testing.assert_allclose([gap.train, gap.held_out], [1.0, 2.0], atol=0.25)
    standard_error = np.sqrt((train.error.var() + held_out.error.var()) / 60)
    np.testing.assert_allclose((gap.high - gap.low) / 2, 1.96 * standard_error, rtol=0.1)
    assert gap.low < gap.gap < gap.high


@pytest.mark.slow
def test_a_model_that_memorizes_has_a_gap() -> None:
    """120 rows and 1,500 steps: the model knows them, and no others."""
    train, *unseen = (device_data(walks(n, 20, seed)) for n, seed in ((6, 3), (40, 4), (40, 5)))
    model = Diffusion(hidden=(64, 64), levels=20, time_dim=8, ema_decay=0.99)
    config = TrainConfig(model, 1_500, 64, 3e-3, GoalSampling())
    state, _ = jax.jit(make_train(config))(jax.random.key(0), train)
    policy = DiffusionPolicy(model, state.params)
    known, new, other = (
        held_out_loss(policy, data, jax.random.key(i), sampling=GoalSampling(), rows=2_000)
        for i, data in enumerate((train, *unseen))
    )
    gap = loss_gap(known, new, np.random.default_rng(0))
    assert gap.low > 0
    assert gap.held_out > 1.5 * gap.train
    none = loss_gap(other, new, np.random.default_rng(0))
    assert none.low < 0 < none.high
