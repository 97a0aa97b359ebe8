"""The cosine critic: the raw critic's contrastive training on normalized embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.embedding import CosineContrast
from toptail.lab.critics.networks import units
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="cosine",
    title="Cosine",
    place=3,
    group="main",
    network="cosine",
    deployed="f_cos",
    readouts=(
        Readout("f_raw", "contrastive", beside="raw"),
        Readout("f_cos", "contrastive", beside="cosine"),
        Readout("phi_norm", "contrastive", beside="norm"),
    ),
    ideal="log_ratio",
    cell=("monte_carlo", "classification", "behaviour"),
)


@dataclass(frozen=True)
class Cosine(CosineContrast):
    """Logits f_cos / temperature; the deployed scalar is f_cos, which lies in [-1, 1]."""

    name: ClassVar[str] = "cosine"
    deployed: ClassVar[str] = "f_cos"

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrast each pair's own goal with the other goals of the batch."""
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        return self.contrast_units(params, units(e))
