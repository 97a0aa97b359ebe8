"""Contrastive successor distance (CMD; Myers et al., 2024): a temporal distance by InfoNCE.

Logits are c(g) - d(phi(s, a), psi(g)), where d is a metric residual network (MRN; Liu et al., 2023)
and c is a network of the goal alone. The potential c takes up what depends on the goal only, so
that d is a distance; selection maximizes -d.

Ideal: log p(g | s, a) less a function of g, so that actions are ordered as by the raw critic's
ideal. Deviations from the published method: a goal is embedded without an action, embeddings have
64 coordinates (all B x B distances are computed coordinate by coordinate), and no actor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.losses import symmetric_info_nce
from toptail.lab.critics.networks import Stack, StackedEncoders, norm
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="temporal_distance",
    title="Temporal distance (CMD)",
    place=15,
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
    """|x - y| over the first half of the axes, plus max_i relu(x_i - y_i) over the second.

    [..., d] and [..., d], whose axes broadcast, to [...].
    """
    half = x.shape[-1] // 2
    further = jnp.max(jax.nn.relu(x[..., half:] - y[..., half:]), axis=-1)
    return norm(x[..., :half] - y[..., :half]) + further


@dataclass(frozen=True)
class TemporalDistance(EmbeddingCritic):
    """Logits c(g) - d(phi(s, a), psi(g)) of all pairs, trained by symmetric InfoNCE."""

    name: ClassVar[str] = "temporal_distance"
    deployed: ClassVar[str] = "minus_distance"

    encoders: StackedEncoders = StackedEncoders(embed_dim=64)

    @property
    def potential(self) -> Stack:
        """The networks c(g), one for each copy of the encoders."""
        return self.encoders.beside("c", self.encoders.ensemble)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        key_encoders, key_potential = jax.random.split(key)
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        return {**encoders, "potential": self.potential.init(key_potential, {"c": goal_dim})}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        c = self.potential.apply(params["potential"], {"c": batch.goals})["c"][..., 0]
        distances = mrn_distance(e.phi[:, :, None], e.psi[:, None])
        potential = jnp.broadcast_to(c.astype(jnp.float32)[:, None], distances.shape)
        return symmetric_info_nce(potential - distances)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, and minus the distance."""
        own: Scalar = lambda _, e: -jnp.mean(mrn_distance(e.phi, e.psi), axis=0)  # noqa: E731
        return {**super().scalars(), "minus_distance": own}
