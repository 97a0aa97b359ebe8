"""The cosine critic: the same contrastive training on normalized embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.bilinear import EmbeddingCritic
from toptail.lab.critics.losses import Contrast, contrast_pairs
from toptail.lab.critics.networks import Embeddings, unit


@dataclass(frozen=True)
class Cosine(EmbeddingCritic):
    """Logits f_cos / temperature; the deployed scalar is f_cos, which lies in [-1, 1]."""

    name: ClassVar[str] = "cosine"
    deployed: ClassVar[str] = "f_cos"

    contrast: Contrast = "binary_nce"
    """The contrastive loss."""

    temperature: float = 0.1
    """What the cosine is divided by in the logits; the starting point if it is learned."""

    learn_temperature: bool = False
    """Whether the temperature is a parameter (trained as its logarithm)."""

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders, and the temperature where it is learned."""
        params = super().init(key, state_dim, action_dim, goal_dim)
        if self.learn_temperature:
            params["log_temperature"] = jnp.log(jnp.float32(self.temperature))
        return params

    def contrastive_loss(self, params: Params, e: Embeddings) -> tuple[jax.Array, Info]:
        """Contrast the cosines of all B x B pairs."""
        # Scaling phi rather than the B x B product saves a pass over it.
        if self.learn_temperature:
            temperature = jnp.exp(params["log_temperature"])
            loss, info = self._contrast_at(e, temperature)
            return loss, info | {"temperature": temperature}
        return self._contrast_at(e, jnp.float32(self.temperature))

    def _contrast_at(self, e: Embeddings, temperature: jax.Array) -> tuple[jax.Array, Info]:
        phi, psi = unit(e.phi) / temperature, unit(e.psi)
        return contrast_pairs(self.contrast, phi, psi, bfloat16=self.encoders.half)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrast each pair's own goal with the other goals of the batch."""
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        return self.contrastive_loss(params, e)
