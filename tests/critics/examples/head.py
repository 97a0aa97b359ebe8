"""A head on the frozen embeddings of another run, fitted to gamma^d."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import (
    FROZEN,
    Batch,
    Critic,
    Info,
    Params,
    Read,
    column,
    trained_only,
)
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.networks import Stack, units
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="head",
    title="Head on frozen embeddings",
    place=23,
    group="other",
    network="head",
    deployed="q",
    readouts=(Readout("q", "returns"),),
)


@dataclass(frozen=True)
class Head(Critic):
    """Networks of the base's unit embeddings, one for each of its copies."""

    name: ClassVar[str] = "head"
    deployed: ClassVar[str] = "q"

    base: Critic | None = None
    """The critic whose embeddings it reads."""
    hidden: tuple[int, ...] = (64,)
    """Width of each hidden layer."""
    gamma: float = 0.99
    """Discount."""

    @property
    def below(self) -> EmbeddingCritic:
        assert isinstance(self.base, EmbeddingCritic)
        return self.base

    @property
    def stack(self) -> Stack:
        return Stack((("td", self.below.encoders.ensemble),), self.hidden, 1)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        below = self.below.init(key, state_dim, action_dim, goal_dim)
        head = self.stack.init(key, {"td": 2 * self.below.encoders.embed_dim})
        return {"head": head, FROZEN: trained_only(below)}

    def q(self, params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        e = units(self.below.embed(jax.lax.stop_gradient(params[FROZEN]), s, a, g))
        rows = jnp.concatenate(e, axis=-1)
        members, *lead, width = rows.shape
        out = self.stack.apply(params["head"], {"td": rows.reshape(members, -1, width)})["td"]
        return out.reshape(members, *lead)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        q = self.q(params, batch.states, batch.actions, batch.goals)
        loss = jnp.mean((q - (self.gamma ** column(batch, "offsets"))[None]) ** 2)
        return loss, {"q_mean": jnp.mean(q)}

    def readouts(self) -> Mapping[str, Read]:
        return {"q": lambda *args: jnp.mean(self.q(*args), axis=0)}
