"""The cosine objective: contrastive training on embeddings of length 1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.learner import LATER, Info, Params
from toptail.lab.critics.losses import (
    Contrast,
    contrast_pairs,
    require_weight,
    weigh_positives,
)
from toptail.lab.critics.networks import Embeddings


@dataclass(frozen=True)
class CosineContrast(EmbeddingCritic):
    """A critic with logits f_cos / temperature of all B x B pairs."""

    contrast: Contrast = "binary_nce"
    """The contrastive loss."""

    temperature: float = 0.05
    """What the cosine is divided by in the logits; the starting point if it is learned. Chosen
    once by validation retrieval AUC over a sweep."""

    learn_temperature: bool = False
    """Whether the temperature is a parameter (trained as its logarithm)."""

    positive_weight: float = field(default=1.0, metadata=LATER)
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
