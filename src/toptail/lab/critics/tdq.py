"""TD-Q: the goal-conditioned IQL critic (GCIQL)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Critic, Read
from toptail.lab.critics.bellman import Bellman, next_states
from toptail.lab.critics.learner import TARGET, Batch, Info, Params, half_kernels
from toptail.lab.critics.networks import norm, require_sizes
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.stack import Stack, flat_rows

ENTRY = Entry(
    name="tdq",
    title="TD-Q",
    place=1,
    group="main",
    network="mlp",
    deployed="q",
    readouts=(
        Readout("q", "bellman", value=True),
        Readout("q_min", "bellman", value=True),
        Readout("q_lcb", "bellman", value=True),
        Readout("feature_norm", "bellman"),
    ),
    one_step="tdq",
    ideal="q_star",
)


@dataclass(frozen=True)
class TDQ(Critic):
    """Twin Q(s, a, g) and V(s, g), each an MLP of the joint input; the score is the mean Q.

    Q is fitted to r + gamma mask V(s', g), V to an expectile of the smaller target Q. Q and V
    have one shape and run as one stack; so do their frozen copies, where Q's follow slowly and
    V's is V itself.
    """

    name: ClassVar[str] = "tdq"
    deployed: ClassVar[str] = "q"

    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""

    ensemble: int = 2
    """Q networks."""

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""

    beta: float = 1.0
    """Standard deviations that the readout ``q_lcb`` subtracts from the mean Q."""

    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    def __post_init__(self) -> None:
        require_sizes(self.hidden, ensemble=self.ensemble)

    @property
    def stack(self) -> Stack:
        """All Q networks and V."""
        return Stack((("q", self.ensemble), ("v", 1)), self.hidden, 1, self.bfloat16)

    def compute_params(self, params: Params) -> Params:
        """Kernels in bfloat16 where the products are."""
        return half_kernels(params) if self.bfloat16 else params

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh networks, and their copies as the first target."""
        inputs = {"q": state_dim + goal_dim + action_dim, "v": state_dim + goal_dim}
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

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """IQL on the value goals."""
        del key
        goals = batch.td_goals
        now = jnp.concatenate([batch.states, goals], axis=-1)
        after = jnp.concatenate([next_states(batch), goals], axis=-1)
        pair = jnp.concatenate([now, batch.actions], axis=-1)
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
        only_q = {
            name: value if name == "kernel_q" else value[: self.ensemble]
            for name, value in params.items()
            if name not in (TARGET, "kernel_v")
        }
        x, lead = flat_rows(states, goals, actions)
        only = replace(self.stack, groups=self.stack.groups[:1])
        out = only.apply(only_q, {"q": x}, features=features)["q"]
        return out.reshape(self.ensemble, *lead, out.shape[-1]).astype(jnp.float32)

    def readouts(self) -> Mapping[str, Read]:
        """Mean, minimum and lower confidence bound of the Q networks; their feature length."""

        def feature_norm(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
            return jnp.mean(norm(self._read(params, s, a, g, features=True)), axis=0)

        return {**ensemble_readouts(self.members, self.beta), "feature_norm": feature_norm}


def ensemble_readouts(members: Read, beta: float, name: str = "q") -> dict[str, Read]:
    """Mean, minimum, and mean less ``beta`` standard deviations, of members [members, ...]."""

    def lower(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        q = members(params, s, a, g)
        return jnp.mean(q, axis=0) - beta * jnp.std(q, axis=0)

    return {
        name: lambda *args: jnp.mean(members(*args), axis=0),
        f"{name}_min": lambda *args: jnp.min(members(*args), axis=0),
        f"{name}_lcb": lower,
    }
