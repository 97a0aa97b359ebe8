"""The loss of a behaviour model on its training data and on held-out data."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.base import TARGET, Params
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail.lab.training.data import GoalSampling, OfflineData
from toptail.stats.resample import bootstrap_sums, cluster_sums, percentile_interval

ROWS = 16_384
"""Rows that a loss is measured on, by default."""

RESAMPLES = 2_000
"""Bootstrap draws behind an interval."""


class RowErrors(NamedTuple):
    """Denoising errors of rows of a data set."""

    error: NDArray[np.float64]
    """[n] weighted squared error of the predicted noise: see `Diffusion.errors`."""
    trajectory: NDArray[np.int64]
    """[n] code 0, 1, ... of the trajectory that each row is from."""


class LossGap(NamedTuple):
    """The EMA model's loss on its training data and on held-out data."""

    train: float
    """Mean denoising error on the training split."""
    held_out: float
    """Mean denoising error on the held-out split."""
    gap: float
    """Held-out less training loss."""
    low: float
    """Lower end of the gap's 95 % interval; whole trajectories are resampled, in each split."""
    high: float
    """Upper end of that interval."""


def held_out_loss(
    policy: DiffusionPolicy,
    data: OfflineData,
    key: jax.Array,
    *,
    sampling: GoalSampling,
    rows: int = ROWS,
) -> RowErrors:
    """The training loss of the EMA parameters, row by row, on any data set.

    Transitions, goals, levels and noise are drawn as in training; each row has one level, and the
    levels are spread evenly over the rows. Two models with the same key get the same rows, which
    are drawn with replacement, and the same noise.
    """
    error, last = _errors(policy.model, sampling, rows, policy.params[TARGET], data, key)
    _, code = np.unique(np.asarray(last), return_inverse=True)
    return RowErrors(np.asarray(error, np.float64), code.astype(np.int64))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _errors(
    model: Diffusion,
    sampling: GoalSampling,
    rows: int,
    params: Params,
    data: OfflineData,
    key: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Errors [rows], and the last row of each row's trajectory."""
    key_rows, key_level, key_noise = jax.random.split(key, 3)
    row, goal, *_ = sampling.rows(key_rows, data, rows)
    actions = data.actions[row]
    level = model.draw_levels(key_level, rows)
    noise = jax.random.normal(key_noise, actions.shape)
    triple = (data.observations[row], actions, data.observations[goal])
    error = model.errors(model.compute_params(params), *triple, level, noise)
    return error, data.last[row]


def loss_gap(train: RowErrors, held_out: RowErrors, rng: np.random.Generator) -> LossGap:
    """Compare the losses of two splits, with an interval clustered by trajectory."""
    draws = [_resampled_means(rows, rng) for rows in (train, held_out)]
    low, high = percentile_interval(draws[1] - draws[0])
    means = [float(rows.error.mean()) for rows in (train, held_out)]
    return LossGap(means[0], means[1], means[1] - means[0], float(low), float(high))


def _resampled_means(rows: RowErrors, rng: np.random.Generator) -> NDArray[np.float64]:
    columns = np.stack([rows.error, np.ones_like(rows.error)], axis=1)
    sums = bootstrap_sums(cluster_sums(columns, rows.trajectory), rng, RESAMPLES)
    means: NDArray[np.float64] = sums[:, 0] / sums[:, 1]
    return means
