"""Quasimetric RL (Wang et al., 2023): minus the learned distance after a step of a latent model.

The distance of two latent states is an interval quasimetric embedding (IQE; Wang and Isola, 2022).
It is made as large as possible between states at random, while a recorded step is at most 1 long;
the triangle inequality, which any IQE has, then makes it the length of the shortest path. A latent
model of one step says where an action leads.

Ideal: minus the number of steps of the shortest path to the goal after the action, which orders
actions as Q* does. Deviations from OGBench's QRL, whose networks, distance and losses these are:
``ensemble`` networks where it has one, and no actor. A goal must be a state; one that has fewer
numbers is filled up with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import (
    Batch,
    Critic,
    Factors,
    Info,
    Params,
    Read,
    column,
    half_kernels,
)
from toptail.lab.critics.losses import softplus
from toptail.lab.critics.networks import Stack, flat_rows, require_sizes
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="quasimetric",
    title="Quasimetric (QRL)",
    place=14,
    group="other",
    network="quasimetric",
    deployed="minus_distance",
    readouts=(Readout("minus_distance", "bellman"),),
    ideal="q_star",
)

FAR, SOFTNESS = 500.0, 100.0
"""Distances much beyond the first gain nothing more; the second says how gradually that begins."""


def iqe_distance(x: jax.Array, y: jax.Array, alpha: jax.Array, group: int) -> jax.Array:
    """Interval quasimetric embedding, [..., d] and [..., d] to [...].

    Each ``group`` of coordinates has the intervals [x_i, y_i], of which those that run backwards
    are empty. A component is the length of their union: in the order of their beginnings, each
    adds what lies beyond all ends before it. ``alpha`` weighs the components' mean against their
    maximum.
    """
    low = x.reshape(*x.shape[:-1], -1, group)
    high = jnp.maximum(y.reshape(low.shape), low)
    here, other = low[..., :, None], low[..., None, :]
    earlier = jnp.broadcast_to(jnp.tri(group, k=-1, dtype=bool), (*low.shape, group))
    before = (other < here) | ((other == here) & earlier)
    ends = jnp.where(before, jnp.broadcast_to(high[..., None, :], before.shape), -jnp.inf)
    begin = jnp.maximum(low, jnp.max(ends, axis=-1))
    components = jnp.sum(jax.nn.relu(high - begin), axis=-1)
    mean, most = jnp.mean(components, axis=-1), jnp.max(components, axis=-1)
    return most + alpha * (mean - most)


@dataclass(frozen=True)
class Quasimetric(Critic):
    """-d(z + step(z, a), phi(g)) with z = phi(s): encoder, latent model and distance of QRL."""

    name: ClassVar[str] = "quasimetric"
    deployed: ClassVar[str] = "minus_distance"
    reads_positives: ClassVar[bool] = False

    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""
    embed_dim: int = 512
    """Dimension of the latent states."""
    group: int = 8
    """Intervals of each component of the distance."""
    ensemble: int = 2
    """Independent networks; the score is their mean."""
    slack: float = 0.05
    """Mean squared excess of a step's length over 1 that the multiplier aims at."""
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""
    layer_norm: bool = True
    """Whether a LayerNorm follows each activation."""

    def __post_init__(self) -> None:
        require_sizes(
            self.hidden, embed_dim=self.embed_dim, ensemble=self.ensemble, group=self.group
        )
        if self.embed_dim % self.group:
            raise InputError(
                f"{option('embed_dim', self.embed_dim)} must be a multiple of "
                f"{option('group', self.group)}."
            )

    def _stack(self, name: str) -> Stack:
        groups = ((name, self.ensemble),)
        return Stack(groups, self.hidden, self.embed_dim, self.bfloat16, self.layer_norm)

    def compute_params(self, params: Params) -> Params:
        return half_kernels(params) if self.bfloat16 else params

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        if goal_dim > state_dim:
            raise InputError(f"quasimetric needs goals that are states, not of {goal_dim} numbers.")
        key_phi, key_step = jax.random.split(key)
        return {
            "phi": self._stack("phi").init(key_phi, {"phi": state_dim}),
            "step": self._stack("step").init(key_step, {"step": self.embed_dim + action_dim}),
            "alpha": jnp.zeros(self.ensemble),
            "log_multiplier": jnp.zeros(self.ensemble),
        }

    def latent(self, params: Params, rows: jax.Array) -> jax.Array:
        """Latent states [members, n, d] of states or goals [n, dim]."""
        missing = params["phi"]["kernel_phi"].shape[-2] - rows.shape[-1]
        rows = jnp.pad(rows, [(0, 0), (0, missing)])
        return self._stack("phi").apply(params["phi"], {"phi": rows})["phi"].astype(jnp.float32)

    def after(self, params: Params, z: jax.Array, actions: jax.Array) -> jax.Array:
        """Latent states after actions [n, a], by the latent model."""
        beside = jnp.broadcast_to(actions[None], (self.ensemble, *actions.shape))
        rows = {"step": jnp.concatenate([z, beside], axis=-1)}
        return z + self._stack("step").apply(params["step"], rows)["step"].astype(jnp.float32)

    def distance(self, params: Params, x: jax.Array, y: jax.Array) -> jax.Array:
        """Distances [members, ...] from latent states x to y [members, ..., d]."""
        alpha = jax.nn.sigmoid(params["alpha"]).reshape(-1, *(1,) * (x.ndim - 2))
        return iqe_distance(x, y, jnp.broadcast_to(alpha, x.shape[:-1]), self.group)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Random goals far, steps at most 1 long (by a multiplier), and the latent model."""
        del key
        rows = [batch.states, column(batch, "next_states")]
        here, there = jnp.split(self.latent(params, jnp.concatenate(rows)), 2, axis=1)
        goals = self.latent(params, column(batch, "random_goals"))
        far = self.distance(params, here, goals)
        spread = jnp.mean(SOFTNESS * softplus((FAR - far) / SOFTNESS), axis=1)
        step = self.distance(params, here, there)
        excess = jnp.mean(jax.nn.relu(step - 1.0) ** 2, axis=1)
        multiplier = jnp.exp(params["log_multiplier"])
        dual = multiplier * (self.slack - jax.lax.stop_gradient(excess))
        predicted = self.after(params, here, batch.actions)
        misses = self.distance(params, there, predicted) + self.distance(params, predicted, there)
        model = jnp.mean(misses, axis=1) / 2.0
        held = excess * jax.lax.stop_gradient(multiplier)
        loss = jnp.mean(spread + held + dual + model)
        return loss, {
            "far": jnp.mean(far),
            "step_length": jnp.mean(step),
            "multiplier": jnp.mean(multiplier),
            "model_loss": jnp.mean(model),
        }

    def factors(self, readout: str) -> Factors | None:
        """The latent state after the action, and the goal's."""
        if readout != self.deployed:
            return None
        return Factors(
            lambda params, s, a: self.after(params, self.latent(params, s), a),
            self.latent,
            lambda params, x, y: -jnp.mean(self.distance(params, x, y), axis=0),
        )

    def readouts(self) -> Mapping[str, Read]:
        def minus_distance(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
            axes = jnp.zeros((*jnp.broadcast_shapes(*(x.shape[:-1] for x in (s, a, g))), 0))
            states, actions, goals = (flat_rows(x, axes)[0] for x in (s, a, g))
            after = self.after(params, self.latent(params, states), actions)
            distance = self.distance(params, after, self.latent(params, goals))
            return -jnp.mean(distance, axis=0).reshape(axes.shape[:-1])

        return {"minus_distance": minus_distance}
