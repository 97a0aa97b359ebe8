"""Trajectories on the device, and batches whose goals are drawn inside the jitted step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.base import Batch
from toptail.lab.critics.bellman import Reward
from toptail.lab.tasks.trajectories import Trajectories


class OfflineData(NamedTuple):
    """A data set's rows as device arrays."""

    observations: jax.Array
    """[rows, o] float32"""
    actions: jax.Array
    """[rows, a] float32"""
    last: jax.Array
    """[rows] int32: the last row of each row's trajectory."""
    transitions: jax.Array
    """[transitions] int32: rows that have a next row."""

    @property
    def states(self) -> jax.Array:
        """The observations, under the name that `init_state` reads their width by."""
        return self.observations

    @property
    def goals(self) -> jax.Array:
        """Goals are observations."""
        return self.observations


def device_data(trajectories: Trajectories) -> OfflineData:
    """Put the rows on the default device."""
    if len(trajectories) > np.iinfo(np.int32).max:
        raise InputError(
            f"{trajectories.source} has {len(trajectories):,} rows: too many to index."
        )
    last = trajectories.ends[trajectories.trajectory]
    return OfflineData(
        jnp.asarray(trajectories.observations, jnp.float32),
        jnp.asarray(trajectories.actions, jnp.float32),
        jnp.asarray(last, jnp.int32),
        jnp.asarray(trajectories.transitions, jnp.int32),
    )


class Drawn(NamedTuple):
    """Drawn rows of the data set, each [size]."""

    row: jax.Array
    """Transitions."""
    goal: jax.Array
    """Contrastive goals."""
    value_goal: jax.Array
    """Value goals."""
    anywhere: jax.Array
    """Rows of any trajectory, independent of the transition."""


@dataclass(frozen=True)
class GoalSampling:
    """How transitions and their goals are drawn; an instance is a sampler for the trainer.

    The contrastive positive is a future state of the same trajectory at a geometric distance.
    The value goal is the current state, a future state or a random state of the data set. No
    goal lies beyond the trajectory's end, and the last row of a trajectory, whose action leads
    nowhere, is never drawn as a transition.
    """

    gamma: float = 0.99
    """Discount; a geometric distance d has P(d) = (1 - gamma) gamma^(d - 1), d = 1, 2, ..."""
    current: float = 0.2
    """Share of value goals that are the current state (reward and end of episode at once)."""
    future: float = 0.5
    """Share of value goals that are a future state; the rest are random states."""
    uniform_future: bool = False
    """Whether the future value goals are uniform over the rest of the trajectory, not geometric."""
    reward: Reward = "-1/0"
    """The reward that value goals give."""
    positive_gamma: float | None = None
    """Discount of the distance of contrastive positives; ``gamma`` by default."""
    positive_window: int | None = None
    """If given, contrastive positives are uniform over distances 1, 2, ... up to this one, within
    the trajectory, as evaluation triples are; by default they are geometric."""

    def __post_init__(self) -> None:
        if self.positive_gamma is not None and not 0 < self.positive_gamma < 1:
            raise InputError(
                f"{option('positive_gamma', self.positive_gamma)} must lie between 0 and 1."
            )
        if self.positive_window is not None:
            check_whole("positive_window", self.positive_window, 1)
            if self.positive_gamma is not None:
                raise InputError(
                    f"{option('positive_window')} and {option('positive_gamma')} are both given: "
                    "positives are uniform or geometric, so leave one out."
                )
        if not 0 < self.gamma < 1 or min(self.current, self.future) < 0:
            raise InputError(
                "gamma must lie between 0 and 1, and goal shares must not be negative."
            )
        if self.current + self.future > 1:
            raise InputError(
                f"Goal shares {self.current:g} (current) and {self.future:g} (future) add up to "
                "more than 1."
            )

    def rows(self, key: jax.Array, data: OfflineData, size: int) -> Drawn:
        """Draw rows [size] of transitions, and of goals for them."""
        k_row, k_goal, k_future, k_random, k_kind = jax.random.split(key, 5)
        row = data.transitions[jax.random.randint(k_row, (size,), 0, data.transitions.shape[0])]
        last = data.last[row]
        if self.positive_window is not None:
            near = _uniform_distance(k_goal, jnp.minimum(last - row, self.positive_window))
        else:
            discount = self.gamma if self.positive_gamma is None else self.positive_gamma
            near = _distance(k_goal, size, discount)
        goal = jnp.minimum(row + near, last)
        if self.uniform_future:
            far = _uniform_distance(k_future, last - row)
        else:
            far = _distance(k_future, size, self.gamma)
        future = jnp.minimum(row + far, last)
        anywhere = jax.random.randint(k_random, (size,), 0, data.observations.shape[0])
        kind = jax.random.uniform(k_kind, (size,))
        value = jnp.where(kind < self.current + self.future, future, anywhere)
        return Drawn(row, goal, jnp.where(kind < self.current, row, value), anywhere)

    def __call__(self, key: jax.Array, data: OfflineData, size: int) -> Batch:
        """Draw a batch."""
        row, goal, value_goal, anywhere = self.rows(key, data, size)
        reached = (row == value_goal).astype(jnp.float32)
        return Batch(
            states=data.observations[row],
            actions=data.actions[row],
            goals=data.observations[goal],
            rewards=reached - 1.0 if self.reward == "-1/0" else reached,
            value_goals=data.observations[value_goal],
            next_states=data.observations[row + 1],
            masks=1.0 - reached,
            offsets=(goal - row).astype(jnp.float32),
            next_goals=data.observations[row + 1],
            random_goals=data.observations[anywhere],
        )


def _distance(key: jax.Array, size: int, gamma: float) -> jax.Array:
    """Geometric distances by inversion: ceil(log(1 - u) / log(gamma)), at least 1."""
    u = jax.random.uniform(key, (size,))
    steps = jnp.ceil(jnp.log1p(-u) / jnp.log(gamma))
    return jnp.maximum(steps, 1).astype(jnp.int32)


def _uniform_distance(key: jax.Array, longest: jax.Array) -> jax.Array:
    """Distances uniform over 1, 2, ..., ``longest``, for each ``[size]``."""
    rest = longest.astype(jnp.float32)
    return 1 + jnp.floor(jax.random.uniform(key, longest.shape) * rest).astype(jnp.int32)
