"""The critics of the controlled world, whose episodes end after one step.

There is nothing to bootstrap from: a TD loss fits the reward of the step. Raw and cosine critics
are the full-size ones with small encoders; the others are defined here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, cast

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Critic, Info, Params, Read
from toptail.lab.critics.bellman import Heads
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.networks import Embeddings, inner, join, norm, units
from toptail.lab.critics.raw import Raw
from toptail_paper.controlled.networks import MLP, Encoders, apply_ensemble, init_ensemble


@dataclass(frozen=True)
class OneStepTDQ(Critic):
    """Q(s, a, g) = mean_j MLP_j([s; g; a]), every member fitted to the reward of the step."""

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
        return MLP(self.hidden, 1, self.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
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

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Squared error of each member to the reward."""
        del key
        q = self.members(params, batch.states, batch.actions, batch.td_goals)
        return squared_td_error(q, batch.rewards)

    def readouts(self) -> Mapping[str, Read]:
        """Mean and minimum of the members, and the length of their last hidden layer."""
        return {
            "q": lambda *args: jnp.mean(self.members(*args), axis=0),
            "q_min": lambda *args: jnp.min(self.members(*args), axis=0),
            "feature_norm": self.feature_norm,
        }


@dataclass(frozen=True)
class OneStepHeads(Heads):
    """The heads of the controlled world, fitted to the reward of the step."""

    encoders: Encoders = Encoders()

    @property
    def head(self) -> MLP:
        """The TD head: one hidden stack like the encoders', over both unit embeddings."""
        return MLP(self.encoders.hidden, 1, self.encoders.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        key_encoders, key_head = jax.random.split(key)
        size = self.encoders
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        head = init_ensemble(self.head, key_head, size.ensemble, 2 * size.embed_dim)
        return {**encoders, "head": head}

    def q_td(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows of length 1: [members, ...]."""

        def one(head: Params, x: jax.Array) -> jax.Array:
            return cast("jax.Array", self.head.apply({"params": head}, x))[..., 0]

        return jax.vmap(one)(params["head"], join(*units))

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus squared error of the fitted scalar."""
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        # Each term normalizes its own embeddings: with one normalization gradients would be summed
        # in another order.
        contrast, info = self.contrast_units(params, units(e))
        if batch.value_goals is not None:
            e = self.embed(params, batch.states, batch.actions, batch.value_goals)
        q = self.q_td(params, units(e))
        if self.fits == "q_hybrid":
            q = q + self.alpha * inner(*units(e))
        td, td_info = squared_td_error(q, batch.rewards)
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}


@dataclass(frozen=True)
class OneStepHybrid(OneStepHeads):
    """Contrast on f_cos, plus a TD loss on Q_hybrid = q_td(phi_hat, psi_hat) + alpha f_cos."""

    name: ClassVar[str] = "hybrid"
    deployed: ClassVar[str] = "f_cos"
    fits = "q_hybrid"


@dataclass(frozen=True)
class OneStepTwoHead(OneStepHeads):
    """As the hybrid, but the TD loss fits q_td by itself, so that q_td is a value of its own.

    The head's gradient also reaches the encoders. One network, three scalars to select with:
    f_cos, q_td and q_hybrid = q_td + alpha f_cos.
    """

    name: ClassVar[str] = "two_head"
    deployed: ClassVar[str] = "q_td"
    fits = "q_td"


ONE_STEP: Final[Mapping[str, type[Critic]]] = {
    kind.name: kind for kind in (OneStepTDQ, Raw, Cosine, OneStepHybrid, OneStepTwoHead)
}
