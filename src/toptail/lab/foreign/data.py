"""Data sets of other libraries, imported into files of this project's layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, check_share, option
from toptail.lab.foreign.d4rl import read_d4rl, read_npz
from toptail.lab.foreign.episodes import Arrays, Imported, trajectories
from toptail.lab.foreign.minari import find_minari, read_minari
from toptail.lab.tasks.files import record_path, save_file, split_path, write_json

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
    parts = {"train": found.episodes[: count - held], "val": found.episodes[count - held :]}
    paths = (out, split_path(out, "val"))
    for path, episodes in zip(paths, parts.values(), strict=True):
        _write(path, list(episodes), source, found.notes)
    return ImportResult(paths, (count - held, held), found.notes)


def _write(path: Path, episodes: list[Arrays], source: str, notes: tuple[str, ...]) -> None:
    """A data set file and the record of where it comes from."""
    data = trajectories(episodes, source)
    record_path(path).unlink(missing_ok=True)  # of a file that was there before
    save_file(path, data)
    record: dict[str, Any] = {
        "file": path.name,
        "source": f"imported from {source}",
        "bytes": path.stat().st_size,
        "content_sha256": data.sha256,
        "episodes": len(episodes),
        "imported": list(notes),
    }
    write_json(record_path(path), record)
