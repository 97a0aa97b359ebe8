"""The value head: TD-Q on the embeddings of a critic that is not touched (a cure).

A contrastive critic ranks goals, and its best action by score need not be its best by value. Its
embeddings may still hold what a value needs. The head is TD-Q (GCIQL; Kostrikov et al., 2021) whose
Q networks read phi(s, a) and psi(g) of another run in place of s, a and g.

Ideal: the optimal value among the functions of phi(s, a) and psi(g); Q* where these two determine
it. Deviations from TD-Q: the inputs of Q, and nothing else. V, which no one deploys, reads s and g
themselves, as in the two-head critics.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from toptail.errors import InputError
from toptail.lab.critics.base import FROZEN, Batch, Critic, Params, column, trained_only
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.networks import join
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="value_head",
    title="Value head",
    place=13,
    group="other",
    network="head",
    deployed="q",
    readouts=(
        *Readout.ensemble("q", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
    ideal="q_star",
)

MEASURED = 10_000
"""Rows of the data set, at most, that the embeddings' mean and spread are measured on."""
SMALLEST_SPREAD = 1e-6
"""A coordinate that varies less than that is only centred."""


@dataclass(frozen=True)
class ValueHead(TDQ):
    """Twin Q(phi(s, a), psi(g)) on frozen embeddings, each coordinate scaled to unit variance.

    All copies of the other critic's encoders are read side by side. Without a base, for embeddings
    that were made elsewhere, the rows are embeddings already: readouts take phi as states, no
    actions and psi as goals, and the loss reads both beside the rows of the data set.
    """

    name: ClassVar[str] = "value_head"

    base: Critic | None = field(default_factory=Raw)
    """The critic whose phi and psi are read; None where they were made elsewhere."""
    phi_dim: int = 0
    """Width of phi where it was made elsewhere."""
    psi_dim: int = 0
    """Width of psi where it was made elsewhere."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phi_dim:
            object.__setattr__(self, "base", None)
        if self.base is not None and not isinstance(self.base, EmbeddingCritic):
            raise InputError(
                f"value_head reads phi(s, a) and psi(g), which {self.base.name} does not have: "
                "train it on a critic with embeddings, such as raw or cosine."
            )

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh heads, the other critic's parameters, and the scale of its embeddings."""
        key_base, key_heads = jax.random.split(key)
        dims, below = (state_dim, action_dim, goal_dim), {}
        width = self.phi_dim + self.psi_dim
        if isinstance(self.base, EmbeddingCritic):
            encoders = self.base.encoders
            below = trained_only(self.base.init(key_base, *dims))
            width = 2 * encoders.ensemble * encoders.embed_dim
        params = self.fresh(key_heads, {"q": width, "v": state_dim + goal_dim})
        return {**params, FROZEN: {**below, "mean": jnp.zeros(width), "spread": jnp.ones(width)}}

    def frozen(self, params: Params, data: Any) -> Params:
        """The parameters, with mean and spread of the embeddings of rows all over the data set."""
        rows = data.transitions[:: max(1, len(data.transitions) // MEASURED)]
        if self.base is None:
            x = data.extra[rows]
        else:
            states = data.observations[rows]
            x = jax.jit(self._embedded)(params, states, data.actions[rows], states)
        spread = jnp.std(x, axis=0)
        spread = jnp.where(spread > SMALLEST_SPREAD, spread, 1.0)
        return {**params, "mean": jnp.mean(x, axis=0), "spread": spread}

    def _embedded(self, params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        """Every copy's phi and psi side by side, [..., width], with the base's parameters."""
        if not isinstance(self.base, EmbeddingCritic):
            return join(s, g)
        phi, psi = self.base.embed(params, s, a, g)
        return jnp.concatenate([*phi, *psi], axis=-1)

    def further(self, key: jax.Array, data: Any, batch: Batch) -> dict[str, jax.Array]:
        """Without a base, phi of the batch's rows and psi of its value goals."""
        del key
        if self.base is not None:
            return {}
        phi = data.extra[column(batch, "rows"), : self.phi_dim]
        return {"phi": phi, "psi": data.extra[column(batch, "value_goal_rows"), self.phi_dim :]}

    def q_rows(self, params: Params, batch: Batch) -> jax.Array:
        if self.base is not None:
            return super().q_rows(params, batch)
        phi, psi = column(batch, "phi"), column(batch, "psi")
        return self.q_inputs(params, phi, phi[:, :0], psi)

    def q_inputs(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Both embeddings, each coordinate scaled to unit variance over the data set."""
        frozen = jax.lax.stop_gradient(params[FROZEN])
        x = self._embedded(frozen, states, actions, goals)
        mean, spread = (jnp.broadcast_to(frozen[name], x.shape) for name in ("mean", "spread"))
        return (x - mean) / spread
