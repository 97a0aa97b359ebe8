"""The Bellman-trained bilinear scalar: TD-Q's objective in the raw critic's function class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.base import TARGET, Batch, Info, Params
from toptail.lab.critics.bellman import BellmanCritic
from toptail.lab.critics.embedding import Scalar
from toptail.lab.critics.joint_mlp import ensemble_readouts
from toptail.lab.critics.networks import Embeddings, inner
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="td_bilinear",
    title="TD, bilinear network",
    place=7,
    group="control",
    network="bilinear",
    deployed="q",
    readouts=(
        Readout("f_raw", "bellman"),
        Readout("f_cos", "bellman"),
        Readout("phi_norm", "bellman"),
        *Readout.ensemble("q", "bellman", value=True),
    ),
    ideal="q_star",
    cell=("bootstrapped", "regression", "optimal"),
)


@dataclass(frozen=True)
class TDBilinear(BellmanCritic):
    """Q(s, a, g) = phi . psi / sqrt(d), fitted to Bellman targets with a V network beside it."""

    name: ClassVar[str] = "td_bilinear"
    deployed: ClassVar[str] = "q"
    reads_positives: ClassVar[bool] = False

    beta: float = 1.0
    """Standard deviations that the readout ``q_lcb`` subtracts from the mean Q."""

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders and V, and a copy of the encoders as the first target."""
        key_encoders, key_value = jax.random.split(key)
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        return self.with_value(encoders, key_value, state_dim + goal_dim)

    def _q(self, e: Embeddings) -> jax.Array:
        q: jax.Array = inner(e.phi, e.psi) / self.encoders.embed_dim**0.5
        return q

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        rows = (batch.states, batch.actions, batch.td_goals)
        q, target_q = (self._q(self.embed(p, *rows)) for p in (params, params[TARGET]))
        v, next_v = self.now_and_next(params, batch)
        return self.bellman.losses(q, v, target_q, next_v, batch)

    def scalars(self) -> Mapping[str, Scalar]:
        """The scaled inner product's mean, minimum and lower bound, and the embeddings' scalars."""

        def members(_: Params, e: Embeddings) -> jax.Array:
            return self._q(e)

        return {**super().scalars(), **ensemble_readouts(members, self.beta)}
