"""TD-Q of the behaviour: the mean over its actions where TD-Q takes an optimistic expectile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, column
from toptail.lab.critics.bellman import Bellman
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="td_mean",
    title="TD-Q of the behaviour",
    place=11,
    group="factor",
    network="mlp",
    deployed="q",
    readouts=(
        *Readout.ensemble("q", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
    ideal="q_behaviour",
    cell=("bootstrapped", "regression", "behaviour"),
)


@dataclass(frozen=True)
class TDMean(TDQ):
    """TD-Q with expectile 0.5, and goals that say nothing of the action.

    At 0.5, V(s, g) is the mean of Q(s, a, g) over the actions that g is seen with. A goal that
    was drawn from what followed is seen more often with actions that led to it, and V would be
    the value of a behaviour that already knows the goal. So goals are the current state, where
    the batch has it as the value goal, or any state of the data: then V is the mean over the
    behaviour's actions, and Q its value.
    """

    name: ClassVar[str] = "td_mean"

    bellman: Bellman = Bellman(expectile=0.5)
    """Discount, expectile and speed of the target network."""

    def value_goals(self, batch: Batch) -> jax.Array:
        """The value goal where it is reached, else a goal without regard to the row."""
        reached = column(batch, "masks")[:, None] == 0
        return jnp.where(reached, batch.td_goals, column(batch, "random_goals"))
