"""Parameters as safetensors files: nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from toptail.errors import InputError
from toptail.lab.critics.learner import Params
from toptail.pools.files import atomic

SEPARATOR = "/"


def flatten(params: Params, prefix: str = "") -> dict[str, np.ndarray[Any, Any]]:
    """Name every leaf of a parameter tree by its path, e.g. ``phi/Dense_0/kernel``."""
    flat: dict[str, np.ndarray[Any, Any]] = {}
    for name, value in params.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            flat |= flatten(value, path + SEPARATOR)
        else:
            flat[path] = np.ascontiguousarray(value)
    return flat


def unflatten(flat: dict[str, np.ndarray[Any, Any]]) -> Params:
    """Undo `flatten`."""
    params: Params = {}
    for path, value in flat.items():
        *parents, leaf = path.split(SEPARATOR)
        node = params
        for parent in parents:
            node = node.setdefault(parent, {})
        node[leaf] = value
    return params


def save_params(path: Path, params: Params) -> None:
    """Write a parameter tree; the file is there completely or not at all."""
    atomic(path, lambda target: save_file(flatten(params), target))


def load_params(path: Path) -> Params:
    """Read a parameter tree back, bit for bit."""
    try:
        return unflatten(load_file(path))
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{path} cannot be read as a safetensors checkpoint ({error}); train the critic again."
        ) from error
