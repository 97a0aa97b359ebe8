"""Hybrid and two-head critics at full size: a cosine score, and a Bellman head beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params, Readout
from toptail.lab.critics.bellman import Bellman, ValueNetwork, iql_losses
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.gciql import GCIQL
from toptail.lab.critics.hybrid import Hybrid
from toptail.lab.critics.losses import contrast_pairs
from toptail.lab.critics.networks import Embeddings, inner, unit
from toptail.lab.critics.stack import Stack, StackedEncoders


@dataclass(frozen=True)
class BellmanHybrid(Hybrid):
    """Contrast on f_cos, plus IQL on Q_hybrid = q_td(phi_hat, psi_hat) + alpha f_cos.

    Both losses train the encoders; V(s, g) is a network of its own; the target network is a slow
    copy of encoders and head. Selection maximizes f_cos.

    The loss scales the embeddings to length 1 once, and its two parts (``contrastive_loss`` and
    ``td_prediction``) take them so; the readouts take them as the encoders give them.
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
        return self._head(params, _units(e))

    def _head(self, params: Params, units: Embeddings) -> jax.Array:
        """The TD scalar of unit embeddings."""
        dtype = self.head_stack.dtype  # joined in the head's type: half the bytes in bfloat16
        inputs = jnp.concatenate([x.astype(dtype) for x in units], axis=-1)
        members, *lead, width = inputs.shape
        rows = inputs.reshape(members, -1, width)
        out = self.head_stack.apply(params["head"], {"td": rows})["td"]
        return out.reshape(members, *lead).astype(jnp.float32)

    def td_prediction(self, params: Params, units: Embeddings) -> jax.Array:
        """The scalar that the Bellman loss fits, of unit embeddings: [members, ...]."""
        return self._head(params, units) + self.alpha * inner(units.phi, units.psi)

    def _contrast_at(self, units: Embeddings, temperature: jax.Array) -> tuple[jax.Array, Info]:
        """As the cosine critic's, of unit embeddings."""
        phi = units.phi / temperature
        return contrast_pairs(self.contrast, phi, units.psi, bfloat16=self.encoders.half)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus IQL on the value goals."""
        del key
        pairs = (batch.states, batch.actions)
        both = self.encoders.embed_goals(params, *pairs, batch.goals, batch.td_goals)
        # Each scaling is a pass over the embeddings and two in its gradient: phi shares one.
        phi = unit(both[0].phi)
        positives, values = (Embeddings(phi, unit(e.psi)) for e in both)
        contrast, info = self.contrastive_loss(params, positives)
        q = self.td_prediction(params, values)
        frozen = params["target"]
        slow = _units(self.embed(frozen, *pairs, batch.td_goals))
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


def _units(e: Embeddings) -> Embeddings:
    """Both sides scaled to length 1."""
    return Embeddings(unit(e.phi), unit(e.psi))


@dataclass(frozen=True)
class TwoHeadJoint(BellmanHybrid):
    """Both heads on the contrastive backbone; IQL fits q_td by itself, and selection uses it."""

    name: ClassVar[str] = "two_head_joint"
    deployed: ClassVar[str] = "q_td"

    def td_prediction(self, params: Params, units: Embeddings) -> jax.Array:
        """The TD head alone, of unit embeddings: [members, ...]."""
        return self._head(params, units)


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
