"""Data sets in D4RL's layout: flat arrays with the ends of episodes, in one HDF5 or npz file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from toptail.errors import InputError
from toptail.lab.foreign.episodes import Arrays, Imported, as_rows, split_rows
from toptail.lab.foreign.hdf5 import arrays_of, opened
from toptail.pools.files import read_arrays

_STATE: Final = {"qpos": "infos/qpos", "qvel": "infos/qvel"}
_ENDS: Final = ("terminals", "timeouts")


def read_d4rl(path: Path) -> Imported:
    """The episodes of an HDF5 file; an episode ends where ``terminals`` or ``timeouts`` say so."""
    with opened(path) as file:
        return _cut(arrays_of(file), path)


def read_npz(path: Path) -> Imported:
    """The episodes of an npz file in OGBench's layout, whatever the types of its numbers."""
    return _cut({name: np.asarray(array) for name, array in read_arrays(path).items()}, path)


def _cut(found: Arrays, path: Path) -> Imported:
    for name in ("observations", "actions"):
        if name not in found:
            raise InputError(
                f"{path} has no array '{name}' (it has {', '.join(sorted(found)) or 'none'}): "
                "expected D4RL's or OGBench's layout, with the ends of episodes in 'terminals' or "
                "'timeouts'."
            )
    ends = [found[name].reshape(-1).astype(np.bool_) for name in _ENDS if name in found]
    if not ends:
        raise InputError(f"{path} has neither 'terminals' nor 'timeouts': where do episodes end?")
    named = {"observations": "observations", "actions": "actions", "button_states": "button_states"}
    for part, inside in _STATE.items():
        named[part] = part if part in found else inside
    if not {named["qpos"], named["qvel"]} <= set(found):
        del named["qpos"], named["qvel"]
    kept = {p: as_rows(found[n], n, str(path)) for p, n in named.items() if n in found}
    rows = {len(array) for array in (*kept.values(), *ends)}
    if len(rows) > 1:
        raise InputError(f"{path}: its arrays are not of one length: {sorted(rows)}.")
    return Imported(split_rows(kept, np.logical_or.reduce(ends)))
