"""The hybrid critic: cosine embeddings shaped by an auxiliary TD residual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.bilinear import Scalar
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.networks import MLP, Embeddings, init_ensemble, inner, join, unit


@dataclass(frozen=True)
class Hybrid(Cosine):
    """Contrast on f_cos, plus a TD loss on Q_hybrid = q_td(phi_hat, psi_hat) + alpha f_cos.

    Both losses train the encoders. Selection maximizes f_cos alone; the calibrated q_td and
    Q_hybrid are available as readouts.
    """

    name: ClassVar[str] = "hybrid"
    deployed: ClassVar[str] = "f_cos"

    alpha: float = 1.0
    """Weight of f_cos in the sum Q_hybrid."""

    td_weight: float = 1.0
    """Weight of the TD loss beside the contrastive one."""

    @property
    def head(self) -> MLP:
        """The TD head: one hidden stack like the encoders', over both unit embeddings."""
        return MLP(self.encoders.hidden, 1, self.encoders.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders and head."""
        key_encoders, key_head = jax.random.split(key)
        params = super().init(key_encoders, state_dim, action_dim, goal_dim)
        size = self.encoders
        params["head"] = init_ensemble(self.head, key_head, size.ensemble, 2 * size.embed_dim)
        return params

    def q_td(self, params: Params, e: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows: [members, ...]."""
        inputs = join(unit(e.phi), unit(e.psi))

        def one(head: Params, x: jax.Array) -> jax.Array:
            return cast("jax.Array", self.head.apply({"params": head}, x))[..., 0]

        return jax.vmap(one)(params["head"], inputs)

    def q_hybrid(self, params: Params, e: Embeddings) -> jax.Array:
        """Each member's q_td + alpha f_cos for matching rows: [members, ...]."""
        return self.q_td(params, e) + self.alpha * inner(unit(e.phi), unit(e.psi))

    def td_prediction(self, params: Params, e: Embeddings) -> jax.Array:
        """The scalar that the TD loss fits: [members, ...]."""
        return self.q_hybrid(params, e)

    def td_target(self, params: Params, batch: Batch) -> jax.Array:
        """What it is fitted to: the one-step reward [B]."""
        del params
        return batch.rewards

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus TD loss on the value goals."""
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        contrast, info = self.contrastive_loss(params, e)
        if batch.value_goals is not None:
            e = self.embed(params, batch.states, batch.actions, batch.value_goals)
        q = self.td_prediction(params, e)
        td, td_info = squared_td_error(q, self.td_target(params, batch))
        return contrast + self.td_weight * td, {"contrast": contrast, **info, **td_info}

    def scalars(self) -> Mapping[str, Scalar]:
        """The cosine critic's scalars, the TD scalar, and the sum."""
        return {
            **super().scalars(),
            "q_td": lambda params, e: jnp.mean(self.q_td(params, e), axis=0),
            "q_hybrid": lambda params, e: jnp.mean(self.q_hybrid(params, e), axis=0),
        }
