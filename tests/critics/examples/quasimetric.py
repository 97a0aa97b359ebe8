"""A quasimetric critic: minus an asymmetric distance from phi(s, a) to psi(g)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.losses import symmetric_info_nce
from toptail.lab.critics.networks import norm
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="quasimetric",
    title="Quasimetric",
    place=20,
    group="other",
    network="quasimetric",
    deployed="minus_distance",
    readouts=(
        Readout("f_raw", "contrastive"),
        Readout("f_cos", "contrastive"),
        Readout("phi_norm", "contrastive"),
        Readout("minus_distance", "contrastive"),
    ),
    ideal="log_ratio",
)


def mrn_distance(x: jax.Array, y: jax.Array) -> jax.Array:
    """max_i relu(x_i - y_i) over one half of the axes, plus |x - y| over the other half.

    The metric residual network of Liu et al. (2023); [..., d] and [..., d] to [...].
    """
    half = x.shape[-1] // 2
    further = jnp.max(jax.nn.relu(x[..., :half] - y[..., :half]), axis=-1)
    return further + norm(x[..., half:] - y[..., half:])


@dataclass(frozen=True)
class Quasimetric(EmbeddingCritic):
    """Logits -d(phi, psi) of all pairs, trained by symmetric InfoNCE."""

    name: ClassVar[str] = "quasimetric"
    deployed: ClassVar[str] = "minus_distance"

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        return symmetric_info_nce(-mrn_distance(e.phi[:, :, None], e.psi[:, None]))

    def scalars(self) -> Mapping[str, Scalar]:
        own: Scalar = lambda _, e: -jnp.mean(mrn_distance(e.phi, e.psi), axis=0)  # noqa: E731
        return {**super().scalars(), "minus_distance": own}
