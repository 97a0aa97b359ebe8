from __future__ import annotations

import jax
import pytest

from tests.proposals.mixture import data_set
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.loop import TrainConfig, make_train


@pytest.fixture(scope="session")
def mixture_policy() -> DiffusionPolicy:
    """A small model trained on the known mixture by the trainer of the critics."""
    model = Diffusion(hidden=(64, 64), levels=50, time_dim=16, ema_decay=0.995)
    config = TrainConfig(model, steps=3_000, batch_size=512, learning_rate=3e-3)
    state, _ = jax.jit(make_train(config))(jax.random.key(0), data_set(20_000, seed=0))
    return DiffusionPolicy(model, state.params)
