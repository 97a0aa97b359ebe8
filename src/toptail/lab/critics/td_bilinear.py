"""The Bellman-trained bilinear scalar: TD-Q's objective in the raw critic's function class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Read
from toptail.lab.critics.bellman import Bellman, ValueNetwork, iql_losses
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.learner import TARGET, Batch, Info, Params
from toptail.lab.critics.networks import Embeddings, inner
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.stack import StackedEncoders
from toptail.lab.critics.tdq import ensemble_readouts

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
        Readout("q", "bellman", value=True),
        Readout("q_min", "bellman", value=True),
        Readout("q_lcb", "bellman", value=True),
    ),
)


@dataclass(frozen=True)
class TDBilinear(EmbeddingCritic):
    """Q(s, a, g) = phi . psi / sqrt(d), fitted to Bellman targets with a V network beside it."""

    name: ClassVar[str] = "td_bilinear"
    deployed: ClassVar[str] = "q"

    encoders: StackedEncoders = StackedEncoders()
    """Sizes of the two encoders, as the raw critic's."""

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    beta: float = 1.0
    """Standard deviations that the readout ``q_lcb`` subtracts from the mean Q."""

    @property
    def value(self) -> ValueNetwork:
        """The V network."""
        return ValueNetwork(self.encoders.hidden, self.encoders.bfloat16)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh encoders and V, and a copy of the encoders as the first target."""
        key_encoders, key_value = jax.random.split(key)
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        target = jax.tree.map(jnp.copy, encoders)
        return {
            **encoders,
            "value": self.value.init(key_value, state_dim, goal_dim),
            TARGET: target,
        }

    def after_update(self, params: Params) -> Params:
        """Move the target encoders."""
        return {**params, TARGET: self.bellman.follow(params[TARGET], params)}

    def _q(self, e: Embeddings) -> jax.Array:
        q: jax.Array = inner(e.phi, e.psi) / self.encoders.embed_dim**0.5
        return q

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """IQL on the value goals."""
        del key
        rows = (batch.states, batch.actions, batch.td_goals)
        q, target_q = (self._q(self.embed(p, *rows)) for p in (params, params[TARGET]))
        v, next_v = self.value.now_and_next(params["value"], batch)
        setting = self.bellman
        return iql_losses(q, v, target_q, next_v, batch, setting.gamma, setting.expectile)

    def scalars(self) -> Mapping[str, Scalar]:
        """The scaled inner product's mean, minimum and lower bound, and the embeddings' scalars."""

        def members(_: Params, phi: jax.Array, __: jax.Array, psi: jax.Array) -> jax.Array:
            return self._q(Embeddings(phi, psi))

        def behind(read: Read) -> Scalar:
            """A readout that is given phi and psi where others are given rows."""
            return lambda params, e: read(params, e.phi, e.phi, e.psi)

        of_members = ensemble_readouts(members, self.beta)
        return {**super().scalars(), **{name: behind(read) for name, read in of_members.items()}}
