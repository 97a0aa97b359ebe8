"""TD-Q: the goal-conditioned IQL critic (GCIQL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import TARGET, Batch, Info, Params, Read, column
from toptail.lab.critics.bellman import Bellman
from toptail.lab.critics.joint_mlp import JointMLP
from toptail.lab.critics.networks import Stack, join, norm
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="tdq",
    title="TD-Q",
    place=1,
    group="main",
    network="mlp",
    deployed="q",
    readouts=(
        *Readout.ensemble("q", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
    ideal="q_star",
    cell=("bootstrapped", "regression", "optimal"),
)


@dataclass(frozen=True)
class TDQ(JointMLP):
    """Twin Q(s, a, g) and V(s, g), each an MLP of the joint input; the score is the mean Q.

    Q is fitted to r + gamma mask V(s', g), V to an expectile of the smaller target Q. Q and V
    have one shape and run as one stack; so do their frozen copies, where Q's follow slowly and
    V's is V itself.
    """

    name: ClassVar[str] = "tdq"
    deployed: ClassVar[str] = "q"
    reads_rewards: ClassVar[bool] = True
    reads_positives: ClassVar[bool] = False

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    @property
    def stack(self) -> Stack:
        """All Q networks and V."""
        return self.stack_of(("q", self.ensemble), ("v", 1))

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        width = state_dim + goal_dim
        return self.fresh(key, {"q": width + action_dim, "v": width})

    def fresh(self, key: jax.Array, inputs: Mapping[str, int]) -> Params:
        """Fresh networks of these widths of inputs, and their copy as the first target."""
        params = self.stack.init(key, inputs)
        return {**params, TARGET: jax.tree.map(jnp.copy, params)}

    def after_update(self, params: Params) -> Params:
        """The target takes over a little of Q, and all of V."""
        rate = jnp.array([self.bellman.tau] * self.ensemble + [1.0])
        rates = {"kernel_q": rate[:-1], "kernel_v": rate[-1:]}

        def follow(name: str, target: jax.Array) -> jax.Array:
            own = rates.get(name, rate).reshape(-1, *(1,) * (target.ndim - 1))
            moved = target + own * (params[name] - target)
            return jnp.where(own < 1.0, moved, params[name])  # a sum gives V only up to rounding

        target = {name: follow(name, value) for name, value in params[TARGET].items()}
        return {**params, TARGET: target}

    def value_goals(self, batch: Batch) -> jax.Array:
        """The goals [B, goal_dim] that Q and V are fitted for."""
        return batch.td_goals

    def q_rows(self, params: Params, batch: Batch) -> jax.Array:
        """What Q reads of a batch, [B, in]."""
        return self.q_inputs(params, batch.states, batch.actions, self.value_goals(batch))

    def q_inputs(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """What Q reads of rows whose leading axes broadcast: [..., in]."""
        del params
        return join(states, goals, actions)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        goals = self.value_goals(batch)
        now = jnp.concatenate([batch.states, goals], axis=-1)
        after = jnp.concatenate([column(batch, "next_states"), goals], axis=-1)
        pair = self.q_rows(params, batch)
        trained = self.stack.apply(params, {"q": pair, "v": now})
        frozen = self.stack.apply(params[TARGET], {"q": pair, "v": after})
        q, v, target_q, next_v = (
            out[name][..., 0].astype(jnp.float32)
            for out in (trained, frozen)
            for name in ("q", "v")
        )
        return self.bellman.losses(q, v[0], target_q, next_v[0], batch)

    def members(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Each Q network's value of rows [..., dim]: [members, ...]."""
        return self._read(params, states, actions, goals, features=False)[..., 0]

    def _read(
        self,
        params: Params,
        states: jax.Array,
        actions: jax.Array,
        goals: jax.Array,
        *,
        features: bool,
    ) -> jax.Array:
        joined = self.q_inputs(params, states, actions, goals)
        x, lead = joined.reshape(-1, joined.shape[-1]), joined.shape[:-1]
        only, own = self.stack.apart(params)["q"]
        out = only.apply(own, {"q": x}, features=features)["q"]
        return out.reshape(self.ensemble, *lead, out.shape[-1]).astype(jnp.float32)

    def readouts(self) -> Mapping[str, Read]:
        """Mean, minimum and lower confidence bound of the Q networks; their feature length."""

        def feature_norm(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
            return jnp.mean(norm(self._read(params, s, a, g, features=True)), axis=0)

        return {**super().readouts(), "feature_norm": feature_norm}
