"""Hybrid and two-head critics at full size: a cosine score, and a Bellman head beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.critics.base import Batch, Info, Params, Readout
from toptail.critics.bellman import Bellman, ValueNetwork, iql_losses
from toptail.critics.cosine import Cosine
from toptail.critics.gciql import GCIQL
from toptail.critics.hybrid import Hybrid
from toptail.critics.networks import Embeddings, unit
from toptail.critics.stack import Stack, StackedEncoders


@dataclass(frozen=True)
class BellmanHybrid(Hybrid):
    """Contrast on f_cos, plus IQL on Q_hybrid = q_td(phi_hat, psi_hat) + alpha f_cos.

    Both losses train the encoders; V(s, g) is a network of its own; the target network is a slow
    copy of encoders and head. Selection maximizes f_cos.
    """

    name: ClassVar[str] = "hybrid"

    encoders: StackedEncoders = StackedEncoders()
    """Sizes of the two encoders."""

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    @property
    def head_stack(self) -> Stack:
        """The TD heads, one per copy of the encoders, of the encoders' shape."""
        size = self.encoders
        return Stack((("td", size.ensemble),), size.hidden, 1, size.bfloat16)

    @property
    def value(self) -> ValueNetwork:
        """The V network."""
        return ValueNetwork(self.encoders.hidden, self.encoders.bfloat16)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders, head and V, and copies of the first two as the first target."""
        key_encoders, key_head, key_value = jax.random.split(key, 3)
        params = Cosine.init(self, key_encoders, state_dim, action_dim, goal_dim)
        params["head"] = self.head_stack.init(key_head, {"td": 2 * self.encoders.embed_dim})
        target = jax.tree.map(jnp.copy, params)
        return {
            **params,
            "value": self.value.init(key_value, state_dim, goal_dim),
            "target": target,
        }

    def after_update(self, params: Params) -> Params:
        """Move the target encoders and head."""
        return {**params, "target": self.bellman.follow(params["target"], params)}

    def q_td(self, params: Params, e: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows: [members, ...]."""
        inputs = jnp.concatenate([unit(e.phi), unit(e.psi)], axis=-1)
        members, *lead, width = inputs.shape
        rows = inputs.reshape(members, -1, width)
        out = self.head_stack.apply(params["head"], {"td": rows})["td"]
        return out.reshape(members, *lead).astype(jnp.float32)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus IQL on the value goals."""
        del key
        # One pass through the encoders serves both: the positives, then the value goals.
        states, actions = (jnp.stack([x, x]) for x in (batch.states, batch.actions))
        goals = jnp.stack([batch.goals, batch.td_goals])
        both = self.embed(params, states, actions, goals)
        contrast, info = self.contrastive_loss(params, Embeddings(*(x[:, 0] for x in both)))
        q = self.td_prediction(params, Embeddings(*(x[:, 1] for x in both)))
        frozen = params["target"]
        slow = self.embed(frozen, batch.states, batch.actions, batch.td_goals)
        v, next_v = self.value.now_and_next(params["value"], batch)
        td, td_info = iql_losses(
            q,
            v,
            self.td_prediction(frozen, slow),
            next_v,
            batch,
            self.bellman.gamma,
            self.bellman.expectile,
        )
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}


@dataclass(frozen=True)
class TwoHeadJoint(BellmanHybrid):
    """Both heads on the contrastive backbone; IQL fits q_td by itself, and selection uses it."""

    name: ClassVar[str] = "two_head_joint"
    deployed: ClassVar[str] = "q_td"

    def td_prediction(self, params: Params, e: Embeddings) -> jax.Array:
        """The TD head alone: [members, ...]."""
        return self.q_td(params, e)


@dataclass(frozen=True)
class TwoHeadSeparate(Cosine):
    """A cosine critic and a GCIQL critic in one checkpoint, sharing nothing but the batch."""

    name: ClassVar[str] = "two_head_separate"
    deployed: ClassVar[str] = "q_td"

    encoders: StackedEncoders = StackedEncoders()
    """Sizes of the two encoders."""

    gciql: GCIQL = GCIQL()
    """The Bellman head with its own encoder."""

    td_weight: float = 1.0
    """Weight of the Bellman loss beside the contrastive one."""

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters of both critics."""
        key_cosine, key_value = jax.random.split(key)
        params = super().init(key_cosine, state_dim, action_dim, goal_dim)
        value = self.gciql.init(key_value, state_dim, action_dim, goal_dim)
        return {**params, "target": value.pop("target"), "value": value}

    def _value(self, params: Params) -> Params:
        return {**params["value"], "target": params["target"]}

    def after_update(self, params: Params) -> Params:
        """Move the Bellman head's target."""
        return {**params, "target": self.gciql.after_update(self._value(params))["target"]}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """The sum of both losses."""
        contrast, info = super().loss(params, batch, key)
        td, td_info = self.gciql.loss(self._value(params), batch, key)
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}

    def readouts(self) -> Mapping[str, Readout]:
        """The embedding readouts and the Bellman head's."""
        heads = {
            name.replace("q", "q_td", 1): self._through(read)
            for name, read in self.gciql.readouts().items()
            if name != "feature_norm"
        }
        return {**super().readouts(), **heads}

    def _through(self, read: Readout) -> Readout:
        return lambda params, s, a, g: read(self._value(params), s, a, g)
