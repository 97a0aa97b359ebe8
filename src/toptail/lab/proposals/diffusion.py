"""Sampling a trained behaviour model: pools of candidates, and one action per row of a rollout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.lab.critics.learner import TARGET, Params
from toptail.lab.proposals.denoiser import Diffusion
from toptail.lab.proposals.sampling import denoise, path, row_keys

Rows: TypeAlias = NDArray[np.float32]

BLOCK = 16_384
"""Rows of one compiled call, at most; fewer rows are filled up to a power of two."""

SMALLEST_BLOCK = 16
"""Rows of one compiled call, at least."""


@dataclass(frozen=True, eq=False)
class DiffusionPolicy:
    """A behaviour model with its parameters: pi(a | s, g), sampled with the EMA parameters."""

    model: Diffusion
    """The model's settings."""

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
        """Width a of an action."""
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

        Candidate j of query i has the key ``row_keys(key, i, j)``: more candidates, or more
        queries behind these, leave the draws as they are. Without a number of ``steps`` of DDIM,
        this is ancestral DDPM sampling through all levels.

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
        """Draw one action [n, a] per row from its own key: see `sampling.row_keys`.

        A row's noise depends on its key alone. Its action does too, up to the rounding with which
        matrix products of different sizes differ; in batches of one size it is the same bits.
        """
        context = self._context(states, goals)
        if keys.shape != (len(context),):
            raise InputError(
                f"Each of the {len(context)} rows needs one key, but the keys have shape "
                f"{keys.shape}."
            )
        return self._draw(keys, context, steps)

    def _context(self, states: ArrayLike, goals: ArrayLike) -> Rows:
        """States and goals side by side [n, s + g], if they are what the model was trained on."""
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
        """Block by block, so that memory is bounded and few shapes are ever compiled."""
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

    way = path(model.schedule, steps)
    return denoise(predict, way, keys, dim, fresh_noise=steps is None)
