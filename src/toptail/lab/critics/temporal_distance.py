"""Contrastive successor distance (CMD; Myers et al., 2024): a temporal distance by InfoNCE.

Logits are c(g) - d(phi(s, a), psi(g)), where d is a metric residual network (MRN; Liu et al., 2023)
and c is a network of the goal alone. The potential c takes up what depends on the goal only, so
that d is a distance; selection maximizes -d.

Ideal: log p(g | s, a) less a function of g, so that actions are ordered as by the raw critic's
ideal. Deviations from the published method: a goal is embedded without an action, embeddings have
64 coordinates (the distances of all B x B pairs are no matrix product), and no actor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.embedding import EmbeddingCritic, Scalar
from toptail.lab.critics.losses import symmetric_info_nce
from toptail.lab.critics.networks import NORM_FLOOR, Stack, StackedEncoders, norm
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="temporal_distance",
    title="Temporal distance (CMD)",
    place=15,
    group="other",
    network="quasimetric",
    deployed="minus_distance",
    readouts=(
        Readout("f_raw", "contrastive"),
        Readout("f_cos", "contrastive"),
        Readout("phi_norm", "contrastive"),
        Readout("minus_distance", "contrastive"),
    ),
    ideal="log_ratio",
)


def mrn_distance(x: jax.Array, y: jax.Array) -> jax.Array:
    """|x - y| over the first half of the axes, plus max_i relu(x_i - y_i) over the second.

    [..., d] and [..., d], whose axes broadcast, to [...].
    """
    half = x.shape[-1] // 2
    further = jnp.max(jax.nn.relu(x[..., half:] - y[..., half:]), axis=-1)
    return norm(x[..., :half] - y[..., :half]) + further


@jax.custom_vjp
def pair_distances(x: jax.Array, y: jax.Array) -> jax.Array:
    """`mrn_distance` of all pairs: [..., n, d] and [..., m, d] to [..., n, m].

    Goes through the coordinates one by one, forward and backward, so that arrays of n x m numbers
    are all that is kept, and none of n x m x d.
    """
    return _forward(x, y)[0]


Kept = tuple[jax.Array, ...]


def _forward(x: jax.Array, y: jax.Array) -> tuple[jax.Array, Kept]:
    half, none = x.shape[-1] // 2, jnp.zeros((*x.shape[:-1], y.shape[-2]), x.dtype)
    squares, _ = jax.lax.scan(
        lambda total, each: (total + _gaps(each) ** 2, None),
        none,
        _by_coordinate(x[..., :half], y[..., :half]),
    )

    def farther(found: tuple[jax.Array, jax.Array], each: Kept) -> tuple[Any, None]:
        (most, count), gaps = found, _gaps(each)
        count = jnp.where(gaps > most, 1.0, count + (gaps == most).astype(count.dtype))
        return (jnp.maximum(most, gaps), count), None

    pairs = _by_coordinate(x[..., half:], y[..., half:])
    (most, count), _ = jax.lax.scan(farther, (none, none), pairs)
    straight = jnp.sqrt(squares + NORM_FLOOR)
    return straight + most, (x, y, straight, most, count)


def _backward(kept: Kept, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The largest gap is shared by the coordinates that have it; a gap of 0 has no gradient."""
    x, y, straight, most, count = kept
    half, weight = x.shape[-1] // 2, gradient / straight
    share = jnp.where(most > 0, gradient / jnp.maximum(count, 1.0), 0.0)

    def summed(of_gaps: Callable[[jax.Array], jax.Array], x: jax.Array, y: jax.Array) -> Kept:
        def of_coordinate(_: None, each: Kept) -> tuple[None, Kept]:
            found = of_gaps(_gaps(each))
            return None, (found.sum(-1), -found.sum(-2))

        _, found = jax.lax.scan(of_coordinate, None, _by_coordinate(x, y))
        return tuple(jnp.moveaxis(each, 0, -1) for each in found)

    first = summed(lambda gaps: weight * gaps, x[..., :half], y[..., :half])
    further = summed(lambda gaps: jnp.where(gaps == most, share, 0.0), x[..., half:], y[..., half:])
    of_x, of_y = (jnp.concatenate(both, axis=-1) for both in zip(first, further, strict=True))
    return of_x, of_y


def _by_coordinate(x: jax.Array, y: jax.Array) -> Kept:
    return jnp.moveaxis(x, -1, 0), jnp.moveaxis(y, -1, 0)


def _gaps(each: Kept) -> jax.Array:
    """x_i - y_j of all pairs in one coordinate."""
    return each[0][..., :, None] - each[1][..., None, :]


pair_distances.defvjp(_forward, _backward)


@dataclass(frozen=True)
class TemporalDistance(EmbeddingCritic):
    """Logits c(g) - d(phi(s, a), psi(g)) of all pairs, trained by symmetric InfoNCE."""

    name: ClassVar[str] = "temporal_distance"
    deployed: ClassVar[str] = "minus_distance"

    encoders: StackedEncoders = StackedEncoders(embed_dim=64)

    @property
    def potential(self) -> Stack:
        """The networks c(g), one for each copy of the encoders."""
        return self.encoders.beside("c", self.encoders.ensemble)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        key_encoders, key_potential = jax.random.split(key)
        encoders = super().init(key_encoders, state_dim, action_dim, goal_dim)
        return {**encoders, "potential": self.potential.init(key_potential, {"c": goal_dim})}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        c = self.potential.apply(params["potential"], {"c": batch.goals})["c"][..., 0]
        distances = pair_distances(e.phi, e.psi)
        potential = jnp.broadcast_to(c.astype(jnp.float32)[:, None], distances.shape)
        return symmetric_info_nce(potential - distances)

    def scalars(self) -> Mapping[str, Scalar]:
        """The embeddings' scalars, and minus the distance."""
        own: Scalar = lambda _, e: -jnp.mean(mrn_distance(e.phi, e.psi), axis=0)  # noqa: E731
        return {**super().scalars(), "minus_distance": own}
