"""The two small networks that critics are built from: an MLP, and a pair of encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

import flax.linen as nn
import jax
import jax.numpy as jnp

from toptail.errors import check_whole
from toptail.lab.critics.learner import Params

NORM_FLOOR = 1e-12
"""Added to squared norms, so that the gradient of a norm is finite at 0."""

Side: TypeAlias = Literal["phi", "psi"]
"""One of the two encoders: of pairs (s, a), or of goals."""


def require_sizes(hidden: tuple[int, ...], **counts: int) -> None:
    """Refuse layers without a width, and numbers of things that are not at least 1."""
    for name, value in (*(("hidden", width) for width in hidden), *counts.items()):
        check_whole(name, value, 1)


class MLP(nn.Module):
    """Dense, GELU and (if asked) LayerNorm per hidden layer, then a linear layer."""

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
    """Every member's output for the same input [..., in]: [members, ..., out]."""

    def one(member: Params) -> jax.Array:
        return cast("jax.Array", network.apply({"params": member}, x, features=features))

    return jax.vmap(one)(params)


class Embeddings(NamedTuple):
    """Both sides of the bilinear score."""

    phi: jax.Array
    """[members, ..., d] state-action embeddings."""

    psi: jax.Array
    """[members, ..., d] goal embeddings."""


@dataclass(frozen=True)
class Encoders:
    """phi(s, a) and psi(g): two MLPs into the same space, ``ensemble`` copies of each."""

    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer."""

    embed_dim: int = 16
    """Dimension d of the embeddings."""

    ensemble: int = 1
    """Independent copies of the pair; all are trained, and a score is their mean."""

    layer_norm: bool = False
    """Whether a LayerNorm follows each activation."""

    def __post_init__(self) -> None:
        require_sizes(self.hidden, embed_dim=self.embed_dim, ensemble=self.ensemble)

    @property
    def half(self) -> bool:
        """Whether matrix products are bfloat16: not here, but in the full-size encoders."""
        return False

    @property
    def network(self) -> MLP:
        """The network both sides use (their inputs differ)."""
        return MLP(self.hidden, self.embed_dim, self.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters of both sides."""
        key_phi, key_psi = jax.random.split(key)
        return {
            "phi": init_ensemble(self.network, key_phi, self.ensemble, state_dim + action_dim),
            "psi": init_ensemble(self.network, key_psi, self.ensemble, goal_dim),
        }

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        """Embed rows [..., dim] of states and actions, and of goals.

        psi is not repeated for goals that broadcast against the pairs, as where many candidates
        share a goal.
        """
        return Embeddings(
            apply_ensemble(self.network, params["phi"], join(states, actions)),
            apply_ensemble(self.network, params["psi"], goals),
        )

    def side(self, params: Params, side: Side, rows: jax.Array) -> jax.Array:
        """One encoder without the other, of its inputs [n, in]: [members, n, d] in float32."""
        return apply_ensemble(self.network, params[side], rows)


def join(*rows: jax.Array) -> jax.Array:
    """Broadcast the leading axes of [..., dim] arrays and concatenate along the last."""
    lead = jnp.broadcast_shapes(*(x.shape[:-1] for x in rows))
    return jnp.concatenate([jnp.broadcast_to(x, (*lead, x.shape[-1])) for x in rows], axis=-1)


def norm(x: jax.Array) -> jax.Array:
    """Euclidean length along the last axis, with a finite gradient at 0."""
    return jnp.sqrt(jnp.sum(x * x, axis=-1) + NORM_FLOOR)


def unit(x: jax.Array) -> jax.Array:
    """Scale each vector of the last axis to length 1."""
    return x / norm(x)[..., None]


def units(e: Embeddings) -> Embeddings:
    """Both sides scaled to length 1."""
    return Embeddings(unit(e.phi), unit(e.psi))


def inner(x: jax.Array, y: jax.Array) -> jax.Array:
    """Inner product of matching rows: [..., d] and [..., d] to [...]."""
    return jnp.sum(x * y, axis=-1)


def all_pairs(phi: jax.Array, psi: jax.Array) -> jax.Array:
    """Inner products of every phi with every psi: [e, B, d] twice to [e, B, B]."""
    return phi @ jnp.swapaxes(psi, -1, -2)
