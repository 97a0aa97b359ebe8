"""Two heads on one network: a cosine score and a calibrated TD scalar from one pair of encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.embedding import EmbeddingCritic
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

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """The Bellman loss fits the TD head alone."""
        del key
        return self.both_losses(params, batch, self.q_td)
