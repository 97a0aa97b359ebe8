"""Networks of one shape that run as one: a few MLPs whose inputs differ and whose rest does not.

A full-size critic is several equal networks: two copies each of phi and psi, or two Q networks
and a V network. They differ only in what they read. Stored as one stack they are one batched
matrix product per layer instead of four, which is what a GPU is good at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from toptail.critics.base import Params
from toptail.critics.fused import add_bias, bias_gelu_norm
from toptail.critics.networks import Embeddings, Encoders
from toptail.errors import InputError


@dataclass(frozen=True)
class Stack:
    """Groups of MLPs: Dense, GELU and LayerNorm per hidden layer, then a linear layer."""

    groups: tuple[tuple[str, int], ...]
    """Name and number of members of each group; the members of a group read the same input."""

    hidden: tuple[int, ...]
    """Width of each hidden layer."""

    out: int
    """Width of the output."""

    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16; parameters are float32 either way."""

    @property
    def members(self) -> int:
        """Networks in the stack."""
        return sum(count for _, count in self.groups)

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
            if i < len(self.hidden):
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
        dtype = jnp.bfloat16 if self.bfloat16 else jnp.float32
        h = self._first(params, inputs, dtype)
        for i in range(len(self.hidden)):
            h = bias_gelu_norm(h, *(params[f"{part}_{i}"] for part in ("bias", "scale", "shift")))
            last = i == len(self.hidden) - 1
            if last and features:
                break
            h = _product(h, params[f"kernel_{i + 1}"], dtype)
        else:
            h = add_bias(h, params[f"bias_{len(self.hidden)}"])
        result, start = {}, 0
        for name, count in self.groups:
            result[name] = h[start : start + count]
            start += count
        return result

    def _first(
        self, params: Params, inputs: Mapping[str, jax.Array], dtype: jnp.dtype
    ) -> jax.Array:
        """The first product of all members at once: narrow inputs are filled up with zeros."""
        width = max(x.shape[-1] for x in inputs.values())
        rows, kernels = [], []
        for name, count in self.groups:
            x, kernel = inputs[name].astype(dtype), params[f"kernel_{name}"].astype(dtype)
            missing = width - x.shape[-1]
            x = jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)])
            rows.append(jnp.broadcast_to(x, (count, *x.shape[-2:])))
            kernels.append(jnp.pad(kernel, [(0, 0), (0, missing), (0, 0)]))
        return _product(jnp.concatenate(rows), jnp.concatenate(kernels), dtype)


def _product(x: jax.Array, kernel: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """[n, B, in] times [n, in, out]; a single output column is computed as one of eight.

    The compiler turns a product with one column into sums over rows and columns that take longer
    than the hidden layers' products.
    """
    out = kernel.shape[-1]
    kernel = kernel.astype(dtype)
    if out == 1:
        kernel = jnp.pad(kernel, [(0, 0), (0, 0), (0, 7)])
    y = jnp.einsum("nbi,nij->nbj", x.astype(dtype), kernel, preferred_element_type=dtype)
    return y[..., :out]


def flat_rows(*parts: jax.Array) -> tuple[jax.Array, tuple[int, ...]]:
    """Join rows [..., dim] whose leading axes broadcast into [B, sum of dims]; give the axes."""
    lead = jnp.broadcast_shapes(*(part.shape[:-1] for part in parts))
    rows = [jnp.broadcast_to(part, (*lead, part.shape[-1])) for part in parts]
    joined = jnp.concatenate(rows, axis=-1)
    return joined.reshape(-1, joined.shape[-1]), lead


@dataclass(frozen=True)
class StackedEncoders(Encoders):
    """phi(s, a) and psi(g) at full size: all copies of both as one stack."""

    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""

    embed_dim: int = 512
    """Dimension d of the embeddings."""

    ensemble: int = 2
    """Independent copies of the pair."""

    layer_norm: bool = True
    """A LayerNorm follows each activation; the stack has no other form."""

    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    def __post_init__(self) -> None:
        if not self.layer_norm:
            raise InputError("Full-size encoders have a LayerNorm after each hidden layer.")

    @property
    def half(self) -> bool:
        """Whether matrix products are bfloat16."""
        return self.bfloat16

    @property
    def stack(self) -> Stack:
        """The networks."""
        groups = (("phi", self.ensemble), ("psi", self.ensemble))
        return Stack(groups, self.hidden, self.embed_dim, self.bfloat16)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """Fresh parameters of both sides."""
        return self.stack.init(key, {"phi": state_dim + action_dim, "psi": goal_dim})

    def embed(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> Embeddings:
        """Embed rows [..., dim] of states and actions, and of goals, in float32."""
        lead = jnp.broadcast_shapes(states.shape[:-1], actions.shape[:-1], goals.shape[:-1])
        pairs, _ = flat_rows(states, actions, jnp.zeros((*lead, 0)))
        aims, _ = flat_rows(goals, jnp.zeros((*lead, 0)))
        out = self.stack.apply(params, {"phi": pairs, "psi": aims})

        def shaped(x: jax.Array) -> jax.Array:
            return x.reshape(self.ensemble, *lead, self.embed_dim).astype(jnp.float32)

        return Embeddings(shaped(out["phi"]), shaped(out["psi"]))
