"""The joint checkpoint of seeds that train together: everything a `TrainState` holds.

``checkpoint-HASH/step-000010000/`` with ``state.safetensors`` and ``checkpoint.json``. A step's
folder appears whole, and the one before it is removed only after that.
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
from toptail.io.files import entries, sha256, staged_folder
from toptail.io.json_files import read_object, write_json
from toptail.lab.training.loop import TrainState
from toptail.lab.training.run_files import digest

Arrays: TypeAlias = dict[str, np.ndarray[Any, Any]]

Attempts: TypeAlias = Mapping[int, int]
"""Which attempt at each seed: 1, and one more for every time that the seed was repeated."""


@dataclass(frozen=True)
class JointCheckpoint:
    """A stored state, one row per seed."""

    folder: Path
    """``.../checkpoint-HASH/step-N``."""

    config_hash: str
    """Hash of the configuration."""

    attempts: Attempts
    """Its seeds, in the order of the rows, and which attempt at each it is."""

    step: int
    """Optimizer steps done."""

    state_sha256: str
    """Hash of the state's file."""

    def holds(self, seed: int, attempt: int) -> bool:
        """Whether this attempt at a seed has a row here."""
        return self.attempts.get(seed) == attempt

    def sound(self) -> bool:
        """Whether the state's file is the one that was written."""
        path = self.folder / "state.safetensors"
        return path.is_file() and sha256(path) == self.state_sha256

    def load(self, like: TrainState, seeds: Sequence[int]) -> TrainState:
        """The rows of some seeds, in a tree like ``like`` (which may hold shapes alone)."""
        rows = [list(self.attempts).index(seed) for seed in seeds]
        what = "does not hold a state of this critic"
        with refusing(self.folder, what, "delete the folder to start its runs again"):
            arrays = load_file(self.folder / "state.safetensors")
            return state_of({name: array[rows] for name, array in arrays.items()}, like)


def save_joint(
    parent: Path, config_hash: str, attempts: Attempts, step: int, arrays: Arrays
) -> None:
    """Store a joint state, then remove the earlier ones of the same seeds."""
    runs = {str(seed): attempt for seed, attempt in attempts.items()}
    group = digest({"config": config_hash, "attempts": runs, "seeds": list(attempts)})
    home = parent / f"checkpoint-{group}"
    target = home / f"step-{step:09d}"
    with staged_folder(target) as stage:
        save_file(arrays, stage / "state.safetensors")
        header = {
            "config_hash": config_hash,
            "attempts": runs,
            "step": step,
            "state_sha256": sha256(stage / "state.safetensors"),
        }
        write_json(stage / "checkpoint.json", header)
        for path in entries(stage):
            reach_the_disk(path)
    for other in entries(home):
        if other != target:
            shutil.rmtree(other)


def find_joint(parent: Path) -> Iterator[JointCheckpoint]:
    """Every checkpoint below a folder whose header can be read, the latest step first."""
    found = []
    for folder in entries(parent, "checkpoint-*/step-*"):
        try:
            header = read_object(folder / "checkpoint.json")
            attempts = {int(seed): int(n) for seed, n in header["attempts"].items()}
            config_hash, digits = str(header["config_hash"]), str(header["state_sha256"])
            found.append(
                JointCheckpoint(folder, config_hash, attempts, int(header["step"]), digits)
            )
        except (InputError, KeyError, TypeError, ValueError, AttributeError):
            continue
    yield from sorted(found, key=lambda each: (-each.step, str(each.folder)))


def arrays_of(state: TrainState, seeds: int) -> Arrays:
    """The first ``seeds`` rows of every array of a state on the host, named by their place."""
    plain = state._replace(key=jax.random.key_data(state.key))
    leaves, _ = tree_flatten_with_path(plain)
    return {_name(path): np.array(np.asarray(leaf)[:seeds]) for path, leaf in leaves}


def state_of(arrays: Arrays, like: TrainState) -> TrainState:
    """Undo `arrays_of`; a name, a type or a shape that does not fit is a ValueError."""
    plain = like._replace(key=jax.eval_shape(jax.random.key_data, like.key))
    leaves, tree = tree_flatten_with_path(plain)
    names = [_name(path) for path, _ in leaves]
    if set(names) != arrays.keys():
        raise ValueError(f"arrays {sorted(set(names) ^ arrays.keys())} are there on one side only")
    for name, (_, leaf) in zip(names, leaves, strict=True):
        found = (arrays[name].dtype, arrays[name].shape[1:])
        if found != (leaf.dtype, leaf.shape[1:]):
            raise ValueError(f"'{name}' is {found}, not {(leaf.dtype, leaf.shape[1:])}")
    state: TrainState = tree_unflatten(tree, [jax.numpy.asarray(arrays[name]) for name in names])
    return state._replace(key=jax.random.wrap_key_data(state.key))


def _name(path: Any) -> str:
    return keystr(path, simple=True, separator="/")


def reach_the_disk(path: Path) -> None:
    """Wait until a file's content would survive a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
