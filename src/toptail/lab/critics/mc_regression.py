"""Monte-Carlo regression: squared error to gamma^d of what followed, in TD-Q's function class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.joint_mlp import JointMLP
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="mc_regression",
    title="Monte-Carlo regression",
    place=10,
    group="factor",
    network="mlp",
    deployed="q",
    readouts=Readout.ensemble("q", "returns"),
    ideal="gamma_d",
    cell=("monte_carlo", "regression", "behaviour"),
)


@dataclass(frozen=True)
class MCRegression(JointMLP):
    """Twin MLP_j([s; g; a]) of TD-Q's shape, fitted to gamma^d at goals that follow after d steps.

    Each row meets its contrastive positive, with the target gamma^d, and a goal of any trajectory,
    with the target 0. Nothing is bootstrapped.
    """

    name: ClassVar[str] = "mc_regression"
    deployed: ClassVar[str] = "q"

    gamma: float = 0.99

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Mean squared error over both goals of each row."""
        del key
        goals = jnp.stack([batch.goals, column(batch, "random_goals")])
        q = self.members(params, batch.states, batch.actions, goals)
        followed = self.gamma ** column(batch, "offsets")
        error = q - jnp.stack([followed, jnp.zeros_like(followed)])[None]
        loss = jnp.mean(error * error)
        return loss, {"rmse": jnp.sqrt(loss), "q_mean": jnp.mean(q)}
