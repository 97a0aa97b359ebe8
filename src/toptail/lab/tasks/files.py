"""Files of data sets: finding, loading with checks, and writing them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.json_files import read_object
from toptail.lab.tasks.names import Split, TaskName, parse_name
from toptail.lab.tasks.trajectories import ARRAYS, Trajectories

Arrays = dict[str, NDArray[Any]]

REQUIRED = ("observations", "actions", "terminals")
STATE_TOLERANCE = 1e-3
"""Largest difference of an observation and the simulator state that it repeats."""
_BOUND = 1.0 + 1e-6


def check_arrays(arrays: Arrays, source: str, task: TaskName | None) -> None:
    """Raise :class:`InputError` unless the arrays are a valid data set."""
    for name in REQUIRED:
        if name not in arrays:
            raise InputError(
                f"{source} has no array '{name}' (it has {', '.join(sorted(arrays)) or 'none'}): "
                "expected OGBench's layout with observations, actions and terminals."
            )
    _check_types(arrays, source)
    _check_rows(arrays, source)
    _check_dimensions(arrays, source, task)
    _check_ends(arrays["terminals"], source)
    for name in ("observations", "actions", "qpos", "qvel"):
        if name in arrays:
            _check_finite(name, arrays[name], source)
    _check_actions(arrays["actions"], source)
    _check_simulator_state(arrays, source, task)


def _check_types(arrays: Arrays, source: str) -> None:
    allowed = {
        "observations": ("float32", "uint8"),
        "actions": ("float32", "int32", "int64"),
        "terminals": ("bool",),
        "qpos": ("float32",),
        "qvel": ("float32",),
        "button_states": ("int64",),
    }
    for name, types in allowed.items():
        if name in arrays and arrays[name].dtype.name not in types:
            raise InputError(
                f"{source}: '{name}' is {arrays[name].dtype.name}, expected {' or '.join(types)}: "
                f"save it with .astype('{types[0]}')."
            )


def _check_rows(arrays: Arrays, source: str) -> None:
    rows = arrays["observations"].shape[:1]
    flat = {"terminals": 1}
    if arrays["actions"].dtype.kind == "i":
        flat["actions"] = arrays["actions"].ndim  # Powderworld: one number per row
    for name, array in arrays.items():
        if name not in ARRAYS:
            continue
        dimensions = flat.get(name, 2)
        if name == "observations" and array.dtype == np.uint8:
            dimensions = array.ndim
        if array.ndim != dimensions:
            raise InputError(
                f"{source}: '{name}' has shape {array.shape}, expected {dimensions} dimension(s)."
            )
        if array.shape[:1] != rows:
            own, first = (sum(shape) for shape in (array.shape[:1], rows))
            raise InputError(
                f"{source}: '{name}' has {own} rows and 'observations' has {first}: "
                "every array needs one row per time step."
            )


def _check_dimensions(arrays: Arrays, source: str, task: TaskName | None) -> None:
    if task is None or task.dimensions is None:
        return
    for name, columns in zip(("observations", "actions"), task.dimensions, strict=True):
        if arrays[name].shape[1:] != (columns,):
            raise InputError(
                f"{source}: '{name}' has {arrays[name].shape[1:]} columns, but {task.name} has "
                f"({columns},): the file is of another task, or its name is wrong."
            )


def _check_ends(terminals: NDArray[np.bool_], source: str) -> None:
    if not len(terminals):
        raise InputError(f"{source} has no rows: expected at least one trajectory.")
    if not terminals[-1]:
        raise InputError(
            f"{source}: the last row ({len(terminals) - 1}) is not the end of a trajectory "
            "('terminals' is false there): the file was cut, or its ends were not stored."
        )
    single = np.flatnonzero(terminals & np.concatenate([[True], terminals[:-1]]))
    if len(single):
        raise InputError(
            f"{source}: the trajectory at row {single[0]} has a single row: expected at least "
            "two, so that it has a transition."
        )


def _check_finite(name: str, array: NDArray[Any], source: str) -> None:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return
    row, column = np.argwhere(~np.isfinite(array))[0]
    raise InputError(
        f"{source}: '{name}' is {array[row, column]} at row {row}, column {column}: "
        "expected finite numbers; the file is damaged or the simulator had failed."
    )


def _check_actions(actions: NDArray[Any], source: str) -> None:
    if actions.dtype.kind != "f" or np.abs(actions).max() <= _BOUND:
        return
    row, column = np.argwhere(np.abs(actions) > _BOUND)[0]
    raise InputError(
        f"{source}: 'actions' is {actions[row, column]:.6g} at row {row}, column {column}: "
        "expected actions within ±1, clipped as they were executed."
    )


def _check_simulator_state(arrays: Arrays, source: str, task: TaskName | None) -> None:
    if ("qpos" in arrays) != ("qvel" in arrays):
        present, absent = ("qpos", "qvel") if "qpos" in arrays else ("qvel", "qpos")
        raise InputError(
            f"{source} has '{present}' but no '{absent}': a simulator state needs both."
        )
    if task is None or "qpos" not in arrays or arrays["observations"].dtype == np.uint8:
        return
    if task.has_buttons and "button_states" not in arrays:
        raise InputError(
            f"{source} has no 'button_states', which are part of {task.name}'s simulator state."
        )
    for observed, state, what in _repeated_state(arrays, task):
        if observed.shape != state.shape:
            raise InputError(
                f"{source}: '{what}' has {arrays[what].shape[1]} columns, which does not fit the "
                f"observations of {task.name}: the simulator state is of another task."
            )
        wrong = np.flatnonzero(np.abs(observed - state).max(axis=1) > STATE_TOLERANCE)
        if len(wrong):
            raise InputError(
                f"{source}: the observation of row {wrong[0]} does not match its '{what}' "
                f"({len(wrong)} such rows): the arrays are shifted or not of one simulation."
            )


def _repeated_state(
    arrays: Arrays, task: TaskName
) -> Iterator[tuple[NDArray[Any], NDArray[Any], str]]:
    """Yield parts of the observations that repeat simulator state, the state, and its name."""
    observations, qpos, qvel = arrays["observations"], arrays["qpos"], arrays["qvel"]
    if task.family == "pointmaze":
        yield observations, qpos, "qpos"
    elif task.family in ("antmaze", "antsoccer"):
        positions = 15 if task.family == "antmaze" else 22
        yield observations[:, :positions], qpos, "qpos"
        yield observations[:, positions:], qvel, "qvel"
    elif task.family == "humanoidmaze":
        yield observations[:, :2], qpos[:, :2], "qpos"
        yield observations[:, 2:23], qpos[:, 7:], "qpos"
        yield observations[:, 42:], qvel, "qvel"
    elif task.family in ("cube", "scene", "puzzle"):
        yield observations[:, :6], qpos[:, :6], "qpos"
        yield observations[:, 6:12], qvel[:, :6], "qvel"


DEFAULT_FOLDER = Path("~/.ogbench/data")
"""Where OGBench's own package keeps its files."""

FOLDER_VARIABLE = "TOPTAIL_DATA"
"""Environment variable with further folders to look in, separated like a PATH."""


@dataclass(frozen=True)
class Dataset:
    """The two files of a data set."""

    train: Trajectories
    """The training split, ``NAME.npz``."""
    val: Trajectories
    """The validation split, ``NAME-val.npz``."""
    task: TaskName | None
    """The data set's name, from the file's name or its record; None if it is not OGBench's."""


def data_folders() -> list[Path]:
    """The folders that are searched for data sets; files are written into the first."""
    extra = [part for part in os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep) if part]
    return [*(Path(part).expanduser() for part in extra), DEFAULT_FOLDER.expanduser()]


def split_path(path: Path, split: Split) -> Path:
    """Return ``NAME.npz`` for training and ``NAME-val.npz`` for validation."""
    return path if split == "train" else path.with_name(f"{path.stem}-val.npz")


def task_of(path: Path) -> TaskName | None:
    """The OGBench name of a file, by its name or its record; None if it has none."""
    return _task_named(path.stem.removesuffix("-val")) or _task_named(
        (read_record(path) or {}).get("name")
    )


def _task_named(name: object) -> TaskName | None:
    try:
        return parse_name(str(name))
    except InputError:
        return None


def find(name_or_path: str | Path, folders: Sequence[Path] | None = None) -> Path:
    """Find the training file of a data set given by its name or by its path."""
    text = str(name_or_path)
    if text.endswith(".npz") or os.sep in text:
        return Path(text).expanduser()
    task = parse_name(text)
    folders = data_folders() if folders is None else folders
    for folder in folders:
        path = folder / f"{task.name}.npz"
        if path.exists():
            return path
        if path.with_name(f"{path.name}.part").exists():
            raise InputError(
                f"{path} is only half downloaded: `toptail data get {task.name}` resumes that."
            )
    looked = ", ".join(str(folder) for folder in folders)
    raise InputError(
        f"The data set {task.name} is not on this machine (looked in {looked}): "
        f"`toptail data get {task.name}` downloads it, `toptail data collect {task.name}` "
        f"collects it, and {FOLDER_VARIABLE} names another folder."
    )


def load(name_or_path: str | Path, folders: Sequence[Path] | None = None) -> Dataset:
    """Load and check both splits of a data set.

    It is given by an OGBench name, a short name, or the path of the training file; names are
    looked for in ``folders``, by default `data_folders`.
    """
    path = find(name_or_path, folders)
    train = load_file(path)
    val_path = split_path(path, "val")
    if not val_path.exists():
        raise InputError(
            f"{path} has no validation file beside it: expected {val_path}; "
            "put it there, or collect or download the data set again."
        )
    val = load_file(val_path)
    for name, array in train.arrays().items():
        other = val.arrays().get(name)
        if other is None or other.shape[1:] != array.shape[1:]:
            raise InputError(
                f"{val_path}: '{name}' does not have the shape of the training file's, "
                f"{array.shape[1:]} per row: the two files are not of one data set."
            )
    return Dataset(train, val, task_of(path))


def load_file(path: str | Path, task: TaskName | None = None) -> Trajectories:
    """Load and check one ``.npz`` file in OGBench's layout.

    It must have the dimensions of the task, which by default is taken from the file's name.
    """
    path = Path(path).expanduser()
    _require_npz(path)
    arrays = read_arrays(path)
    check_arrays(arrays, str(path), task if task is not None else task_of(path))
    known: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    trajectories = Trajectories(**known, source=str(path))
    recorded = str((read_record(path) or {}).get("content_sha256", trajectories.sha256))
    if recorded != trajectories.sha256:
        raise InputError(
            f"{path} is not the file that {record_path(path).name} describes (content hash "
            f"{trajectories.sha256[:12]}…, recorded {recorded[:12]}…): delete that record if the "
            "file was replaced on purpose."
        )
    return trajectories


def save_file(path: Path, trajectories: Trajectories) -> None:
    """Write trajectories in OGBench's layout, compressed as the published files are."""
    arrays = trajectories.arrays()
    # By its name alone: there may be a record of an earlier file.
    check_arrays(arrays, str(path), _task_named(path.stem.removesuffix("-val")))
    write_arrays(path, arrays, compressed=True)


def record_path(path: Path) -> Path:
    """The file that says where a data set comes from: ``NAME.npz.json``."""
    return path.with_name(f"{path.name}.json")


def read_record(path: Path) -> dict[str, Any] | None:
    """Read the record beside a data set file, if there is one."""
    where = record_path(path)
    return read_object(where, "delete it to go on without a record") if where.exists() else None


def _require_npz(path: Path) -> None:
    """Refuse files of other kinds by their first bytes."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: expected an .npz file in OGBench's layout.")
    with path.open("rb") as file:
        head = file.read(64)
    kinds = {
        b"PK": None,
        b"\x80": "a pickled file, which is never loaded",
        b"\x93NUMPY": "a single array (.npy)",
        b"<": "a web page, perhaps a mirror's error message",
        b"version https://git-lfs": "a Git LFS pointer, not the file itself",
        b"\x89HDF": "an HDF5 file",
    }
    what = next((text for magic, text in kinds.items() if head.startswith(magic)), "not a zip file")
    if what is not None:
        what = "empty" if not head else what
        raise InputError(f"{path} is {what}: expected an .npz file in OGBench's layout.")


@dataclass(frozen=True, eq=False)
class TaskDataset:
    """A data set with the names of its task."""

    name: str
    """Name of the data set: OGBench's, or the file's."""
    key: str
    """Name in tables."""
    navigation: bool
    """Whether gamma^d is a value: see `is_navigation`."""
    data: Dataset
    """The splits ``train`` and ``val``."""

    @classmethod
    def load(cls, name_or_path: str) -> TaskDataset:
        """Load and check a data set by its name, its short name, or its path."""
        path = find(name_or_path)
        task = task_of(path)
        name = path.stem if task is None else task.name
        data = load(path)
        if data.train.observations.ndim != 2 or data.train.actions.ndim != 2:
            raise InputError(
                f"{path} has observations of shape {data.train.observations.shape[1:]} and actions "
                f"of shape {data.train.actions.shape[1:]}: critics score vectors only."
            )
        return cls(name, name if task is None else task.title, is_navigation(task), data)

    def split(self, name: Split) -> Trajectories:
        return self.data.val if name == "val" else self.data.train


def is_navigation(task: TaskName | None) -> bool:
    """Whether gamma^d is a value: in mazes, and in data sets that are not OGBench's.

    In play data the recorded path to a goal is no attempt to reach it, so its length says nothing.
    Other data sets are taken to be navigation.
    """
    return task is None or task.is_maze
