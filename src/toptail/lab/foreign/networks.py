"""Trained networks of other libraries, run with NumPy alone: layers and quasimetrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Rows: TypeAlias = NDArray[np.float32]
Layer: TypeAlias = Callable[[Rows], Rows]

IQE_GROUP: Final = 8
"""Intervals of each component of OGBench's IQE."""


@dataclass(frozen=True, eq=False)
class Dense:
    """x W + b, of one network or of several at once: ``[..., n, in]`` to ``[..., n, out]``."""

    kernel: Rows
    """``[..., in, out]``."""
    bias: Rows
    """``[..., out]``."""

    def __post_init__(self) -> None:
        kernel, bias = self.kernel.shape, self.bias.shape
        if len(kernel) not in (2, 3) or (*kernel[:-2], kernel[-1]) != bias:
            raise ValueError(f"a layer of shapes {kernel} and {bias}")

    @property
    def inputs(self) -> int:
        return int(self.kernel.shape[-2])

    def __call__(self, x: Rows) -> Rows:
        mapped: Rows = np.matmul(x, self.kernel) + self.bias[..., None, :]
        return mapped


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Each row to mean 0 and variance 1, then scaled and shifted."""

    scale: Rows
    """``[..., width]``."""
    bias: Rows
    """``[..., width]``."""
    epsilon: float
    """Added to the variance."""

    def __call__(self, x: Rows) -> Rows:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(self.epsilon))
        result: Rows = centred / spread * self.scale[..., None, :] + self.bias[..., None, :]
        return result


def gelu(x: Rows) -> Rows:
    """GELU by its usual approximation with a hyperbolic tangent, as Flax has it."""
    inner = np.float32(np.sqrt(2.0 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    activated: Rows = np.float32(0.5) * x * (1 + np.tanh(inner))
    return activated


def relu(x: Rows) -> Rows:
    return np.maximum(x, 0)


def chain(layers: Sequence[Layer]) -> Layer:
    def apply(x: Rows) -> Rows:
        for layer in layers:
            x = layer(x)
        return x

    return apply


@dataclass(frozen=True, eq=False)
class FlaxMLP:
    """A perceptron of Flax: Dense, GELU and, if it has them, LayerNorm, then a last Dense."""

    layers: tuple[Layer, ...]
    inputs: int
    outputs: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> FlaxMLP:
        """Find the layers by their names: ``Dense_0``, ``LayerNorm_0``, ``Dense_1``, ..."""
        count = sum(name.startswith("Dense_") for name in params)
        dense = [
            Dense(floats(part["kernel"]), floats(part["bias"]))
            for part in (params[f"Dense_{i}"] for i in range(count))
        ]
        layers: list[Layer] = []
        for i, layer in enumerate(dense[:-1]):
            layers += [layer, gelu]
            if (norm := params.get(f"LayerNorm_{i}")) is not None:
                layers.append(LayerNorm(floats(norm["scale"]), floats(norm["bias"]), 1e-6))
        return cls((*layers, dense[-1]), dense[0].inputs, int(dense[-1].kernel.shape[-1]))

    def __call__(self, x: Rows) -> Rows:
        """``[n, in]`` to ``[n, out]``, or ``[members, n, out]`` of an ensemble."""
        return chain(self.layers)(x)


def floats(array: Any) -> Rows:
    """An array of a checkpoint as float32; anything else is an error."""
    if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
        raise ValueError("a parameter that is no array of floating-point numbers")
    return array.astype(np.float32, copy=False)


def mrn(x: Rows, y: Rows) -> Rows:
    """Metric residual network: distances ``[n]`` from x to y ``[n, d]``."""
    half = x.shape[-1] // 2
    symmetric = np.square(x[:, :half] - y[:, :half]).sum(axis=-1)
    quasi = np.maximum((x[:, half:] - y[:, half:]).max(axis=-1), 0)
    distance: Rows = np.sqrt(np.maximum(symmetric, np.float32(1e-12))) + quasi
    return distance


def iqe(x: Rows, y: Rows, alpha: float) -> Rows:
    """Interval quasimetric embedding: distances ``[n]`` from x to y ``[n, d]``.

    A component is the length of the union of the intervals [x_i, y_i] of its group; the distance
    mixes the components' mean (``alpha``) with their maximum.
    """
    low = x.reshape(len(x), -1, IQE_GROUP)
    high = np.maximum(y.reshape(low.shape), low)  # an interval that runs backwards is empty
    order = low.argsort(axis=-1)
    low, high = (np.take_along_axis(ends, order, axis=-1) for ends in (low, high))
    reached = np.maximum.accumulate(high, axis=-1)[..., :-1]
    begin = low.copy()
    begin[..., 1:] = np.maximum(low[..., 1:], reached)
    lengths = np.maximum(high - begin, 0).sum(axis=-1)
    weight = np.float32(alpha)
    mixed: Rows = weight * lengths.mean(axis=-1) + (1 - weight) * lengths.max(axis=-1)
    return mixed


Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better."""


Embed: TypeAlias = Callable[[Rows, Rows, Rows], tuple[Rows, Rows]]
"""(states [n, s], actions [n, a], goals [n, g]) -> phi(s, a) [n, d] and psi(g) [n, e]."""


@dataclass(frozen=True, eq=False)
class ForeignCritic:
    """A critic that another library trained."""

    score: Score
    """Its scores, one a row."""
    agent: str
    """Its agent: ``crl``, ``gciql``, ``cql``, ..."""
    seed: int | None = None
    """Its training seed, where the files have it."""
    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""
    embed: Embed | None = None
    """Its embeddings, all copies side by side; None where its score is not made of two."""
