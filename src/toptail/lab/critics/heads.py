"""Two objectives on one pair of encoders: a cosine score, and a Bellman head beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp

from toptail.lab.critics.bellman import Bellman, ValueNetwork, iql_losses
from toptail.lab.critics.contrast import CosineContrast
from toptail.lab.critics.embedding import SCALARS, Scalar
from toptail.lab.critics.learner import TARGET, Batch, Info, Params
from toptail.lab.critics.networks import Embeddings, inner, unit, units
from toptail.lab.critics.stack import Stack, StackedEncoders

Fitted: TypeAlias = Callable[[Params, Embeddings], jax.Array]
"""(params, embeddings) -> the scalar [members, ...] that a TD loss fits."""


@dataclass(frozen=True)
class BellmanHeads(CosineContrast):
    """A TD head q_td(phi_hat, psi_hat) and a network V(s, g) on the encoders of a cosine critic.

    A part of embedding critics, which say what the Bellman loss fits. Both losses train the
    encoders; V is a network of its own; the target network is a slow copy of encoders and head.
    Whatever is fitted takes embeddings of length 1.
    """

    encoders: StackedEncoders = StackedEncoders()
    """Sizes of the two encoders."""

    alpha: float = 1.0
    """Weight of f_cos in the sum Q_hybrid."""

    td_weight: float = 1.0
    """Weight of the TD loss beside the contrastive one."""

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
        encoders = self.encoders.init(key_encoders, state_dim, action_dim, goal_dim)
        head = self.head_stack.init(key_head, {"td": 2 * self.encoders.embed_dim})
        params = {**encoders, **self.init_temperature(), "head": head}
        return {
            **params,
            "value": self.value.init(key_value, state_dim, goal_dim),
            TARGET: jax.tree.map(jnp.copy, params),
        }

    def after_update(self, params: Params) -> Params:
        """Move the target encoders and head."""
        return {**params, TARGET: self.bellman.follow(params[TARGET], params)}

    def q_td(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows: [members, ...]."""
        dtype = self.head_stack.dtype  # joined in the head's type: half the bytes in bfloat16
        inputs = jnp.concatenate([x.astype(dtype) for x in units], axis=-1)
        members, *lead, width = inputs.shape
        rows = inputs.reshape(members, -1, width)
        out = self.head_stack.apply(params["head"], {"td": rows})["td"]
        return out.reshape(members, *lead).astype(jnp.float32)

    def q_hybrid(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's q_td + alpha f_cos for matching rows: [members, ...]."""
        return self.q_td(params, units) + self.alpha * inner(units.phi, units.psi)

    def both_losses(self, params: Params, batch: Batch, fitted: Fitted) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus IQL of ``fitted`` on the value goals."""
        pairs = (batch.states, batch.actions)
        both = self.encoders.embed_goals(params, *pairs, batch.goals, batch.td_goals)
        # Each scaling is a pass over the embeddings and two in its gradient: phi shares one.
        phi = unit(both[0].phi)
        positives, values = (Embeddings(phi, unit(e.psi)) for e in both)
        contrast, info = self.contrast_units(params, positives, bfloat16=self.encoders.half)
        q = fitted(params, values)
        frozen = params[TARGET]
        slow = units(self.encoders.embed(frozen, *pairs, batch.td_goals))
        v, next_v = self.value.now_and_next(params["value"], batch)
        td, td_info = iql_losses(
            q,
            v,
            fitted(frozen, slow),
            next_v,
            batch,
            self.bellman.gamma,
            self.bellman.expectile,
        )
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, the TD scalar, and the sum, of embeddings of any length."""
        return {
            **SCALARS,
            "q_td": lambda params, e: jnp.mean(self.q_td(params, units(e)), axis=0),
            "q_hybrid": lambda params, e: jnp.mean(self.q_hybrid(params, units(e)), axis=0),
        }
