"""Bellman training by expectiles (IQL): what every critic with a value target shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.learner import TARGET, Batch, Info, Params, column
from toptail.lab.critics.losses import squared_td_error
from toptail.lab.critics.stack import Stack, StackedEncoders

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
    """Discount."""

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

        Of the value goals, as the batch's rewards and masks are: q and target_q [members, B] from
        the trained Q networks and their slow copies, v and next_v [B] at (s, g) and at (s', g).
        """
        masks = column(batch, "masks")
        goal = batch.rewards + self.gamma * masks * jax.lax.stop_gradient(next_v)
        q_loss, info = squared_td_error(q, goal[None])
        smaller = jax.lax.stop_gradient(jnp.min(target_q, axis=0))
        v_loss = expectile_loss(smaller - v, self.expectile)
        return q_loss + v_loss, {"q_loss": q_loss, "v_loss": v_loss, "q_mean": jnp.mean(q), **info}


@dataclass(frozen=True)
class BellmanCritic(EmbeddingCritic):
    """A part of embedding critics: a network V(s, g) of a Q network's shape, and a slow target."""

    reads_rewards: ClassVar[bool] = True

    encoders: StackedEncoders = StackedEncoders()
    """Sizes of the two encoders."""

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    @property
    def value(self) -> Stack:
        """The V network."""
        return self.encoders.beside("v", 1)

    def with_value(self, params: Params, key: jax.Array, inputs: int) -> Params:
        """Parameters, a fresh V of so many inputs beside them, and their copy as first target."""
        value = self.value.init(key, {"v": inputs})
        return {**params, "value": value, TARGET: jax.tree.map(jnp.copy, params)}

    def after_update(self, params: Params) -> Params:
        """Move the target."""
        return {**params, TARGET: self.bellman.follow(params[TARGET], params)}

    def now_and_next(self, params: Params, batch: Batch) -> tuple[jax.Array, jax.Array]:
        """V(s, g) and V(s', g) of the value goals, each [B]."""

        def of(value: Params, states: jax.Array) -> jax.Array:
            rows = jnp.concatenate([states, batch.td_goals], axis=-1)
            return self.value.apply(value, {"v": rows})["v"][0, :, 0].astype(jnp.float32)

        # The second has no gradient, and in one pass with the first would get one, of zeros.
        frozen = jax.lax.stop_gradient(params["value"])
        return of(params["value"], batch.states), of(frozen, column(batch, "next_states"))
