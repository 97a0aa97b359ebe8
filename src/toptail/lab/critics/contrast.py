"""The cosine objective: contrastive training on embeddings of length 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.learner import Info, Params
from toptail.lab.critics.losses import Contrast, contrast_pairs
from toptail.lab.critics.networks import Embeddings


@dataclass(frozen=True)
class CosineContrast:
    """Logits f_cos / temperature of all B x B pairs; a part of critics, beside their encoders."""

    contrast: Contrast = "binary_nce"
    """The contrastive loss."""

    temperature: float = 0.05
    """What the cosine is divided by in the logits; the starting point if it is learned. Chosen
    once by validation retrieval AUC over a sweep."""

    learn_temperature: bool = False
    """Whether the temperature is a parameter (trained as its logarithm)."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise InputError(f"{option('temperature', self.temperature)} must be more than 0.")

    def init_temperature(self) -> Params:
        """The temperature's own parameters: none where it is fixed."""
        if not self.learn_temperature:
            return {}
        return {"log_temperature": jnp.log(jnp.float32(self.temperature))}

    def contrast_units(
        self, params: Params, units: Embeddings, *, bfloat16: bool
    ) -> tuple[jax.Array, Info]:
        """The contrastive loss of embeddings [members, B, d] of length 1."""
        learned = self.learn_temperature
        temperature = (
            jnp.exp(params["log_temperature"]) if learned else jnp.float32(self.temperature)
        )
        # Scaling phi rather than the B x B product saves a pass over it.
        phi = units.phi / temperature
        loss, info = contrast_pairs(self.contrast, phi, units.psi, bfloat16=bfloat16)
        return loss, info | ({"temperature": temperature} if learned else {})
