"""Twin networks of the joint input (s, g, a), for any objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, ParamSpec

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Critic, Params, Read, half_kernels
from toptail.lab.critics.networks import Stack, flat_rows, require_sizes


@dataclass(frozen=True)
class JointMLP(Critic):
    """Scalars MLP_j([s; g; a]); the score is their mean."""

    width: ClassVar[int] = 1
    """Outputs of each network; a critic with several, such as classes, has its own `members`."""

    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""
    ensemble: int = 2
    """Independent networks; the score is their mean."""
    beta: float = 1.0
    """Standard deviations that the lower bound subtracts from the mean."""
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""
    layer_norm: bool = True
    """Whether a LayerNorm follows each activation."""

    def __post_init__(self) -> None:
        require_sizes(self.hidden, ensemble=self.ensemble)

    @property
    def stack(self) -> Stack:
        return self.stack_of(("q", self.ensemble))

    def stack_of(self, *groups: tuple[str, int]) -> Stack:
        """Networks of ``width`` outputs each, in groups that read the same input."""
        return Stack(groups, self.hidden, self.width, self.bfloat16, self.layer_norm)

    def compute_params(self, params: Params) -> Params:
        return half_kernels(params) if self.bfloat16 else params

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        return self.stack.init(key, {"q": state_dim + goal_dim + action_dim})

    def members(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Each network's scalar for rows [..., dim]: [members, ...]."""
        return self.outputs(params, states, actions, goals)[..., 0]

    def outputs(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Each network's outputs for rows [..., dim]: [members, ..., width]."""
        x, lead = flat_rows(states, goals, actions)
        out = self.stack.apply(params, {"q": x})["q"]
        return out.reshape(self.ensemble, *lead, self.width).astype(jnp.float32)

    def readouts(self) -> Mapping[str, Read]:
        """Mean, minimum and lower confidence bound of the networks, under the deployed name."""
        return ensemble_readouts(self.members, self.beta, self.deployed)


Of = ParamSpec("Of")
"""What a readout is computed from: parameters with rows, or with embeddings."""


def ensemble_readouts(
    members: Callable[Of, jax.Array], beta: float, name: str = "q"
) -> dict[str, Callable[Of, jax.Array]]:
    """Mean, minimum, and mean less ``beta`` standard deviations, of members [members, ...]."""

    def lower(*args: Of.args, **names: Of.kwargs) -> jax.Array:
        q = members(*args, **names)
        return jnp.mean(q, axis=0) - beta * jnp.std(q, axis=0)

    return {
        name: lambda *args, **names: jnp.mean(members(*args, **names), axis=0),
        f"{name}_min": lambda *args, **names: jnp.min(members(*args, **names), axis=0),
        f"{name}_lcb": lower,
    }
