"""A ranking critic: of two goals of a row's trajectory, the nearer one has the higher score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.joint_mlp import JointMLP
from toptail.lab.critics.losses import softplus
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="ranked",
    title="Ranked goals",
    place=22,
    group="other",
    network="mlp",
    deployed="rank",
    readouts=Readout.ensemble("rank", "returns"),
)


@dataclass(frozen=True)
class Ranked(JointMLP):
    """Mean of softplus(f(s, a, later goal) - f(s, a, goal)), with a further column ``later``."""

    name: ClassVar[str] = "ranked"
    deployed: ClassVar[str] = "rank"

    furthest: int = 5
    """Steps from the positive to the later goal, at most."""

    def further(self, key: jax.Array, data: Any, batch: Batch) -> dict[str, jax.Array]:
        rows = column(batch, "goal_rows")
        steps = jax.random.randint(key, rows.shape, 1, self.furthest + 1)
        return {"later": data.observations[jnp.minimum(rows + steps, data.last[rows])]}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        goals = jnp.stack([batch.goals, column(batch, "later")])
        near, far = jnp.split(self.members(params, batch.states, batch.actions, goals), 2, axis=1)
        loss = jnp.mean(softplus(far - near))
        return loss, {"gap": jnp.mean(near - far)}
