"""The networks that critics are built from: small ones in Flax, and full-size stacks.

A full-size critic is several equal networks: two copies each of phi and psi, or two Q networks and
a V network, which differ only in their inputs. A `Stack` runs them as one batched matrix product
per layer, which is fast on a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol, TypeAlias

import jax
import jax.numpy as jnp

from toptail.errors import check_whole
from toptail.lab.critics.base import Params
from toptail.lab.critics.fused import add_bias, bias_gelu_norm

NORM_FLOOR = 1e-12
"""Added to squared norms, so that the gradient of a norm is finite at 0."""

Side: TypeAlias = Literal["phi", "psi"]
"""One of the two encoders: of pairs (s, a), or of goals."""


def require_sizes(hidden: tuple[int, ...], **counts: int) -> None:
    """Refuse widths of layers and other sizes below 1."""
    for name, value in (*(("hidden", width) for width in hidden), *counts.items()):
        check_whole(name, value, 1)


class Embeddings(NamedTuple):
    """Both sides of the bilinear score."""

    phi: jax.Array
    """[members, ..., d] state-action embeddings."""
    psi: jax.Array
    """[members, ..., d] goal embeddings."""


class Encoders(Protocol):
    """phi(s, a) and psi(g), ``ensemble`` copies of each: what a critic on embeddings reads."""

    @property
    def embed_dim(self) -> int:
        """Dimension d of the embeddings."""

    @property
    def ensemble(self) -> int:
        """Independent copies of the pair; a score is their mean."""

    @property
    def half(self) -> bool:
        """Whether matrix products are bfloat16."""

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters of both sides."""

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        """Embed rows [..., dim] of states and actions, and of goals, in float32."""

    def side(self, params: Params, side: Side, rows: jax.Array) -> jax.Array:
        """One encoder without the other, of its inputs [n, in]: [members, n, d] in float32."""


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


@dataclass(frozen=True)
class Stack:
    """Groups of MLPs: Dense, GELU, optionally LayerNorm per hidden layer, then a linear layer."""

    groups: tuple[tuple[str, int], ...]
    """Name and number of members of each group; the members of a group read the same input."""
    hidden: tuple[int, ...]
    out: int
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16; parameters are float32 either way."""
    layer_norm: bool = True
    """Whether a LayerNorm follows each activation."""

    @property
    def members(self) -> int:
        return sum(count for _, count in self.groups)

    @property
    def dtype(self) -> jnp.dtype:
        """Type of matrix products and activations."""
        dtype: jnp.dtype = jnp.dtype(jnp.bfloat16 if self.bfloat16 else jnp.float32)
        return dtype

    def init(self, key: jax.Array, inputs: Mapping[str, int]) -> Params:
        """Fresh parameters; ``inputs`` gives the input width of each group.

        Kernels are uniform with variance 2 / (fan in + fan out), as the reference agents have
        them; biases start at 0 and scales at 1.
        """
        draw = jax.nn.initializers.variance_scaling(1.0, "fan_avg", "uniform", batch_axis=(0,))
        n, widths = self.members, (*self.hidden, self.out)
        keys = iter(jax.random.split(key, len(self.groups) + len(self.hidden)))
        params: Params = {
            f"kernel_{name}": draw(next(keys), (count, inputs[name], widths[0]))
            for name, count in self.groups
        }
        for i, width in enumerate(widths):
            if i:
                params[f"kernel_{i}"] = draw(next(keys), (n, widths[i - 1], width))
            params[f"bias_{i}"] = jnp.zeros((n, width))
            if i < len(self.hidden) and self.layer_norm:
                params[f"scale_{i}"] = jnp.ones((n, width))
                params[f"shift_{i}"] = jnp.zeros((n, width))
        return params

    def apply(
        self, params: Params, inputs: Mapping[str, jax.Array], *, features: bool = False
    ) -> dict[str, jax.Array]:
        """Each group's outputs: name to [members, B, out].

        Inputs are [B, in], or [members, B, in] where each member reads its own; B is the same
        for all groups. ``features`` returns the last hidden layer instead. Outputs have the type
        of the matrix products.
        """
        h = self._first(params, inputs)
        for i in range(len(self.hidden)):
            h = self._activated(params, h, i)
            last = i == len(self.hidden) - 1
            if last and features:
                break
            h = _product(h, params[f"kernel_{i + 1}"], self.dtype)
        else:
            h = add_bias(h, params[f"bias_{len(self.hidden)}"])
        return dict(zip((name for name, _ in self.groups), self._split(h), strict=True))

    def _activated(self, params: Params, h: jax.Array, layer: int) -> jax.Array:
        if self.layer_norm:
            parts = ("bias", "scale", "shift")
            return bias_gelu_norm(h, *(params[f"{part}_{layer}"] for part in parts))
        return jax.nn.gelu(add_bias(h, params[f"bias_{layer}"]))

    def _split(self, stacked: jax.Array) -> list[jax.Array]:
        """Each group's part of [members, ...].

        Splitting, unlike slicing, has a single concatenation as its gradient.
        """
        counts = [count for _, count in self.groups]
        parts: list[jax.Array] = jnp.split(stacked, list(accumulate(counts[:-1])))
        return parts

    def apart(self, params: Params) -> dict[str, tuple[Stack, Params]]:
        """Each group as a stack of its own with its parameters, so that it can read other rows."""
        shared = {label: self._split(x) for label, x in params.items() if _is_shared(label)}
        found = {}
        for place, (name, count) in enumerate(self.groups):
            own = {label: parts[place] for label, parts in shared.items()}
            own[f"kernel_{name}"] = params[f"kernel_{name}"]
            found[name] = (replace(self, groups=((name, count),)), own)
        return found

    def _first(self, params: Params, inputs: Mapping[str, jax.Array]) -> jax.Array:
        """The first product of all members at once; narrow inputs are padded with zeros."""
        width = max(x.shape[-1] for x in inputs.values())
        rows, kernels = [], []
        for name, count in self.groups:
            x, kernel = (y.astype(self.dtype) for y in (inputs[name], params[f"kernel_{name}"]))
            missing = width - x.shape[-1]
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
            rows.append(jnp.broadcast_to(x, (count, *x.shape[-2:])))
            kernels.append(jnp.pad(kernel, [(0, 0), (0, missing), (0, 0)]))
        return _product(jnp.concatenate(rows), jnp.concatenate(kernels), self.dtype)


def _is_shared(label: str) -> bool:
    """Whether a parameter is shared by all groups: numbered, unlike the first kernels."""
    return label.rpartition("_")[2].isdigit()


def _product(x: jax.Array, kernel: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """[n, B, in] times [n, in, out]; a single output column is padded to eight.

    The compiler turns a product with one column into sums that take longer than the hidden layers'
    products.
    """
    out = kernel.shape[-1]
    kernel = kernel.astype(dtype)
    if out == 1:
        kernel = jnp.pad(kernel, [(0, 0), (0, 0), (0, 7)])
    y = jnp.einsum("nbi,nij->nbj", x.astype(dtype), kernel, preferred_element_type=dtype)
    return y[..., :out]


def flat_rows(*parts: jax.Array) -> tuple[jax.Array, tuple[int, ...]]:
    """Join rows [..., dim] whose leading axes broadcast into [B, sum of dims]; also their axes."""
    joined = join(*parts)
    return joined.reshape(-1, joined.shape[-1]), joined.shape[:-1]


@dataclass(frozen=True)
class StackedEncoders:
    """phi(s, a) and psi(g) at full size: all copies of both as one stack."""

    hidden: tuple[int, ...] = (512, 512, 512)
    embed_dim: int = 512
    """Dimension d of the embeddings."""
    ensemble: int = 2
    layer_norm: bool = True
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    def __post_init__(self) -> None:
        require_sizes(self.hidden, embed_dim=self.embed_dim, ensemble=self.ensemble)

    @property
    def half(self) -> bool:
        return self.bfloat16

    @property
    def stack(self) -> Stack:
        groups = (("phi", self.ensemble), ("psi", self.ensemble))
        return Stack(groups, self.hidden, self.embed_dim, self.bfloat16, self.layer_norm)

    def beside(self, name: str, members: int) -> Stack:
        """Networks with one output and the encoders' hidden layers."""
        return Stack(((name, members),), self.hidden, 1, self.bfloat16, self.layer_norm)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        return self.stack.init(key, {"phi": state_dim + action_dim, "psi": goal_dim})

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        return self.embed_goals(params, states, actions, goals)[0]

    def embed_goals(
        self, params: Params, states: jax.Array, actions: jax.Array, *goal_sets: jax.Array
    ) -> tuple[Embeddings, ...]:
        """Embed rows of states and actions once, with each of several sets of goals [..., dim].

        phi of the pairs and psi of all sets are computed once each; the results share phi.
        """
        lead = jnp.broadcast_shapes(*(x.shape[:-1] for x in (states, actions, *goal_sets)))
        axes = jnp.zeros((*lead, 0))
        pairs = flat_rows(states, actions, axes)[0]
        goals = [flat_rows(goals, axes)[0] for goals in goal_sets]
        if len(goals) == 1:
            out = self.stack.apply(params, {"phi": pairs, "psi": goals[0]})
            phi, psis = out["phi"], [out["psi"]]
        else:
            # psi reads more rows than phi: a stack of its own takes them without copies of it.
            rows, sides = {"phi": pairs, "psi": jnp.concatenate(goals)}, self.stack.apart(params)
            phi, psi = (net.apply(own, {s: rows[s]})[s] for s, (net, own) in sides.items())
            psis = jnp.split(psi, len(goals), axis=1)

        def shaped(x: jax.Array) -> jax.Array:
            return x.reshape(self.ensemble, *lead, self.embed_dim).astype(jnp.float32)

        shared = shaped(phi)
        return tuple(Embeddings(shared, shaped(psi)) for psi in psis)

    def side(self, params: Params, side: Side, rows: jax.Array) -> jax.Array:
        alone, own = self.stack.apart(params)[side]
        return alone.apply(own, {side: rows})[side].astype(jnp.float32)
