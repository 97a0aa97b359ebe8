"""Parameters as safetensors files: nothing is unpickled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flax.traverse_util import flatten_dict, unflatten_dict
from safetensors.numpy import load_file, save_file

from toptail.errors import refusing
from toptail.io.files import atomic
from toptail.lab.critics.learner import Params


def save_params(path: Path, params: Params) -> None:
    """Write a parameter tree, each leaf under its path, e.g. ``phi/Dense_0/kernel``.

    The file is there completely or not at all.
    """
    flat = flatten_dict(params, sep="/")  # type: ignore[no-untyped-call]
    arrays = {name: np.ascontiguousarray(leaf) for name, leaf in flat.items()}
    atomic(path, lambda target: save_file(arrays, target))


def load_params(path: Path) -> Params:
    """Read a parameter tree back, bit for bit."""
    with refusing(path, "cannot be read as a safetensors checkpoint", "train the critic again"):
        params: Params = unflatten_dict(load_file(path), sep="/")  # type: ignore[no-untyped-call]
        return params
