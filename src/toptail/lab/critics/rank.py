"""Pairwise ranking of values: of two rows of a batch, the one nearer to its goal scores higher.

RankNet's loss (Burges et al., 2005) on the order of the recorded returns gamma^d, for all pairs of
a batch: the order is fitted, and no number. A goal of any trajectory counts as farther than every
goal that followed.

Ideal: scores whose differences are the log-odds that one row's goal is nearer than the other's;
only the order is determined. Deviations: RankQ, the pairwise value ranking that the paper names,
ranks bootstrapped values; this critic ranks recorded ones, and has no target network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.joint_mlp import JointMLP
from toptail.lab.critics.losses import softplus
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="rank",
    title="Pairwise ranking",
    place=20,
    group="other",
    network="mlp",
    deployed="rank",
    readouts=Readout.ensemble("rank", "returns"),
)


@dataclass(frozen=True)
class Rank(JointMLP):
    """Mean of softplus(f_j - f_i) over all pairs of which i is nearer to its goal than j."""

    name: ClassVar[str] = "rank"
    deployed: ClassVar[str] = "rank"

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Rank each row with its own goal above farther ones, and above rows with any goal."""
        del key
        goals = jnp.stack([batch.goals, column(batch, "random_goals")])
        followed, anywhere = jnp.split(
            self.members(params, batch.states, batch.actions, goals), 2, axis=1
        )
        near = followed[:, 0]
        others = jnp.concatenate([near, anywhere[:, 0]], axis=1)
        steps = column(batch, "offsets")
        distances = jnp.concatenate([steps, jnp.full_like(steps, jnp.inf)])
        nearer = (steps[:, None] < distances[None]).astype(jnp.float32)
        gap = near[:, :, None] - others[:, None]
        pairs = len(near) * jnp.sum(nearer)
        loss = jnp.sum(nearer[None] * softplus(-gap)) / pairs
        right = jnp.sum(nearer[None] * (gap > 0).astype(jnp.float32)) / pairs
        return loss, {"accuracy": right}
