"""The contrastive MLP: the contrastive objective in TD-Q's function class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.joint_mlp import JointMLP
from toptail.lab.critics.losses import softplus
from toptail.lab.critics.networks import require_sizes
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="nce_mlp",
    title="Contrastive, MLP network",
    place=8,
    group="control",
    network="mlp",
    deployed="logit",
    readouts=Readout.ensemble("logit", "contrastive"),
    ideal="log_ratio",
    cell=("monte_carlo", "classification", "behaviour"),
)


def sampled_binary_nce(
    positive: jax.Array, negative: jax.Array, batch_size: int
) -> tuple[jax.Array, Info]:
    """Binary NCE over all B x B pairs, estimated from some of the negatives: lower is better.

    All pairs would give [sum_i softplus(-x_ii) + sum_{i != j} softplus(x_ij)] / B^2. With n of a
    row's B - 1 negatives drawn uniformly, each stands for (B - 1) / n of them:

        [mean_i softplus(-x_ii) + (B - 1) mean softplus(x_ij)] / B,

    whose expectation is the full loss. ``positive`` [members, B] are the logits of the own goals,
    ``negative`` [members, n, B] those of drawn goals of other rows.
    """
    others = (batch_size - 1) * jnp.mean(softplus(negative))
    loss = (jnp.mean(softplus(-positive)) + others) / batch_size
    mean = jnp.mean(positive)
    return loss, {"positive_logit": mean, "logit_gap": mean - jnp.mean(negative)}


@dataclass(frozen=True)
class NCEMLP(JointMLP):
    """Twin logits MLP_j([s; g; a]) of TD-Q's shape, trained by binary NCE; the score is their mean.

    A joint network cannot score all B x B pairs of a batch in one step's budget. Each row meets
    its own goal and the goals of ``negatives`` other rows, at offsets drawn anew each step
    without replacement; their weight makes the loss an unbiased estimate of the full one.
    """

    name: ClassVar[str] = "nce_mlp"
    deployed: ClassVar[str] = "logit"

    negatives: int = 7
    """Goals of other rows that each row meets in a step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_sizes(self.hidden, negatives=self.negatives)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrast each row's own goal with some of the others."""
        size = batch.states.shape[0]
        offsets = 1 + jax.random.choice(
            key, size - 1, (min(self.negatives, size - 1),), replace=False
        )
        shifts = jnp.concatenate([jnp.zeros(1, jnp.int32), offsets])
        rows = (jnp.arange(size)[None] + shifts[:, None]) % size
        logits = self.members(params, batch.states, batch.actions, batch.goals[rows])
        return sampled_binary_nce(logits[:, 0], logits[:, 1:], size)
