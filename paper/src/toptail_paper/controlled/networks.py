"""The small networks of the controlled world, by Flax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Params
from toptail.lab.critics.networks import Embeddings, Side, join, require_sizes


class MLP(nn.Module):
    """Dense, GELU and optionally LayerNorm per hidden layer, then a linear layer."""

    hidden: tuple[int, ...]
    """Width of each hidden layer."""
    out: int
    """Width of the output."""
    layer_norm: bool = False
    """Whether a LayerNorm follows each activation."""

    @nn.compact
    def __call__(self, x: jax.Array, *, features: bool = False) -> jax.Array:
        """Map [..., in] to [..., out], or to the last hidden layer if ``features``."""
        for width in self.hidden:
            x = nn.gelu(nn.Dense(width)(x))
            if self.layer_norm:
                x = nn.LayerNorm()(x)
        return x if features else nn.Dense(self.out)(x)


def init_ensemble(network: MLP, key: jax.Array, members: int, inputs: int) -> Params:
    """Independent parameters of ``members`` copies, stacked along a first axis."""
    keys = jax.random.split(key, members)
    variables = jax.vmap(network.init, in_axes=(0, None))(keys, jnp.zeros((1, inputs)))
    params: Params = variables["params"]
    return params


def apply_ensemble(
    network: MLP, params: Params, x: jax.Array, *, features: bool = False
) -> jax.Array:
    """Outputs of all members for the same input [..., in]: [members, ..., out]."""

    def one(member: Params) -> jax.Array:
        return cast("jax.Array", network.apply({"params": member}, x, features=features))

    return jax.vmap(one)(params)


@dataclass(frozen=True)
class Encoders:
    """phi(s, a) and psi(g): two MLPs into the same space, ``ensemble`` copies of each."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer."""
    embed_dim: int = 16
    """Dimension d of the embeddings."""
    ensemble: int = 1
    """Independent copies of the pair; a score is their mean."""
    layer_norm: bool = False
    """Whether a LayerNorm follows each activation."""

    def __post_init__(self) -> None:
        require_sizes(self.hidden, embed_dim=self.embed_dim, ensemble=self.ensemble)

    @property
    def half(self) -> bool:
        """Whether matrix products are bfloat16; only full-size encoders can be."""
        return False

    @property
    def network(self) -> MLP:
        """The network of either side; their inputs differ."""
        return MLP(self.hidden, self.embed_dim, self.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        key_phi, key_psi = jax.random.split(key)
        return {
            "phi": init_ensemble(self.network, key_phi, self.ensemble, state_dim + action_dim),
            "psi": init_ensemble(self.network, key_psi, self.ensemble, goal_dim),
        }

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        """Embed rows [..., dim] of states and actions, and of goals.

        Goals that broadcast against the pairs, as where many candidates share a goal, are embedded
        once.
        """
        return Embeddings(
            apply_ensemble(self.network, params["phi"], join(states, actions)),
            apply_ensemble(self.network, params["psi"], goals),
        )

    def side(self, params: Params, side: Side, rows: jax.Array) -> jax.Array:
        """One encoder without the other, of its inputs [n, in]: [members, n, d] in float32."""
        return apply_ensemble(self.network, params[side], rows)
