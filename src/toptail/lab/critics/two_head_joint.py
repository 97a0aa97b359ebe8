"""Two heads on one network: a cosine score and a calibrated TD scalar from one pair of encoders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.heads import BellmanHeads
from toptail.lab.critics.learner import Batch, Info, Params
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="two_head_joint",
    title="Two heads, joint",
    place=6,
    group="two_head",
    network="head",
    deployed="q_td",
    readouts=(
        Readout("f_raw", "both"),
        Readout("f_cos", "both", scorer=True),
        Readout("phi_norm", "both"),
        Readout("q_td", "both", value=True, title="Two heads, joint: q_td"),
        Readout("q_hybrid", "both"),
    ),
    one_step="two_head",
)


@dataclass(frozen=True)
class TwoHeadJoint(BellmanHeads, EmbeddingCritic):
    """As the hybrid, but IQL fits q_td by itself, and selection uses it."""

    name: ClassVar[str] = "two_head_joint"
    deployed: ClassVar[str] = "q_td"

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders, head, V and target."""
        return self.init_all(key, state_dim, action_dim, goal_dim)

    def after_update(self, params: Params) -> Params:
        """Move the target."""
        return self.move_target(params)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """The Bellman loss fits the TD head alone."""
        del key
        return self.both_losses(params, batch, self.q_td)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, the TD scalar, and the sum."""
        return {**super().scalars(), **self.head_scalars()}
