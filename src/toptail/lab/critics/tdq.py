"""TD-Q: a joint-input twin network that regresses to a value target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Critic, Info, Params, Readout
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.networks import MLP, apply_ensemble, init_ensemble, join, norm


@dataclass(frozen=True)
class TDQ(Critic):
    """Q(s, a, g) = mean_j MLP_j([s; g; a]), every member fitted to the same target.

    The target is the one-step reward: the controlled world's episodes end after one step, so
    there is nothing to bootstrap from. A family that bootstraps overrides `td_target`, adds
    its networks in `init` and moves its target network in `after_update`.
    """

    name: ClassVar[str] = "tdq"
    deployed: ClassVar[str] = "q"

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer."""

    ensemble: int = 2
    """Independent networks; the score is their mean."""

    layer_norm: bool = False
    """Whether a LayerNorm follows each activation."""

    @property
    def network(self) -> MLP:
        """One member."""
        return MLP(self.hidden, 1, self.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh members."""
        inputs = state_dim + goal_dim + action_dim
        return {"q": init_ensemble(self.network, key, self.ensemble, inputs)}

    def members(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Each member's value of rows [..., dim]: [members, ...]."""
        x = join(states, goals, actions)
        return apply_ensemble(self.network, params["q"], x)[..., 0]

    def feature_norm(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Length of the last hidden layer, mean over members: TD-Q's nearest thing to ||phi||."""
        x = join(states, goals, actions)
        return jnp.mean(norm(apply_ensemble(self.network, params["q"], x, features=True)), axis=0)

    def td_target(self, params: Params, batch: Batch) -> jax.Array:
        """What every member is fitted to: the one-step reward [B]."""
        del params
        return batch.rewards

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Squared error of each member to the target."""
        del key
        q = self.members(params, batch.states, batch.actions, batch.td_goals)
        return squared_td_error(q, self.td_target(params, batch))

    def readouts(self) -> Mapping[str, Readout]:
        """Mean and minimum of the members, and the length of their last hidden layer."""
        return {
            "q": lambda *args: jnp.mean(self.members(*args), axis=0),
            "q_min": lambda *args: jnp.min(self.members(*args), axis=0),
            "feature_norm": self.feature_norm,
        }
