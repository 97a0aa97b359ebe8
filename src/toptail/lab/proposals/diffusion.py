"""Trained behaviour models: sampling candidates and rollouts, and their runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.lab.critics.base import TARGET, Params
from toptail.lab.proposals.denoiser import Diffusion, denoise, row_keys, sampling_path
from toptail.lab.training.checkpoints import load_params
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.runs import PARAMS, invalid_reason, read_run, stored_config

Rows: TypeAlias = NDArray[np.float32]

BLOCK = 16_384
"""Rows of one compiled call, at most; fewer rows are padded to a power of two."""

SMALLEST_BLOCK = 16
"""Rows of one compiled call, at least."""


@dataclass(frozen=True, eq=False)
class DiffusionPolicy:
    """A behaviour model with its parameters: pi(a | s, g), sampled with the EMA parameters."""

    model: Diffusion
    params: Params
    """One seed's parameters, with their moving average."""

    def __post_init__(self) -> None:
        if TARGET not in self.params:
            raise InputError(
                "These parameters have no moving average ('target'), so they are not those of a "
                "trained diffusion model: load the params of a diffusion run."
            )

    @property
    def action_dim(self) -> int:
        return int(self.params[TARGET][f"bias_{len(self.model.hidden)}"].shape[-1])

    @property
    def context_dim(self) -> int:
        """Width of a state and a goal together."""
        inputs = int(self.params[TARGET]["kernel_denoiser"].shape[-2])
        return inputs - self.action_dim - self.model.time_dim

    def sample(
        self,
        key: jax.Array,
        states: ArrayLike,
        goals: ArrayLike,
        count: int,
        steps: int | None = None,
    ) -> Rows:
        """Draw ``count`` actions for each query.

        Candidate j of query i has the key ``row_keys(key, i, j)``: more candidates or more queries
        do not change the first draws. ``steps`` is the number of DDIM steps; by default sampling is
        ancestral DDPM through all levels.

        Returns
        -------
        Actions [n, count, a] in [-1, 1] for states [n, s] and goals [n, g].
        """
        if count < 1:
            raise InputError(f"A pool has at least 1 candidate, not {count}.")
        context = self._context(states, goals)
        n = len(context)
        keys = row_keys(key, np.arange(n)[:, None], np.arange(count)[None])
        rows = np.repeat(context, count, axis=0)
        return self._draw(keys.reshape(-1), rows, steps).reshape(n, count, self.action_dim)

    def sample_rows(
        self, keys: jax.Array, states: ArrayLike, goals: ArrayLike, steps: int | None = None
    ) -> Rows:
        """Draw one action [n, a] per row from its own key: see `row_keys`.

        A row's noise depends on its key alone. So does its action, up to the rounding of matrix
        products of different sizes; in batches of one size it has the same bits.
        """
        context = self._context(states, goals)
        if keys.shape != (len(context),):
            raise InputError(
                f"Each of the {len(context)} rows needs one key, but the keys have shape "
                f"{keys.shape}."
            )
        return self._draw(keys, context, steps)

    def _context(self, states: ArrayLike, goals: ArrayLike) -> Rows:
        """States and goals side by side [n, s + g]; refused if they do not fit the model."""
        s, g = (np.asarray(x, np.float32) for x in (states, goals))
        if s.ndim != 2 or g.ndim != 2 or len(s) != len(g):
            raise InputError(
                f"States and goals must be two tables of as many rows, but they have shapes "
                f"{s.shape} and {g.shape}."
            )
        if s.shape[1] + g.shape[1] != self.context_dim:
            raise InputError(
                f"The model reads {self.context_dim} numbers of state and goal, but states have "
                f"{s.shape[1]} columns and goals have {g.shape[1]}: use the model of this task."
            )
        context = np.concatenate([s, g], axis=1)
        bad = np.flatnonzero(~np.isfinite(context).all(axis=1))
        if bad.size:
            raise InputError(
                f"Row {bad[0]} of the states or goals holds a number that is not finite."
            )
        return context

    def _draw(self, keys: jax.Array, context: Rows, steps: int | None) -> Rows:
        """Draw in blocks, so that memory is bounded and few shapes are compiled."""
        blocks = []
        for start in range(0, len(context), BLOCK):
            rows = context[start : start + BLOCK]
            n = len(rows)
            missing = max(SMALLEST_BLOCK, 1 << (n - 1).bit_length()) - n
            own = keys[start : start + n]
            if missing:
                rows = np.pad(rows, [(0, missing), (0, 0)])
                own = jnp.concatenate([own, jnp.broadcast_to(own[:1], (missing,))])
            drawn = _sample_block(
                self.model, self.action_dim, steps, self.params[TARGET], own, rows
            )
            blocks.append(drawn[:n])
        if not blocks:
            return np.zeros((0, self.action_dim), np.float32)
        return np.concatenate([np.asarray(block) for block in blocks])


@partial(jax.jit, static_argnums=(0, 1, 2))
def _sample_block(
    model: Diffusion,
    dim: int,
    steps: int | None,
    params: Params,
    keys: jax.Array,
    context: jax.Array,
) -> jax.Array:
    """Draw one action per key [n] and context [n, s + g]: [n, dim]."""
    params = model.compute_params(params)

    def predict(x: jax.Array, level: jax.Array) -> jax.Array:
        return model.predict(params, x, level, context)

    path = sampling_path(model.schedule, steps)
    return denoise(predict, path, keys, dim, fresh_noise=steps is None)


@dataclass(frozen=True)
class DiffusionRun(LearnerConfig):
    """One behaviour model on one task, for `training.session.train_runs`.

    ``critic`` is "diffusion", and ``settings`` are fields of `Diffusion`. ``gamma`` is the
    discount of the goals' geometric distances; there is no reward.
    """

    def build(self) -> Diffusion:
        """The model with its settings."""
        if self.critic != Diffusion.name:
            raise InputError(
                f"'{self.critic}' is not a behaviour model: the only one is '{Diffusion.name}'."
            )
        own, known = dict(self.settings), {field.name for field in fields(Diffusion)}
        for name in own:
            if name not in known:
                raise InputError(
                    f"A diffusion model has no setting '{name}'; its settings are "
                    f"{', '.join(sorted(known))}."
                )
        return Diffusion(**{"bfloat16": self.bfloat16, **own})


def load_policy(
    folder: str | Path, task: str | None = None, config_hash: str | None = None
) -> DiffusionPolicy:
    """Load the policy of a finished run; an invalid or unexpected run is refused.

    Its parameters are put on the device once, since a rollout samples at every step.
    """
    run = read_run(folder)
    reason = invalid_reason(run, task, config_hash)
    if reason is not None:
        raise InputError(
            f"{folder} is not a valid run of a behaviour model ({reason}): train it again."
        )
    config = stored_config(run, DiffusionRun)
    return DiffusionPolicy(config.build(), jax.device_put(load_params(run.folder / PARAMS)))
