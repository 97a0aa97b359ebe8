"""The raw bilinear critic: contrastive training of phi(s, a) . psi(g), deployed as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import jax

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.joint_mlp import ensemble_readouts
from toptail.lab.critics.losses import (
    CONTRASTS,
    Contrast,
    contrast_pairs,
    require_weight,
    weigh_positives,
)
from toptail.lab.critics.networks import Embeddings, all_pairs, inner
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="raw",
    title="Raw bilinear",
    place=2,
    group="main",
    network="bilinear",
    deployed="f_raw",
    readouts=(
        *Readout.ensemble("f_raw", "contrastive", beside="raw"),
        Readout("f_cos", "contrastive", beside="cosine"),
        Readout("phi_norm", "contrastive", beside="norm"),
    ),
    ideal="log_ratio",
    cell=("monte_carlo", "classification", "behaviour"),
)

BETA: Final = 1.0
"""Standard deviations of the copies that the lower bound subtracts from their mean."""


@dataclass(frozen=True)
class Raw(EmbeddingCritic):
    """Logits phi . psi / sqrt(d); the deployed scalar is phi . psi, which nothing bounds."""

    name: ClassVar[str] = "raw"
    deployed: ClassVar[str] = "f_raw"

    contrast: Contrast = "binary_nce"
    positive_weight: float = 1.0
    """How often each positive counts in binary NCE, where each negative counts once."""

    def __post_init__(self) -> None:
        require_weight(self.contrast, self.positive_weight)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        return self.contrasted(self.embed(params, batch.states, batch.actions, batch.goals))

    def contrasted(self, e: Embeddings) -> tuple[jax.Array, Info]:
        """Contrast each pair's own goal with the other goals of the batch."""
        scale = self.encoders.embed_dim**-0.5
        if self.encoders.half:
            found = contrast_pairs(self.contrast, e.phi * scale, e.psi, bfloat16=True)
        else:
            logits = all_pairs(e.phi, e.psi) / self.encoders.embed_dim**0.5
            found = CONTRASTS[self.contrast](logits)
        return weigh_positives(found, e.phi * scale, e.psi, self.positive_weight)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, and the lower ones of the copies' inner products."""

        def members(_: Params, e: Embeddings) -> jax.Array:
            return inner(e.phi, e.psi)

        return {**super().scalars(), **ensemble_readouts(members, BETA, "f_raw")}
