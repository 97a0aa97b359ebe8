"""Bellman training by expectiles (IQL), alone and as a head on a cosine critic."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import TARGET, Batch, Info, Params, column
from toptail.lab.critics.embedding import CosineContrast, EmbeddingCritic, Scalar
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.networks import Embeddings, Stack, StackedEncoders, inner, unit, units

Reward: TypeAlias = Literal["-1/0", "0/1"]
"""Step reward: -1 until the goal and 0 at it, or 0 until the goal and 1 at it."""


def expectile_loss(error: jax.Array, expectile: float) -> jax.Array:
    """Mean of |expectile - 1(error < 0)| error^2: the larger the expectile, the more optimistic.

    With ``error = q - v`` the minimizer v is the expectile of q: the mean at 0.5, the maximum
    as the expectile goes to 1 (Kostrikov et al., 2021).
    """
    weight = jnp.where(error >= 0, expectile, 1.0 - expectile)
    return jnp.mean(weight * error * error)


@dataclass(frozen=True)
class Bellman:
    """Settings of the value target."""

    gamma: float = 0.99
    expectile: float = 0.9
    """Expectile of V."""
    tau: float = 0.005
    """Share of the trained parameters that the target network takes over after each step."""

    def __post_init__(self) -> None:
        for name in ("gamma", "expectile", "tau"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{option(name, value)} must be a number from 0 to 1.")

    def follow(self, target: Params, params: Params) -> Params:
        """Move a target tree towards the parameters of the same names (Polyak averaging)."""
        own = {name: params[name] for name in target}
        moved: Params = jax.tree.map(lambda t, p: t + self.tau * (p - t), target, own)
        return moved

    def losses(
        self, q: jax.Array, v: jax.Array, target_q: jax.Array, next_v: jax.Array, batch: Batch
    ) -> tuple[jax.Array, Info]:
        """Q to r + gamma mask V(s', g), and V to the expectile of the smaller target Q.

        For the value goals of the batch: q and target_q [members, B] are outputs of the trained Q
        networks and of their slow copies, v and next_v [B] are V at (s, g) and at (s', g).
        """
        masks = column(batch, "masks")
        goal = batch.rewards + self.gamma * masks * jax.lax.stop_gradient(next_v)
        q_loss, info = squared_td_error(q, goal[None])
        smaller = jax.lax.stop_gradient(jnp.min(target_q, axis=0))
        v_loss = expectile_loss(smaller - v, self.expectile)
        return q_loss + v_loss, {"q_loss": q_loss, "v_loss": v_loss, "q_mean": jnp.mean(q), **info}


@dataclass(frozen=True)
class BellmanCritic(EmbeddingCritic):
    """An embedding critic with a network V(s, g) and a slow target."""

    reads_rewards: ClassVar[bool] = True

    encoders: StackedEncoders = StackedEncoders()
    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    @property
    def value(self) -> Stack:
        return self.encoders.beside("v", 1)

    def with_value(self, params: Params, key: jax.Array, inputs: int) -> Params:
        """The parameters with a fresh V of so many inputs, and their copy as the first target."""
        value = self.value.init(key, {"v": inputs})
        return {**params, "value": value, TARGET: jax.tree.map(jnp.copy, params)}

    def after_update(self, params: Params) -> Params:
        return {**params, TARGET: self.bellman.follow(params[TARGET], params)}

    def now_and_next(self, params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
        """V(s, g) and V(s', g) of the value goals, each [B]."""

        def of(value: Params, states: jax.Array) -> jax.Array:
            rows = jnp.concatenate([states, batch.td_goals], axis=-1)
            return self.value.apply(value, {"v": rows})["v"][0, :, 0].astype(jnp.float32)

        # V(s', g) needs no gradient; in one pass with V(s, g) it would get one, of zeros.
        frozen = jax.lax.stop_gradient(params["value"])
        return of(params["value"], batch.states), of(frozen, column(batch, "next_states"))


@dataclass(frozen=True)
class Heads(CosineContrast):
    """A cosine critic with a TD head q_td(phi_hat, psi_hat) on its encoders."""

    alpha: float = 1.0
    """Weight of f_cos in the sum Q_hybrid, as a share of the value's range."""
    value_range: float = 1.0
    """How far apart the largest and the smallest value are: what alpha is a share of."""
    td_weight: float = 1.0
    """Weight of the TD loss in the sum with the contrastive one."""

    @property
    @abstractmethod
    def fits(self) -> Literal["q_td", "q_hybrid"]:
        """What the TD loss fits: the head alone, or its sum with f_cos."""

    @abstractmethod
    def q_td(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's TD scalar for matching rows of length 1: [members, ...]."""

    def q_hybrid(self, params: Params, units: Embeddings) -> jax.Array:
        """Each member's q_td plus the weighted f_cos for matching rows of length 1: [members, ...].

        Both are in the units of the value: a cosine lies in [-1, 1], a value of the reward -1/0
        between -1 / (1 - gamma) and 0.
        """
        weight = self.alpha * self.value_range
        return self.q_td(params, units) + weight * inner(units.phi, units.psi)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, the TD scalar, and the sum, of embeddings of any length."""
        return {
            **super().scalars(),
            "q_td": lambda params, e: jnp.mean(self.q_td(params, units(e)), axis=0),
            "q_hybrid": lambda params, e: jnp.mean(self.q_hybrid(params, units(e)), axis=0),
        }


@dataclass(frozen=True)
class BellmanHeads(BellmanCritic, Heads):
    """Heads that IQL fits, with a network V(s, g) of its own.

    Both losses train the encoders; the target network is a slow copy of encoders and head.
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
        dtype = self.head.dtype  # joined in the head's type: half the bytes in bfloat16
        inputs = jnp.concatenate([x.astype(dtype) for x in units], axis=-1)
        members, *lead, width = inputs.shape
        rows = inputs.reshape(members, -1, width)
        out = self.head.apply(params["head"], {"td": rows})["td"]
        return out.reshape(members, *lead).astype(jnp.float32)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Contrastive loss on the positives plus IQL of the fitted scalar on the value goals."""
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
