"""Data sets of Minari: a folder of episodes, in one HDF5 file or in Arrow files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.foreign.episodes import Arrays, Imported, as_rows, padded
from toptail.lab.foreign.hdf5 import arrays_of, opened
from toptail.pools.files import check_readable, entries
from toptail.pools.guard import read_object, refusing
from toptail.pools.unpacked import check_arrow

HOME: Final = "MINARI_DATASETS_PATH"
"""Environment variable with the folder of Minari's data sets; by default ``~/.minari/datasets``."""
METADATA_FILE: Final = "metadata.json"
_ADVICE: Final = "expected a data set's folder as Minari leaves it"
_OBSERVATION: Final = "observation"
"""The part that is taken of observations made of several: a goal-conditioned state."""


def find_minari(name: str) -> Path:
    """A data set's ``data`` folder, given by its path or by Minari's id, ``D4RL/door/human-v2``."""
    home = Path(os.environ.get(HOME) or Path.home() / ".minari" / "datasets")
    looked = [Path(name).expanduser(), home / name]
    for folder in (place / below for place in looked for below in ("data", "")):
        if (folder / METADATA_FILE).is_file() and entries(folder, "*"):
            return folder
    raise InputError(
        f"{name} is no data set of Minari's (looked at {looked[0]} and {looked[1]}): give the "
        f"folder with {METADATA_FILE}, or an id and {HOME}."
    )


def read_minari(folder: Path) -> Imported:
    """The episodes of a data set; actions of a box other than ±1 are brought to it."""
    facts = read_object(folder / METADATA_FILE, _ADVICE)
    with refusing(folder, "cannot be read as a data set of Minari", _ADVICE):
        stored = _of_arrow(folder) if facts.get("data_format") == "arrow" else _of_hdf5(folder)
        box = _box(facts.get("action_space"))
        episodes = [_laid(episode, str(folder), box) for episode in stored]
        note = () if box is None else (f"Actions of the box {_told(box)} were brought to ±1.",)
        return Imported(episodes, note)


def _of_hdf5(folder: Path) -> Iterator[Arrays]:
    path = folder / "main_data.hdf5"
    with opened(path) as file:
        numbered = sorted((int(name.removeprefix("episode_")), name) for name in file)
        for _, name in numbered:
            yield arrays_of(file[name])


def _of_arrow(folder: Path) -> Iterator[Arrays]:
    """Episodes of Arrow files; their last row has an observation only."""
    for number in sorted(int(path.name) for path in entries(folder, "*") if path.is_dir()):
        parts = entries(folder / str(number), "*.arrow")
        table = pa.concat_tables([_table(part) for part in parts])
        yield dict(_columns(table))


def _table(path: Path) -> pa.Table:
    check_readable(path)
    check_arrow(path)
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        table = reader.read_all()
        table.validate(full=True)
        return table


def _columns(table: pa.Table) -> Iterator[tuple[str, NDArray[Any]]]:
    """Columns of numbers and of lists of numbers; parts of a column by ``column/part``."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for name in table.column_names:
        column = table[name].combine_chunks()
        kind = column.type
        if pa.types.is_fixed_size_list(kind):
            flat = column.flatten().to_numpy(zero_copy_only=False)
            yield name.replace(".", "/"), flat.reshape(len(column), kind.list_size)
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
            yield name.replace(".", "/"), column.to_numpy(zero_copy_only=False)


def _laid(stored: Arrays, source: str, box: NDArray[Any] | None) -> Arrays:
    """An episode's arrays: as many rows as observations, one more than there are actions."""
    named = {"observations": "observations", "qpos": "infos/qpos", "qvel": "infos/qvel"}
    if "observations" not in stored:
        named["observations"] = f"observations/{_OBSERVATION}"
    if named["observations"] not in stored or "actions" not in stored:
        raise InputError(
            f"{source}: an episode has {', '.join(sorted(stored)) or 'nothing'}; expected actions "
            f"and observations, or the part '{_OBSERVATION}' of these."
        )
    if not {named["qpos"], named["qvel"]} <= set(stored):
        del named["qpos"], named["qvel"]
    result = {part: as_rows(stored[name], name, source) for part, name in named.items()}
    actions = as_rows(stored["actions"], "actions", source).astype(np.float32)
    if actions.size and box is not None:
        actions = np.clip((actions - box[0]) / (box[1] - box[0]) * 2 - 1, -1, 1)
    rows = len(result["observations"])
    if not rows - 1 <= len(actions) <= rows or not len(actions):
        raise InputError(
            f"{source}: an episode has {rows} observations and {len(actions)} actions."
        )
    last = padded(actions[: rows - 1], rows)
    return {name: padded(array, rows) for name, array in result.items()} | {"actions": last}


def _box(space: Any) -> NDArray[np.float32] | None:
    """The lowest and the highest action, where they are others than ±1."""
    if not isinstance(space, str):
        return None
    told = json.loads(space)
    if told.get("type") != "Box":
        raise ValueError(f"its actions are of the type {told.get('type')}, not numbers in a box")
    ends = np.array([told["low"], told["high"]], np.float32).reshape(2, -1)
    if not np.isfinite(ends).all() or (ends[0] >= ends[1]).any():
        raise ValueError("its actions have no bounds")
    return None if np.array_equal(ends, [[-1.0] * ends.shape[1], [1.0] * ends.shape[1]]) else ends


def _told(box: NDArray[np.float32]) -> str:
    return ", ".join(f"{low:g} to {high:g}" for low, high in box.T)
