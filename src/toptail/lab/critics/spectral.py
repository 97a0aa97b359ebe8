"""The raw critic with spectrally normalized encoders (Miyato et al., 2018).

Every matrix of phi and psi is divided by its largest singular value, so that an encoder cannot
stretch its input: neither embedding grows faster than its input does. Without LayerNorm, which
would undo that. The logits have a learned scale, which changes no order of scores.

Ideal: the raw critic's, among functions of bounded slope. Deviations: the singular value follows by
one step of power iteration after each update, as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import TARGET, Batch, Info, Params
from toptail.lab.critics.networks import Embeddings, Side, StackedEncoders, unit
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="spectral",
    title="Raw, spectral norm",
    place=22,
    group="other",
    network="bilinear",
    deployed="f_raw",
    readouts=(
        *Readout.ensemble("f_raw", "contrastive"),
        Readout("f_cos", "contrastive"),
        Readout("phi_norm", "contrastive"),
    ),
)


def power_step(kernel: jax.Array, vector: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One step of power iteration for kernels [n, in, out]: left and right vectors of length 1."""
    left = unit(jnp.einsum("nio,no->ni", kernel, vector))
    return left, unit(jnp.einsum("nio,ni->no", kernel, left))


def _kernels(params: Params) -> dict[str, jax.Array]:
    """The matrices of both encoders in float32, under the names of their vectors."""
    return {
        name.replace("kernel", "vector"): value.astype(jnp.float32)
        for name, value in params.items()
        if name.startswith("kernel")
    }


@dataclass(frozen=True)
class SpectralEncoders(StackedEncoders):
    """Encoders whose matrices are divided by their largest singular values.

    The right singular vectors stand under `TARGET`: no gradient reaches them, and `vectors` moves
    them after each update.
    """

    layer_norm: bool = False

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        params = super().init(key, state_dim, action_dim, goal_dim)
        ones = {name: unit(jnp.ones_like(k[:, 0])) for name, k in _kernels(params).items()}
        return {**params, TARGET: self.vectors({**params, TARGET: ones})}

    def vectors(self, params: Params) -> Params:
        """The right singular vectors after one more step of power iteration."""
        before = params[TARGET]
        return {name: power_step(k, before[name])[1] for name, k in _kernels(params).items()}

    def normalized(self, params: Params) -> Params:
        """The encoders' parameters with each matrix over its largest singular value."""
        vectors = jax.lax.stop_gradient(params[TARGET])

        def over_largest(name: str, kernel: jax.Array) -> jax.Array:
            right = vectors[name.replace("kernel", "vector")]
            wide = kernel.astype(jnp.float32)
            left = jax.lax.stop_gradient(power_step(wide, right)[0])
            largest = jnp.einsum("ni,nio,no->n", left, wide, right)
            return (wide / largest[:, None, None]).astype(kernel.dtype)

        return {
            name: over_largest(name, value) if name.startswith("kernel") else value
            for name, value in params.items()
            if name != TARGET
        }

    def embed_goals(
        self, params: Params, states: jax.Array, actions: jax.Array, *goal_sets: jax.Array
    ) -> tuple[Embeddings, ...]:
        return super().embed_goals(self.normalized(params), states, actions, *goal_sets)

    def side(self, params: Params, side: Side, rows: jax.Array) -> jax.Array:
        return super().side(self.normalized(params), side, rows)


@dataclass(frozen=True)
class Spectral(Raw):
    """Logits scale * phi . psi / sqrt(d) of encoders that stretch nothing."""

    name: ClassVar[str] = "spectral"

    encoders: SpectralEncoders = SpectralEncoders()

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        encoders = super().init(key, state_dim, action_dim, goal_dim)
        return {**encoders, "log_scale": jnp.zeros(1)}

    def after_update(self, params: Params) -> Params:
        return {**params, TARGET: self.encoders.vectors(params)}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """The raw critic's loss with a learned scale of the logits."""
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        scale = jnp.exp(params["log_scale"][0])
        loss, info = self.contrasted(e._replace(phi=scale * e.phi))
        return loss, {**info, "scale": scale}
