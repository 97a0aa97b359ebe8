"""What the trainer knows: an init, a loss, what to compute with, and what moves by itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Params: TypeAlias = dict[str, Any]
"""A tree of float32 arrays."""

Info: TypeAlias = dict[str, jax.Array]
"""Scalars worth a curve: what the trainer logs beside the loss."""

TARGET = "target"
"""Parameters under this name follow the others: no gradient, no optimizer state."""


LATER: Final = {"recorded": "where it is not the default"}
"""Marks a setting that older records do not have: at its default nothing says that it exists."""


def recorded(settings: Any) -> dict[str, Any]:
    """Every field of a dataclass of settings and of those inside it, less `LATER` defaults."""
    found = {}
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.metadata != LATER or value != field.default:
            found[field.name] = recorded(value) if is_dataclass(value) else value
    return found


class Batch(NamedTuple):
    """What a loss sees. A whole data set has the same shape with n rows in place of B."""

    states: jax.Array
    """[B, state_dim]"""

    actions: jax.Array
    """[B, action_dim]"""

    goals: jax.Array
    """[B, goal_dim] the contrastive positive of each row; the other rows' goals are negatives."""

    rewards: jax.Array
    """[B] the reward of the step towards the value goal."""

    value_goals: jax.Array | None = None
    """[B, goal_dim] the goal that the reward was computed for; None if it is the positive."""

    next_states: jax.Array | None = None
    """[B, state_dim] the state after the action; None where episodes have one step."""

    masks: jax.Array | None = None
    """[B] 0 where the episode ends with this step (the goal is reached), else 1."""

    offsets: jax.Array | None = None
    """[B] steps from the state to its contrastive positive."""

    next_goals: jax.Array | None = None
    """[B, goal_dim] the state after the action, as a goal."""

    random_goals: jax.Array | None = None
    """[B, goal_dim] goals of the whole data set, drawn without regard to the row."""

    @property
    def td_goals(self) -> jax.Array:
        """[B, goal_dim] the goals of the TD loss."""
        return self.goals if self.value_goals is None else self.value_goals


class Learner(ABC):
    """Something with parameters and a loss; equal settings are equal learners.

    Subclasses are frozen dataclasses. A learner holds no parameters. Everything it does is a pure
    function of them, so that the trainer can scan it over steps and map it over seeds without
    knowing what it is.
    """

    name: ClassVar[str]
    """Its name in tables, files and flags."""

    reads_rewards: ClassVar[bool] = False
    """Whether the batch's rewards have a part in its loss, so that the reward is its setting."""

    reads_positives: ClassVar[bool] = True
    """Whether the batch's contrastive positives have a part in its loss."""

    @abstractmethod
    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters."""

    @abstractmethod
    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Training loss of a batch, and scalars to log."""

    def compute_params(self, params: Params) -> Params:
        """The parameters as the loss wants them; by default as they are.

        A learner with bfloat16 products takes its kernels in bfloat16. The trainer makes this copy
        in the same pass that updates the parameters, where it costs almost nothing.
        """
        return params

    def after_update(self, params: Params) -> Params:
        """Whatever moves without a gradient, after each optimizer step.

        Nothing by default. A learner with a target network keeps it inside ``params`` under
        `TARGET`, behind a stop_gradient, and moves it here.
        """
        return params

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """What is worth a curve on held-out rows [n, dim]: nothing by default.

        ``score`` [n] is compared with how near the goals are; anything else is a scalar.
        """
        del params, states, actions, goals
        return {}


def column(batch: Batch, name: str) -> jax.Array:
    """A column that not every batch has."""
    found: jax.Array | None = getattr(batch, name)
    if found is None:
        raise ValueError(f"This loss needs batch.{name}.")
    return found


def half_kernels(params: Params) -> Params:
    """A copy with every matrix (``kernel...``) in bfloat16."""
    return {
        name: half_kernels(value)
        if isinstance(value, dict)
        else (value.astype(jnp.bfloat16) if name.startswith("kernel") else value)
        for name, value in params.items()
    }


def trained_only(params: Params) -> Params:
    """The parameters without those that follow the others."""
    return {name: value for name, value in params.items() if name != TARGET}


def parameter_count(params: Params) -> int:
    """Count the trained scalars of a parameter tree: target networks do not count."""
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(trained_only(params)))
