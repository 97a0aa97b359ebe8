"""Stored files of a study, and whether they may be used again: one policy for all studies.

A file is made from inputs, which its header names by their hashes and settings. A file that was
made from the wanted inputs is read and not made again. For any other file the caller decides:
``refuse`` raises an error that names it, because it may hold declared criteria, input of the user
or hours of computing; ``remake`` replaces it, because it only saves time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.arrays import HashedFormat, read_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import read_json
from toptail.lab.store.compact import Way, pack, unpack
from toptail.lab.training.run_files import differences, digest

Arrays: TypeAlias = dict[str, NDArray[np.generic]]

KEPT = "kept"
"""What the header of a file that was made small says about that."""

Stale: TypeAlias = Literal["refuse", "remake"]
"""What happens to a file that is damaged or was made from something else."""

_FORMAT = HashedFormat(
    "toptail-stored-1",
    "a file that a study stored",
    "delete it and run the study again",
    beside=True,
)


@dataclass(frozen=True, eq=False)
class Stored:
    """What one file of a study holds: scores, candidates, or values."""

    header: Mapping[str, Any]
    """What the arrays are and what they were made from, as JSON has it."""

    arrays: Mapping[str, NDArray[Any]]
    """The arrays by name."""

    @property
    def sha256(self) -> str:
        """Hash of header and arrays; of those that were kept, where the file was made small."""
        if KEPT in self.header:
            return str(self.header[KEPT]["sha256"])
        return _FORMAT.sha256(self.header, self.arrays)

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays called ``PREFIX/NAME``, by NAME."""
        start = f"{prefix}/"
        found = {name: array for name, array in self.arrays.items() if name.startswith(start)}
        return {name.removeprefix(start): array for name, array in found.items()}

    def array(self, path: Path, name: str) -> NDArray[Any]:
        """One array of the file at ``path``; see `one_of`."""
        return one_of(path, self.arrays, name)

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        _FORMAT.write(path, self.header, self.arrays)

    def keep(
        self,
        path: Path,
        ways: Mapping[str, Way] | None = None,
        left_out: Collection[str] = (),
        **more: Any,
    ) -> None:
        """Write the file small: see `toptail.lab.store.compact` for what stays exact.

        It is read as any other, and has this one's hash, which other files may name. Its header
        says under `KEPT` what it was made of, which arrays were left out, and ``more``. A file that
        was kept already is written as it is, less what is left out now.
        """
        arrays = {name: array for name, array in self.arrays.items() if name not in left_out}
        packed, infos = pack(arrays, {n: way for n, way in (ways or {}).items() if n in arrays})
        before = self.header.get(KEPT, {})
        for name, old in before.get("arrays", {}).items():
            if name in infos and "error" in old:  # what was changed twice may be off by both
                infos[name]["error"] = infos[name].get("error", 0.0) + old["error"]
        gone = {*before.get("left_out", ()), *(self.arrays.keys() - arrays.keys())}
        about = {"sha256": self.sha256, "left_out": sorted(gone), "arrays": infos}
        _FORMAT.write(path, {**self.header, KEPT: {**before, **more, **about}}, packed, small=True)

    @classmethod
    def _of(cls, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Stored:
        """What a file holds, made small or not."""
        return cls(header, unpack(arrays, header[KEPT]["arrays"]) if KEPT in header else arrays)

    @classmethod
    def read(cls, path: Path, made_from: Mapping[str, Any] | None = None) -> Stored:
        """Read a file; one that was changed, or made from something else, is refused."""
        stored = _FORMAT.read(path, cls._of)
        require_fit(path, stored.header, made_from or {})
        return stored


def need(
    path: Path, made_from: Mapping[str, Any], make: Callable[[], Stored], stale: Stale = "refuse"
) -> Stored:
    """The file at ``path`` if its header has the entries of ``made_from``, or else a new one.

    Others may be there, too. ``make`` makes a file whose header has them.
    """
    stored = fitting(path, made_from, stale)
    if stored is None:
        stored = make()
        stored.write(path)
    return stored


def fitting(path: Path, made_from: Mapping[str, Any], stale: Stale = "refuse") -> Stored | None:
    """The file at ``path`` if it was made from this; None if it is to be made (see `need`)."""
    if not path.is_file():
        return None
    try:
        return Stored.read(path, made_from)
    except InputError:
        if stale == "refuse":
            raise
        return None


def one_of(path: Path, arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """One array of the file at ``path``, or a sentence about those that there are."""
    if name not in arrays:
        raise InputError(f"{path}: there is no array '{name}'; it has {', '.join(arrays)}.")
    return arrays[name]


def require_fit(path: Path, header: Mapping[str, Any], made_from: Mapping[str, Any]) -> None:
    """Refuse a file whose header does not have these entries."""
    own = {name: header[name] for name in made_from if name in header}
    changed = differences(own, plain(made_from))
    if changed:
        raise InputError(
            f"{path} was made from something else than is needed here (in this order): "
            f"{'; '.join(changed)}. Give what it was made from, choose another folder, or move the "
            "file away to make it again."
        )


def plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping as JSON has it: tuples become lists, keys become text."""
    result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return result


def columns(folder: Path) -> dict[str, Path]:
    """The stored files of a folder by column, in the order of their names."""
    return {path.stem: path for path in entries(folder, "*.npz")}


@dataclass(frozen=True)
class Unit:
    """One piece of work whose result is a folder named by a hash of what it was made from.

    Another input is another folder, so that a unit is there or not, and never stale.
    """

    folder: Path
    """``units/NAME-HASH`` inside a study's folder."""

    @classmethod
    def of(cls, study: Path, name: str, made_from: Mapping[str, Any]) -> Unit:
        """The unit of a study's folder that ``made_from`` describes completely."""
        return cls(study / "units" / f"{name}-{digest(made_from)}")

    @property
    def finished(self) -> bool:
        """Whether its result is stored; folders appear whole or not at all."""
        return (self.folder / "unit.json").is_file()

    def writing(self) -> AbstractContextManager[Path]:
        """A folder to write the result into; it becomes the unit's when the block succeeds."""
        return staged_folder(self.folder)

    def info(self) -> dict[str, Any]:
        """The stored ``unit.json``."""
        content: dict[str, Any] = read_json(self.folder / "unit.json")
        return content

    def arrays(self, name: str) -> Arrays:
        """The arrays of ``NAME.npz``."""
        return read_arrays(self.folder / f"{name}.npz")
