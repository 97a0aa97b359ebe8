"""Conservative TD-Q: TD-Q with CQL's penalty on the values of actions off the data.

Conservative Q-learning (Kumar et al., 2020) adds to the Bellman loss how much the soft maximum of Q
over actions exceeds Q at the recorded action. Selection that maximizes Q then finds less to exploit
where there is no data.

Ideal: none is known in closed form; for a small penalty Q*, lowered where the behaviour is rare.
Deviations from CQL: TD-Q's target (IQL's expectile) in place of an actor's, uniform actions alone
in the soft maximum, and four of them a step, where CQL draws ten of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.losses import uniform_actions
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="conservative",
    title="Conservative TD-Q",
    place=16,
    group="other",
    network="mlp",
    deployed="q",
    readouts=(
        *Readout.ensemble("q", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
)


@dataclass(frozen=True)
class Conservative(TDQ):
    """TD-Q plus the mean of logsumexp_i Q(s, a_i, g) - Q(s, a, g) over uniform actions a_i."""

    name: ClassVar[str] = "conservative"

    penalty: float = 1.0
    """Weight of the penalty."""
    drawn: int = 4
    """Uniform actions of each row in a step."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        td, info = super().loss(params, batch, key)
        goals, others = self.value_goals(batch), uniform_actions(key, self.drawn, batch.actions)
        actions = jnp.concatenate([batch.actions[None], others])
        q = self.members(params, batch.states[None], actions, goals[None])
        gap = jnp.mean(jax.nn.logsumexp(q[:, 1:], axis=1) - q[:, 0])
        return td + self.penalty * gap, {**info, "penalty": gap}
