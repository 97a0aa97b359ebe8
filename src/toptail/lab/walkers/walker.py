"""Trained walkers: networks that move a body, stored as safetensors files and run with NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, refusing
from toptail.io.files import atomic
from toptail.lab.tasks.simulator import load_module

Tensors = dict[str, NDArray[Any]]


def write_tensors(path: Path, tensors: Tensors, metadata: dict[str, str]) -> None:
    """Write a safetensors file, completely or not at all."""
    from safetensors.numpy import save_file

    contiguous = {name: np.asarray(tensor, order="C") for name, tensor in tensors.items()}
    atomic(path, lambda target: save_file(contiguous, target, metadata))


def read_tensors(path: Path) -> tuple[Tensors, dict[str, str]]:
    """Read a safetensors file and its metadata."""
    safe_open = load_module("safetensors").safe_open
    what = "cannot be read as a stored walker"
    with refusing(path, what, "train it again"), safe_open(path, "numpy") as file:
        return {name: file.get_tensor(name) for name in file.offset_keys()}, file.metadata() or {}


# The inputs of the networks, made of observations ``[n, observation]`` of OGBench's online
# environments, with NumPy or JAX. An observation ends with a command of two numbers: the direction
# to walk in, or the vector from the ball to the goal. The world is rotated about the vertical so
# that the command points along +x: physics is the same, and there is less to learn.


def turn(vectors: Any, commands: Any, xp: Any) -> Any:
    """Turn the first two of the columns ``[n, 2 or 3]`` so that commands point along +x."""
    length = xp.sqrt((commands**2).sum(axis=1) + 1e-12)
    cosine, sine = commands[:, 0] / length, commands[:, 1] / length
    x, y = vectors[:, 0], vectors[:, 1]
    turned = xp.stack([cosine * x + sine * y, cosine * y - sine * x], axis=1)
    return xp.concatenate([turned, vectors[:, 2:]], axis=1)


def axes(quaternions: Any, xp: Any) -> list[Any]:
    """The body's three axes in the world, each ``[n, 3]``; the length does not matter."""
    w, x, y, z = (quaternions / xp.sqrt((quaternions**2).sum(axis=1, keepdims=True))).T
    return [
        xp.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1),
        xp.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=1),
        xp.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1),
    ]


def ant_inputs(observations: Any, xp: Any = np) -> Any:
    """Height, torso axes, joints, velocity, turning and joint speeds (32 numbers).

    Axes replace the quaternion, whose two signs mean the same pose.
    """
    commands = observations[:, -2:]
    return xp.concatenate(
        [
            observations[:, :1],
            *(turn(axis, commands, xp) for axis in axes(observations[:, 1:5], xp)),
            observations[:, 5:13],
            turn(observations[:, 13:16], commands, xp),
            observations[:, 16:27],
        ],
        axis=1,
    )


def antball_inputs(observations: Any, xp: Any = np) -> Any:
    """The ant's inputs, then the ball's height, velocity, spin and place, and the goal's distance.

    A ball looks the same from all sides: its orientation only serves to turn the spin into the
    world (42 numbers in all).
    """
    commands = observations[:, -2:]
    ant = xp.concatenate([observations[:, :13], observations[:, 18:32], commands], axis=1)
    spin = observations[:, 35:38]
    in_world = sum(
        axis * spin[:, i : i + 1] for i, axis in enumerate(axes(observations[:, 14:18], xp))
    )
    return xp.concatenate(
        [
            ant_inputs(ant, xp),
            observations[:, 13:14],
            turn(observations[:, 32:35], commands, xp),
            turn(in_world, commands, xp),
            turn(observations[:, 38:40], commands, xp),
            xp.sqrt((commands**2).sum(axis=1, keepdims=True)),
        ],
        axis=1,
    )


def humanoid_inputs(observations: Any, xp: Any = np) -> Any:
    """All but the direction, with both velocities in the world turned by it (67 numbers)."""
    commands = observations[:, -2:]
    return xp.concatenate(
        [
            observations[:, :37],
            turn(observations[:, 37:40], commands, xp),
            turn(observations[:, 40:43], commands, xp),
            observations[:, 43:67],
        ],
        axis=1,
    )


INPUTS = {"ant": ant_inputs, "antball": antball_inputs, "humanoid": humanoid_inputs}
"""The inputs of each body's networks."""


@dataclass(frozen=True, eq=False)
class Walker:
    """A trained walker: observations of its online environment to the mode of its action."""

    body: str
    """Name of the body it moves."""
    mean: NDArray[np.float32]
    """Mean of the networks' inputs, ``[inputs]``."""
    deviation: NDArray[np.float32]
    """Standard deviation of the networks' inputs, ``[inputs]``."""
    kernels: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    published: bool = False
    """Whether it was trained by OGBench's recipe: without normalized inputs and LayerNorm."""

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """The mode of the action, ``[n, action]``, for observations ``[n, observation]``."""
        x = np.asarray(observations, np.float32)
        if not self.published:
            x = np.clip((INPUTS[self.body](x) - self.mean) / self.deviation, -10.0, 10.0)
        for kernel, bias in zip(self.kernels[:-1], self.biases[:-1], strict=True):
            x = x @ kernel + bias
            if not self.published:
                x = x - x.mean(axis=1, keepdims=True)
                x = x / np.sqrt((x**2).mean(axis=1, keepdims=True) + np.float32(1e-6))
            x = _gelu(x)
        mean = np.split(x @ self.kernels[-1] + self.biases[-1], 2, axis=1)[0]
        action: NDArray[np.float32] = np.tanh(mean)
        return action

    def tensors(self) -> Tensors:
        """The stored arrays by name."""
        tensors: Tensors = {"mean": self.mean, "deviation": self.deviation}
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            tensors |= {f"{i}/kernel": kernel, f"{i}/bias": bias}
        return tensors

    @classmethod
    def of(cls, body: str, tensors: Tensors, published: bool = False) -> Walker:
        """The walker with the arrays that `tensors` gave."""
        layers = range(sum(name.endswith("/kernel") for name in tensors))
        kernels = tuple(tensors[f"{i}/kernel"] for i in layers)
        biases = tuple(tensors[f"{i}/bias"] for i in layers)
        return cls(body, tensors["mean"], tensors["deviation"], kernels, biases, published)

    def save(self, path: Path) -> None:
        """Write the actor as a safetensors file."""
        recipe = {"recipe": "published"} if self.published else {}
        write_tensors(path, self.tensors(), {"body": self.body, **recipe})

    @classmethod
    def load(cls, path: Path) -> Walker:
        tensors, metadata = read_tensors(path)
        with refusing(path, "holds no walker", "train it again"):
            return cls.of(metadata["body"], tensors, metadata.get("recipe") == "published")

    @classmethod
    def shipped(cls, body: str) -> Walker:
        """The trained walker of a body that comes with the package."""
        return cls.load(shipped_path(body))


def shipped_path(body: str) -> Path:
    """The file of the trained walker that comes with the package."""
    if body not in INPUTS:
        raise InputError(f"There is no body '{body}': expected one of {', '.join(INPUTS)}.")
    return Path(__file__).parent / "actors" / body / "actor.safetensors"


def _gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    root = np.float32(np.sqrt(2 / np.pi))
    value: NDArray[np.float32] = (
        np.float32(0.5) * x * (1 + np.tanh(root * (x + np.float32(0.044715) * x**3)))
    )
    return value
