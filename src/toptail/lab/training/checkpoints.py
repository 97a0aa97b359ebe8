"""Stored states: parameters of one run, and checkpoints of a batch of runs.

A checkpoint holds everything that a `TrainState` holds, one row per run of the batch:
``checkpoint-HASH/step-000010000/`` with ``state.safetensors`` and ``checkpoint.json``. The folder
of a step appears whole, and the one before it is removed only after that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_unflatten
from safetensors.numpy import load_file, save_file

from toptail.errors import InputError, refusing
from toptail.io.files import atomic, entries, sha256, staged_folder
from toptail.io.json_files import read_object, write_json
from toptail.lab.critics.base import Params
from toptail.lab.training.loop import TrainState
from toptail.lab.training.runs import digest, read_tensors

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

Attempts: TypeAlias = Mapping[int, int]
"""Seed to the number of the attempt: 1, and one more for every time that it was repeated."""

STATE = "state.safetensors"
"""File of a state: parameters, Adam's moments, key and step."""


def save_params(path: Path, params: Params) -> None:
    """Write a parameter tree, each leaf under its path, e.g. ``phi/Dense_0/kernel``."""
    leaves, _ = tree_flatten_with_path(params)
    arrays = {_name(at): np.ascontiguousarray(leaf) for at, leaf in leaves}
    atomic(path, lambda target: save_file(arrays, target))


def load_params(path: Path) -> Params:
    """Read a parameter tree back, bit for bit."""
    params: Params = {}
    for name, array in read_tensors(path).items():
        *parents, last = name.split("/")
        place = params
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = array
    return params


@dataclass(frozen=True)
class BatchCheckpoint:
    """A stored state of a batch of runs, one row per seed."""

    folder: Path
    """``.../checkpoint-HASH/step-N``."""
    config_hash: str
    attempts: Attempts
    """The seeds in the order of the rows, and the attempt at each."""
    step: int
    state_sha256: str

    def is_sound(self) -> bool:
        """Whether the state's file is the one that was written."""
        path = self.folder / STATE
        return path.is_file() and sha256(path) == self.state_sha256

    def load(self, like: TrainState, seeds: Sequence[int]) -> TrainState:
        """The rows of some seeds, in a tree like ``like`` (which may hold shapes alone)."""
        rows = [list(self.attempts).index(seed) for seed in seeds]
        what = "does not hold a state of this critic"
        with refusing(self.folder, what, "delete the folder to start its runs again"):
            arrays = load_file(self.folder / STATE)
            return state_of({name: array[rows] for name, array in arrays.items()}, like)


def save_checkpoint(
    parent: Path, config_hash: str, attempts: Attempts, step: int, arrays: Arrays
) -> None:
    """Store the state of a batch of runs, then remove its earlier checkpoints."""
    runs = {str(seed): attempt for seed, attempt in attempts.items()}
    batch = digest({"config": config_hash, "attempts": runs, "seeds": list(attempts)})
    home = parent / f"checkpoint-{batch}"
    target = home / f"step-{step:09d}"
    with staged_folder(target) as stage:
        save_file(arrays, stage / STATE)
        header = {
            "config_hash": config_hash,
            "attempts": runs,
            "step": step,
            "state_sha256": sha256(stage / STATE),
        }
        write_json(stage / "checkpoint.json", header)
        for path in entries(stage):
            flush_to_disk(path)
    for other in entries(home):
        if other != target:
            shutil.rmtree(other)


def find_checkpoints(parent: Path) -> Iterator[BatchCheckpoint]:
    """Every checkpoint below a folder whose header can be read, the latest step first."""
    found = []
    for folder in entries(parent, "checkpoint-*/step-*"):
        try:
            header = read_object(folder / "checkpoint.json")
            attempts = {int(seed): int(n) for seed, n in header["attempts"].items()}
            hashes = str(header["config_hash"]), str(header["state_sha256"])
            step = int(header["step"])
            found.append(BatchCheckpoint(folder, hashes[0], attempts, step, hashes[1]))
        except (InputError, KeyError, TypeError, ValueError, AttributeError):
            continue
    yield from sorted(found, key=lambda checkpoint: (-checkpoint.step, str(checkpoint.folder)))


def arrays_of(state: TrainState, seeds: int) -> Arrays:
    """The first ``seeds`` rows of every array of a state on the host, named by their place."""
    plain = state._replace(key=jax.random.key_data(state.key))
    leaves, _ = tree_flatten_with_path(plain)
    return {_name(path): np.array(np.asarray(leaf)[:seeds]) for path, leaf in leaves}


def state_of(arrays: Arrays, like: TrainState) -> TrainState:
    """Undo `arrays_of`; a name, type or shape that differs from ``like`` is a ValueError."""
    plain = like._replace(key=jax.eval_shape(jax.random.key_data, like.key))
    leaves, tree = tree_flatten_with_path(plain)
    names = [_name(path) for path, _ in leaves]
    if set(names) != arrays.keys():
        raise ValueError(f"arrays {sorted(set(names) ^ arrays.keys())} are there on one side only")
    for name, (_, leaf) in zip(names, leaves, strict=True):
        kind = (arrays[name].dtype, arrays[name].shape[1:])
        if kind != (leaf.dtype, leaf.shape[1:]):
            raise ValueError(f"'{name}' is {kind}, not {(leaf.dtype, leaf.shape[1:])}")
    state: TrainState = tree_unflatten(tree, [jax.numpy.asarray(arrays[name]) for name in names])
    return state._replace(key=jax.random.wrap_key_data(state.key))


def _name(path: Any) -> str:
    return keystr(path, simple=True, separator="/")


def save_last_state(folder: Path, arrays: Arrays, row: int) -> str:
    """Store one row of a batch's state in its run's folder; returns the file's hash."""
    own = {name: np.ascontiguousarray(array[row : row + 1]) for name, array in arrays.items()}
    atomic(folder / STATE, lambda target: save_file(own, target))
    return sha256(folder / STATE)


def flush_to_disk(path: Path) -> None:
    """Wait until a file's content would survive a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
