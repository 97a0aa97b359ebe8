"""Ordinal regression of the temporal distance, by thresholds of 2, 4, 8, ... steps.

Each output is the logit of "at least that far" (the extended binary classification of Li and Lin,
2006). The goal that follows a row answers by its recorded distance; a goal of any trajectory counts
as farther than every threshold. Selection maximizes minus the expected number of thresholds that
the distance reaches, a distance in octaves.

Ideal: minus the sum over thresholds of P(d >= threshold | s, a, g) under the behaviour: it tells
near from far by steps that a plain regression to gamma^d hardly sees. Deviations: a variant of this
project.
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
    name="ordinal",
    title="Ordinal distance",
    place=19,
    group="other",
    network="mlp",
    deployed="nearness",
    readouts=Readout.ensemble("nearness", "returns"),
)

THRESHOLDS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
"""Steps that the questions ask about."""


@dataclass(frozen=True)
class Ordinal(JointMLP):
    """Twin MLP_j([s; g; a]) with a logit of d >= t for each threshold t."""

    name: ClassVar[str] = "ordinal"
    deployed: ClassVar[str] = "nearness"
    width: ClassVar[int] = len(THRESHOLDS)

    def members(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Minus each network's expected number of thresholds that the distance reaches."""
        return -jnp.sum(jax.nn.sigmoid(self.outputs(params, states, actions, goals)), axis=-1)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Mean cross-entropy of all questions, for the goal that followed and for any goal."""
        del key
        goals = jnp.stack([batch.goals, column(batch, "random_goals")])
        logits = self.outputs(params, batch.states, batch.actions, goals)
        reached = column(batch, "offsets")[:, None] >= jnp.array(THRESHOLDS)[None]
        labels = jnp.stack([reached, jnp.ones_like(reached)]).astype(jnp.float32)
        loss = jnp.mean(softplus(logits) - labels[None] * logits)
        right = jnp.mean(((logits > 0) == (labels[None] > 0)).astype(jnp.float32))
        return loss, {"accuracy": right}
