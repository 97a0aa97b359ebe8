"""Critics with embeddings: encoders phi and psi, their scalars, and the cosine objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import Critic, Factors, Info, Params, Read, half_kernels
from toptail.lab.critics.losses import Contrast, contrast_pairs, require_weight, weigh_positives
from toptail.lab.critics.networks import (
    Embeddings,
    Encoders,
    StackedEncoders,
    inner,
    join,
    norm,
    units,
)

Scalar: TypeAlias = Callable[[Params, Embeddings], jax.Array]
"""(params, phi and psi [members, ..., d]) -> scores [...]: a readout of embeddings."""


def capped_score(e: Embeddings, cap: jax.Array) -> jax.Array:
    """Phi . psi with each member's ||phi|| clipped at its ``cap`` [members]."""
    caps = cap.reshape(cap.shape + (1,) * (e.phi.ndim - 2))
    shrink = jnp.minimum(1.0, caps / norm(e.phi))
    return jnp.mean(shrink * inner(e.phi, e.psi), axis=0)


SCALARS: Final[Mapping[str, Scalar]] = {
    "f_raw": lambda _, e: jnp.mean(inner(e.phi, e.psi), axis=0),
    "f_cos": lambda _, e: jnp.mean(inner(*units(e)), axis=0),
    "phi_norm": lambda _, e: jnp.mean(norm(e.phi), axis=0),
}
"""The inner product of phi and psi, their cosine, and the norm of phi alone: means over members."""


@dataclass(frozen=True)
class EmbeddingCritic(Critic):
    """A critic whose scalars are read from phi(s, a) and psi(g)."""

    encoders: Encoders = StackedEncoders()

    def compute_params(self, params: Params) -> Params:
        return half_kernels(params) if self.encoders.half else params

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        return self.encoders.init(key, state_dim, action_dim, goal_dim)

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        """phi(s, a) and psi(g), not normalized."""
        return self.encoders.embed(params, states, actions, goals)

    def scalars(self) -> Mapping[str, Scalar]:
        """The readouts, as functions of the embeddings; by default `SCALARS`."""
        return SCALARS

    def readouts(self) -> Mapping[str, Read]:
        def read(of: Scalar) -> Read:
            return lambda params, s, a, g: of(params, self.embed(params, s, a, g))

        return {name: read(of) for name, of in self.scalars().items()}

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """The deployed scalar, and the mean length of either embedding."""
        found = super().held_out(params, states, actions, goals)
        e = self.embed(params, states, actions, goals)
        found["phi_norm"] = jnp.mean(norm(e.phi.astype(jnp.float32)))
        found["psi_norm"] = jnp.mean(norm(e.psi.astype(jnp.float32)))
        return found

    def factors(self, readout: str) -> Factors | None:
        """Phi and psi, each by its encoder alone, for the scalars that are read from them."""
        of = self.scalars().get(readout)
        if of is None:
            return None
        return Factors(
            lambda params, s, a: self.encoders.side(params, "phi", join(s, a)),
            lambda params, g: self.encoders.side(params, "psi", g),
            lambda params, phi, psi: of(params, Embeddings(phi, psi)),
        )


@dataclass(frozen=True)
class CosineContrast(EmbeddingCritic):
    """A critic with logits f_cos / temperature of all B x B pairs."""

    contrast: Contrast = "binary_nce"
    temperature: float = 0.05
    """Divisor of the cosine in the logits, or its first value if it is learned. The default was
    chosen by validation retrieval AUC."""
    learn_temperature: bool = False
    """Whether the temperature is a parameter (trained as its logarithm)."""
    positive_weight: float = 1.0
    """How often each positive counts in binary NCE, where each negative counts once."""

    def __post_init__(self) -> None:
        require_weight(self.contrast, self.positive_weight)
        if not 0 < self.temperature < math.inf:
            raise InputError(f"{option('temperature', self.temperature)} must be more than 0.")

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders, and the temperature where it is learned."""
        encoders = super().init(key, state_dim, action_dim, goal_dim)
        if not self.learn_temperature:
            return encoders
        return {**encoders, "log_temperature": jnp.log(jnp.float32(self.temperature))}

    def contrast_units(self, params: Params, units: Embeddings) -> tuple[jax.Array, Info]:
        """The contrastive loss of embeddings [members, B, d] of length 1."""
        learned = self.learn_temperature
        temperature = (
            jnp.exp(params["log_temperature"]) if learned else jnp.float32(self.temperature)
        )
        # Scaling phi rather than the B x B product saves a pass over it.
        phi = units.phi / temperature
        half = self.encoders.half
        found = contrast_pairs(self.contrast, phi, units.psi, bfloat16=half)
        loss, info = weigh_positives(found, phi, units.psi, self.positive_weight)
        return loss, info | ({"temperature": temperature} if learned else {})
