"""Data set files: found, checked on load, written whole."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.lab.tasks.checks import check_arrays
from toptail.lab.tasks.names import Split, TaskName, parse_name
from toptail.lab.tasks.trajectories import ARRAYS, Trajectories
from toptail.pools.files import atomic, read_arrays, write_arrays
from toptail.pools.guard import read_object

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
    """The data set's name, or None where neither the file's name nor its record has one."""


def data_folders() -> list[Path]:
    """Return the folders that are searched for data sets; the first is the one to write into."""
    extra = [part for part in os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep) if part]
    return [*(Path(part).expanduser() for part in extra), DEFAULT_FOLDER.expanduser()]


def split_path(path: Path, split: Split) -> Path:
    """Return ``NAME.npz`` for training and ``NAME-val.npz`` for validation."""
    return path if split == "train" else path.with_name(f"{path.stem}-val.npz")


def task_of(path: Path) -> TaskName | None:
    """Return the OGBench name that a file's name or the record beside it has, or None."""
    return _named(path.stem.removesuffix("-val")) or _named((read_record(path) or {}).get("name"))


def _named(name: object) -> TaskName | None:
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
                f"{path} is only half downloaded: `toptail data get {task.name}` goes on with it."
            )
    looked = ", ".join(str(folder) for folder in folders)
    raise InputError(
        f"The data set {task.name} is not on this machine (looked in {looked}): "
        f"`toptail data get {task.name}` downloads it, `toptail data collect {task.name}` "
        f"collects it, and {FOLDER_VARIABLE} names another folder."
    )


def load(name_or_path: str | Path, folders: Sequence[Path] | None = None) -> Dataset:
    """Load and check both splits of a data set.

    It is given by an OGBench name, one of the paper's eight names, or the path of the training
    file; names are looked for in `data_folders` unless folders are given.
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
    _refuse_what_is_no_npz(path)
    arrays = read_arrays(path)
    check_arrays(arrays, str(path), task if task is not None else task_of(path))
    kept: dict[str, Any] = {name: arrays[name] for name in ARRAYS if name in arrays}
    trajectories = Trajectories(**kept, source=str(path))
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
    # By its name alone: a record beside it may be of the file before.
    check_arrays(arrays, str(path), _named(path.stem.removesuffix("-val")))
    write_arrays(path, arrays, compressed=True)


def record_path(path: Path) -> Path:
    """Return the file that says where a data set file comes from: ``NAME.npz.json``."""
    return path.with_name(f"{path.name}.json")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a small JSON file, whole or not at all."""
    text = json.dumps(content, indent=2) + "\n"

    def write(target: Path) -> None:
        target.write_text(text, "utf-8")

    atomic(path, write)


def read_record(path: Path) -> dict[str, Any] | None:
    """Read the record beside a data set file, if there is one."""
    where = record_path(path)
    return read_object(where, "delete it to go on without a record") if where.exists() else None


def _refuse_what_is_no_npz(path: Path) -> None:
    """Name the usual wrong files by their first bytes, before anything parses them."""
    if not path.is_file():
        raise InputError(f"{path} does not exist: expected an .npz file in OGBench's layout.")
    with path.open("rb") as file:
        head = file.read(64)
    found = {
        b"PK": None,
        b"\x80": "a pickled file, which is never loaded",
        b"\x93NUMPY": "a single array (.npy)",
        b"<": "a web page, perhaps a mirror's error message",
        b"version https://git-lfs": "a Git LFS pointer, not the file itself",
        b"\x89HDF": "an HDF5 file",
    }
    what = next((text for magic, text in found.items() if head.startswith(magic)), "not a zip file")
    if what is not None:
        what = "empty" if not head else what
        raise InputError(f"{path} is {what}: expected an .npz file in OGBench's layout.")
