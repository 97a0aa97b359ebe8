"""Twin networks of the joint input (s, g, a), for any objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Critic, Params, Read, half_kernels
from toptail.lab.critics.networks import Stack, flat_rows, require_sizes


@dataclass(frozen=True)
class JointMLP(Critic):
    """Scalars MLP_j([s; g; a]); the score is their mean."""

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
        """The networks."""
        return self.stack_of(("q", self.ensemble))

    def stack_of(self, *groups: tuple[str, int]) -> Stack:
        """Networks of one output each, in groups that read the same input."""
        return Stack(groups, self.hidden, 1, self.bfloat16, self.layer_norm)

    def compute_params(self, params: Params) -> Params:
        """Kernels in bfloat16 where the products are."""
        return half_kernels(params) if self.bfloat16 else params

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh networks."""
        return self.stack.init(key, {"q": state_dim + goal_dim + action_dim})

    def members(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> jax.Array:
        """Each network's output for rows [..., dim]: [members, ...]."""
        x, lead = flat_rows(states, goals, actions)
        out = self.stack.apply(params, {"q": x})["q"]
        return out.reshape(self.ensemble, *lead).astype(jnp.float32)

    def readouts(self) -> Mapping[str, Read]:
        """Mean, minimum and lower confidence bound of the networks, under the deployed name."""
        return ensemble_readouts(self.members, self.beta, self.deployed)


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
