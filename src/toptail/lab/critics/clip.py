"""The clipped raw critic: logits and scores that cannot leave an interval.

The score is clip(phi . psi / sqrt(d), -c, c), in training and in use: no action can gain by making
phi longer once its score has reached c.

Ideal: the raw critic's, clipped. Deviations: the paper names clip(phi . psi, -c, c) without a c;
here c is in the units of the logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import Info, Params
from toptail.lab.critics.embedding import Scalar
from toptail.lab.critics.joint_mlp import ensemble_readouts
from toptail.lab.critics.losses import CONTRASTS
from toptail.lab.critics.networks import Embeddings, all_pairs, inner
from toptail.lab.critics.raw import BETA, Raw
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="clip",
    title="Raw, clipped",
    place=21,
    group="other",
    network="bilinear",
    deployed="f_clip",
    readouts=(
        *Readout.ensemble("f_clip", "contrastive"),
        *Readout.ensemble("f_raw", "contrastive"),
        Readout("f_cos", "contrastive"),
        Readout("phi_norm", "contrastive"),
    ),
)


@dataclass(frozen=True)
class Clip(Raw):
    """Logits clip(phi . psi / sqrt(d), -limit, limit), which are the score, too."""

    name: ClassVar[str] = "clip"
    deployed: ClassVar[str] = "f_clip"

    limit: float = 5.0
    """The largest size of a logit."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.limit > 0:
            raise InputError(f"{option('limit', self.limit)} must be more than 0.")
        if self.positive_weight != 1:
            raise InputError(f"{option('positive_weight')} has no effect on clip: leave it out.")

    def _clipped(self, products: jax.Array) -> jax.Array:
        logits = products / self.encoders.embed_dim**0.5
        return jnp.clip(logits, -self.limit, self.limit)

    def contrasted(self, e: Embeddings) -> tuple[jax.Array, Info]:
        return CONTRASTS[self.contrast](self._clipped(all_pairs(e.phi, e.psi)))

    def scalars(self) -> Mapping[str, Scalar]:
        """The raw critic's scalars, and the clipped ones."""

        def members(_: Params, e: Embeddings) -> jax.Array:
            return self._clipped(inner(e.phi, e.psi))

        return {**super().scalars(), **ensemble_readouts(members, BETA, "f_clip")}
