"""Two objectives on one pair of encoders: a cosine score, and a TD head beside it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from toptail.lab.critics.bellman import BellmanCritic
from toptail.lab.critics.contrast import CosineContrast
from toptail.lab.critics.embedding import Scalar
from toptail.lab.critics.learner import TARGET, Batch, Info, Params
from toptail.lab.critics.networks import Embeddings, inner, unit, units
from toptail.lab.critics.stack import Stack


@dataclass(frozen=True)
class Heads(CosineContrast):
    """A TD head q_td(phi_hat, psi_hat) on the encoders of a cosine critic."""

    alpha: float = 1.0
    """Weight of f_cos in the sum Q_hybrid."""

    td_weight: float = 1.0
    """Weight of the TD loss beside the contrastive one."""

    @property
    @abstractmethod
    def fits(self) -> Literal["q_td", "q_hybrid"]:
        """What the TD loss fits: the head by itself, or its sum with f_cos."""

    @abstractmethod
    def q_td(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows of length 1: [members, ...]."""

    def q_hybrid(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's q_td + alpha f_cos for matching rows of length 1: [members, ...]."""
        return self.q_td(params, units) + self.alpha * inner(units.phi, units.psi)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, the TD scalar, and the sum, of embeddings of any length."""
        return {
            **super().scalars(),
            "q_td": lambda params, e: jnp.mean(self.q_td(params, units(e)), axis=0),
            "q_hybrid": lambda params, e: jnp.mean(self.q_hybrid(params, units(e)), axis=0),
        }


@dataclass(frozen=True)
class BellmanHeads(BellmanCritic, Heads):
    """The heads of long episodes: IQL fits them, with a network V(s, g) beside them.

    Both losses train the encoders; V is a network of its own; the target network is a slow copy of
    encoders and head.
    """

    @property
    def head(self) -> Stack:
        """The TD heads, one per copy of the encoders, of the encoders' shape."""
        return self.encoders.beside("td", self.encoders.ensemble)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders, head and V, and copies of the first two as the first target."""
        key_encoders, key_head, key_value = jax.random.split(key, 3)
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        head = self.head.init(key_head, {"td": 2 * self.encoders.embed_dim})
        return self.with_value({**encoders, "head": head}, key_value, state_dim + goal_dim)

    def q_td(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows of length 1: [members, ...]."""
        dtype = self.head.dtype  # joined in the head's type: half the bytes in bfloat16
        inputs = jnp.concatenate([x.astype(dtype) for x in units], axis=-1)
        members, *lead, width = inputs.shape
        rows = inputs.reshape(members, -1, width)
        out = self.head.apply(params["head"], {"td": rows})["td"]
        return out.reshape(members, *lead).astype(jnp.float32)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus IQL of what is fitted on the value goals."""
        del key
        pairs = (batch.states, batch.actions)
        both = self.encoders.embed_goals(params, *pairs, batch.goals, batch.td_goals)
        # Each scaling is a pass over the embeddings and two in its gradient: phi shares one.
        phi = unit(both[0].phi)
        positives, values = (Embeddings(phi, unit(e.psi)) for e in both)
        contrast, info = self.contrast_units(params, positives)
        fitted = self.q_td if self.fits == "q_td" else self.q_hybrid
        q, frozen = fitted(params, values), params[TARGET]
        target_q = fitted(frozen, units(self.encoders.embed(frozen, *pairs, batch.td_goals)))
        v, next_v = self.now_and_next(params, batch)
        td, td_info = self.bellman.losses(q, v, target_q, next_v, batch)
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}
