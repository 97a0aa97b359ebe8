"""A conservative critic: TD-Q with a penalty on the values of random actions (CQL)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="conservative",
    title="Conservative TD-Q",
    place=21,
    group="other",
    network="mlp",
    deployed="q",
    readouts=(
        Readout("q", "bellman", value=True),
        Readout("q_min", "bellman", value=True),
        Readout("q_lcb", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
)


@dataclass(frozen=True)
class Conservative(TDQ):
    """TD-Q plus the mean of logsumexp_i Q(s, a_i, g) - Q(s, a, g) over random actions a_i."""

    name: ClassVar[str] = "conservative"

    penalty: float = 0.5
    """Weight of the penalty."""

    drawn: int = 4
    """Random actions of each row in a step."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        td, info = super().loss(params, batch, key)
        states, goals = batch.states, self.value_goals(batch)
        actions = random_actions(key, self.drawn, batch.actions.shape)
        others = self.members(params, states[None], actions, goals[None])
        own = self.members(params, states, batch.actions, goals)
        gap = jnp.mean(jax.nn.logsumexp(others, axis=1) - own)
        return td + self.penalty * gap, {**info, "penalty": gap}


def random_actions(key: jax.Array, drawn: int, shape: tuple[int, ...]) -> jax.Array:
    """Uniform actions [drawn, B, a] in the box ±1."""
    return jax.random.uniform(key, (drawn, *shape), minval=-1.0, maxval=1.0)
