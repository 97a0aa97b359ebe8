"""Data sets of other libraries as files of this one: Minari, D4RL, and OGBench's layout.

HDF5 files are read by h5py, which is optional: arrays that lie in the file itself, and no others.
"""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from toptail.errors import InputError, check_share, how_to_install, option, refusing
from toptail.io.arrays import read_arrays
from toptail.io.files import check_readable, entries
from toptail.io.json_files import read_object, write_json
from toptail.lab.foreign.pickled import require_plausible
from toptail.lab.tasks.files import load_file, read_record, record_path, save_file, split_path
from toptail.lab.tasks.trajectories import Trajectories

Arrays = dict[str, NDArray[Any]]

_MOST_NAMES: Final = 1_000_000
"""Names in an HDF5 file: groups inside groups can have very many in a small file."""
_MOST_LEVELS: Final = 100
"""Groups inside groups: a group may hold itself."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file without links to other places, whose arrays have plausible sizes."""
    check_readable(path)
    try:
        h5py = importlib.import_module("h5py")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: reading HDF5 needs h5py, which is not installed: {how_to_install('hdf5')}."
        ) from None
    with refusing(path, "is not a readable HDF5 file"), h5py.File(path, "r") as file:
        size, packed = 0, path.stat().st_size
        for number, (_, member) in enumerate(_members(file, "")):
            size += 0 if member is None else math.prod(member.shape) * member.dtype.itemsize
            require_plausible(size, packed)
            if number > _MOST_NAMES:
                raise ValueError(f"it has more than {_MOST_NAMES:,} names")
        yield file


def arrays_of(group: Any) -> Arrays:
    """Every array of a group and of the groups inside it, by its name: ``infos/qpos``."""
    return {name: np.asarray(data[()]) for name, data in _members(group, "") if data is not None}


def _members(group: Any, above: str) -> Iterator[tuple[str, Any]]:
    """Every name below a group, with its array; None for groups, texts and objects."""
    if above.count("/") > _MOST_LEVELS:
        raise ValueError("its groups are nested too deeply")
    for name in group:
        link = group.get(name, getlink=True)
        if type(link).__name__ != "HardLink":
            raise ValueError(f"'{above}{name}' is a link to somewhere else")
        member = group[name]
        if not hasattr(member, "shape"):
            yield f"{above}{name}", None
            yield from _members(member, f"{above}{name}/")
        elif member.is_virtual or member.external:
            raise ValueError(f"'{above}{name}' lies outside the file")
        else:
            is_array = member.shape is not None and member.dtype.kind in "fiub"
            yield f"{above}{name}", member if is_array else None


_KINDS: Final = {"button_states": np.int64}


@dataclass(frozen=True)
class Imported:
    """Episodes of another library."""

    episodes: Sequence[Arrays]
    """The arrays of each except ``terminals``, one row per time step."""
    notes: tuple[str, ...] = ()
    """Changes to them, in sentences."""

    def checked(self, source: str) -> Imported:
        """The same without episodes of a single row; arrays must have one width in all episodes."""
        for name in self.episodes[0] if self.episodes else ():
            widths = sorted({e[name].shape[1] for e in self.episodes if name in e})
            if len(widths) > 1:
                text = ", ".join(map(str, widths))
                raise InputError(f"{source}: '{name}' is of different width in episodes ({text}).")
        long = [episode for episode in self.episodes if len(episode["observations"]) > 1]
        short = len(self.episodes) - len(long)
        if not long:
            raise InputError(f"{source} has no episode of two rows or more.")
        note = (f"{short} episodes of a single row were left out.",) if short else ()
        return Imported(long, (*self.notes, *note))


def trajectories(episodes: Sequence[Arrays], source: str) -> Trajectories:
    """Episodes one after another, in the types of numbers that data set files have."""
    typed = [
        {name: np.asarray(array, _KINDS.get(name, np.float32)) for name, array in episode.items()}
        for episode in episodes
    ]
    return Trajectories.of_episodes(typed, source)


def split_rows(arrays: Arrays, ends: NDArray[np.bool_]) -> list[Arrays]:
    """Flat arrays cut into episodes after each end, and after the last row."""
    cuts = np.flatnonzero(ends[:-1]) + 1
    pieces = {name: np.split(array, cuts) for name, array in arrays.items()}
    return [{name: pieces[name][i] for name in pieces} for i in range(len(cuts) + 1)]


def as_rows(array: NDArray[Any], name: str, source: str) -> NDArray[Any]:
    """An array of numbers a row; images and the like are refused."""
    rows = array[:, None] if array.ndim == 1 else array
    if rows.ndim != 2:
        raise InputError(
            f"{source}: '{name}' has shape {array.shape[1:]} a row; only vectors are imported."
        )
    return rows


def _simulator_columns(found: Arrays) -> dict[str, str]:
    """The arrays with the simulator's positions and velocities; empty unless both are there."""
    named = {part: part if part in found else f"infos/{part}" for part in ("qpos", "qvel")}
    return named if found.keys() >= set(named.values()) else {}


def padded(array: NDArray[Any], rows: int) -> NDArray[Any]:
    """An array with its last row repeated up to a number of rows."""
    return np.concatenate([array, np.repeat(array[-1:], rows - len(array), axis=0)])


_ENDS: Final = ("terminals", "timeouts")


def read_d4rl(path: Path) -> Imported:
    """The episodes of an HDF5 file; an episode ends at its ``terminals`` or ``timeouts``."""
    with opened(path) as file:
        return _cut_at_ends(arrays_of(file), path)


def read_npz(path: Path) -> Imported:
    """The episodes of an npz file in OGBench's layout, whatever the types of its numbers."""
    return _cut_at_ends(
        {name: np.asarray(array) for name, array in read_arrays(path).items()}, path
    )


def _cut_at_ends(found: Arrays, path: Path) -> Imported:
    """The episodes of flat arrays."""
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
    own = {n: n for n in ("observations", "actions", "button_states") if n in found}
    named = own | _simulator_columns(found)
    parts = {part: as_rows(found[name], name, str(path)) for part, name in named.items()}
    rows = {len(array) for array in (*parts.values(), *ends)}
    if len(rows) > 1:
        raise InputError(f"{path}: its arrays are not of one length: {sorted(rows)}.")
    return Imported(split_rows(parts, np.logical_or.reduce(ends)))


HOME: Final = "MINARI_DATASETS_PATH"
"""Environment variable with the folder of Minari's data sets; by default ``~/.minari/datasets``."""
METADATA_FILE: Final = "metadata.json"
_ADVICE: Final = "expected a data set's folder as Minari leaves it"
_OBSERVATION: Final = "observation"
"""The part of dictionary observations that is imported."""


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
        episodes = [_rows_of_episode(episode, str(folder), box) for episode in stored]
        note = () if box is None else (f"Actions of the box {_box_text(box)} were brought to ±1.",)
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


def _rows_of_episode(stored: Arrays, source: str, box: NDArray[Any] | None) -> Arrays:
    """An episode's arrays: as many rows as observations, one more than there are actions."""
    seen = "observations" if "observations" in stored else f"observations/{_OBSERVATION}"
    if seen not in stored or "actions" not in stored:
        raise InputError(
            f"{source}: an episode has {', '.join(sorted(stored)) or 'nothing'}; expected actions "
            f"and observations, or the part '{_OBSERVATION}' of these."
        )
    named = {"observations": seen, **_simulator_columns(stored)}
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
    """The lowest and the highest action; None if these are ±1."""
    if not isinstance(space, str):
        return None
    about = json.loads(space)
    if about.get("type") != "Box":
        raise ValueError(f"its actions are of the type {about.get('type')}, not numbers in a box")
    ends = np.array([about["low"], about["high"]], np.float32).reshape(2, -1)
    if not np.isfinite(ends).all() or (ends[0] >= ends[1]).any():
        raise ValueError("its actions have no bounds")
    return None if np.array_equal(ends, [[-1.0] * ends.shape[1], [1.0] * ends.shape[1]]) else ends


def _box_text(box: NDArray[np.float32]) -> str:
    return ", ".join(f"{low:g} to {high:g}" for low, high in box.T)


KINDS: Final[Mapping[str, Callable[[str], Imported]]] = {
    "minari": lambda name: read_minari(find_minari(name)),
    "d4rl": lambda name: read_d4rl(Path(name).expanduser()),
    "ogbench": lambda name: read_npz(Path(name).expanduser()),
}
"""The kind before the colon -> the reader of the text behind it."""


@dataclass(frozen=True)
class ImportResult:
    """The files that an import wrote."""

    paths: tuple[Path, Path]
    episodes: tuple[int, int]
    """Episodes of each."""
    notes: tuple[str, ...]
    """Changes to the data, in sentences."""


def import_data(source: str, out: Path, val_share: float = 0.1) -> ImportResult:
    """Write a foreign data set as ``out`` and, the last of its episodes, as its validation file.

    ``source`` is ``minari:ID``, ``minari:FOLDER``, ``d4rl:FILE.hdf5`` or ``ogbench:FILE.npz``.
    """
    check_share("val_share", val_share)
    if out.suffix != ".npz" or out.stem.endswith("-val"):
        raise InputError(
            f"{option('out', out)}: expected NAME.npz, beside which NAME-val.npz goes."
        )
    kind, colon, name = source.partition(":")
    if not colon or kind not in KINDS:
        known = ", ".join(f"{k}:..." for k in KINDS)
        raise InputError(f"'{source}' does not say what it is: expected one of {known}.")
    found = KINDS[kind](name).checked(source)
    count = len(found.episodes)
    held = max(1, round(val_share * count))
    if held >= count:
        raise InputError(
            f"{source} has {count} episodes, too few to keep {held} of them for validation."
        )
    paths = (out, split_path(out, "val"))
    parts = (found.episodes[: count - held], found.episodes[count - held :])
    splits = [trajectories(episodes, source) for episodes in parts]
    for path, data in zip(paths, splits, strict=True):
        _require_free(path, data)
    for path, data in zip(paths, splits, strict=True):
        _write(path, data, found.notes)
    return ImportResult(paths, (count - held, held), found.notes)


def _origin(source: str) -> str:
    return f"imported from {source}"


def _require_free(path: Path, data: Trajectories) -> None:
    """Refuse to write over a file of another origin and content."""
    if not path.exists() or (read_record(path) or {}).get("source") == _origin(data.source):
        return
    if load_file(path).sha256 != data.sha256:
        raise InputError(
            f"{path} is there already, with other data: give {option('out')} a new name."
        )


def _write(path: Path, data: Trajectories, notes: tuple[str, ...]) -> None:
    record_path(path).unlink(missing_ok=True)  # of an earlier file
    save_file(path, data)
    record: dict[str, Any] = {
        "file": path.name,
        "source": _origin(data.source),
        "bytes": path.stat().st_size,
        "content_sha256": data.sha256,
        "episodes": len(data.ends),
        "imported": list(notes),
    }
    write_json(record_path(path), record)
