"""Data sets of other libraries, imported into files of this project's layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, check_share, option
from toptail.lab.foreign.d4rl import read_d4rl, read_npz
from toptail.lab.foreign.episodes import Imported, trajectories
from toptail.lab.foreign.minari import find_minari, read_minari
from toptail.lab.tasks.files import (
    load_file,
    read_record,
    record_path,
    save_file,
    split_path,
    write_json,
)
from toptail.lab.tasks.trajectories import Trajectories

KINDS: Final[Mapping[str, Callable[[str], Imported]]] = {
    "minari": lambda name: read_minari(find_minari(name)),
    "d4rl": lambda name: read_d4rl(Path(name).expanduser()),
    "ogbench": lambda name: read_npz(Path(name).expanduser()),
}
"""What stands before the colon -> who reads what stands behind it."""


@dataclass(frozen=True)
class ImportResult:
    """What an import wrote."""

    paths: tuple[Path, Path]
    """The training and the validation file."""
    episodes: tuple[int, int]
    """Episodes of each."""
    notes: tuple[str, ...]
    """What was done to the data, in sentences."""


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
    """A data set file and the record of where it comes from."""
    record_path(path).unlink(missing_ok=True)  # of a file that was there before
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
