"""Trained walkers, stored as safetensors files and run with NumPy alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import refusing
from toptail.io.files import atomic
from toptail.lab.experts.bodies import body_named

Tensors = dict[str, NDArray[Any]]

_TYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "U32": np.dtype("<u4"),
}


def write_tensors(path: Path, tensors: Tensors, metadata: dict[str, str]) -> None:
    """Write a safetensors file, completely or not at all."""
    names = {kind: name for name, kind in _TYPES.items()}
    header: dict[str, Any] = {"__metadata__": metadata}
    start = 0
    blocks = []
    for name, tensor in tensors.items():
        block = np.ascontiguousarray(tensor).tobytes()
        offsets = [start, start + len(block)]
        header[name] = {
            "dtype": names[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": offsets,
        }
        start = offsets[1]
        blocks.append(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    content = len(text).to_bytes(8, "little") + text + b"".join(blocks)
    atomic(path, lambda target: target.write_bytes(content))


def read_tensors(path: Path) -> tuple[Tensors, dict[str, str]]:
    """Read a safetensors file and its metadata back."""
    with refusing(path, "cannot be read as a stored walker", "train it again"):
        content = path.read_bytes()
        begin = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:begin])
        metadata: dict[str, str] = header.pop("__metadata__", {})
        tensors: Tensors = {}
        for name, entry in header.items():
            start, end = (begin + offset for offset in entry["data_offsets"])
            flat = np.frombuffer(content[start:end], _TYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors, metadata


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
    """One matrix per layer."""
    biases: tuple[NDArray[np.float32], ...]
    """One vector per layer."""
    published: bool = False
    """Whether it was trained by OGBench's recipe: without normalized inputs and LayerNorm."""

    def __call__(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """Return the mode of the action, ``[n, action]``, for observations ``[n, observation]``."""
        x = np.asarray(observations, np.float32)
        if not self.published:
            inputs = body_named(self.body).inputs(x)
            x = np.clip((inputs - self.mean) / self.deviation, -10.0, 10.0)
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
        """Read an actor back."""
        tensors, metadata = read_tensors(path)
        with refusing(path, "holds no walker", "train it again"):
            return cls.of(metadata["body"], tensors, metadata.get("recipe") == "published")

    @classmethod
    def shipped(cls, body: str) -> Walker:
        """The trained walker of a body that comes with the package."""
        return cls.load(shipped_path(body))


def shipped_path(body: str) -> Path:
    """The file of the trained walker that comes with the package."""
    return Path(__file__).parent / "actors" / body_named(body).name / "actor.safetensors"


def _gelu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    root = np.float32(np.sqrt(2 / np.pi))
    value: NDArray[np.float32] = (
        np.float32(0.5) * x * (1 + np.tanh(root * (x + np.float32(0.044715) * x**3)))
    )
    return value
