"""A study's folder: its lock, records and tables, and stored files with a header and a hash.

The header of a file names its inputs by hashes and settings. A file that is undamaged and was made
from the wanted inputs is read and not made again. What happens to any other file is one of two
policies. ``refuse``: an error names it, and it is never overwritten; for files that a user
declared, supplied, or spent hours on. ``remake``: it is made again; for files that only save time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.arrays import HashedFormat, one_of, read_arrays
from toptail.io.files import entries, staged_folder
from toptail.io.json_files import read_json, read_json_if_exists, write_json
from toptail.io.locks import locked
from toptail.lab.training.runs import differences, digest, machine, versions
from toptail.progress import Tick, no_tick
from toptail.provenance import commit

Arrays: TypeAlias = dict[str, NDArray[np.generic]]

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
    """Content of one stored file: scores, candidates, or values."""

    header: Mapping[str, Any]
    """What the arrays are and what they were made from, as JSON."""
    arrays: Mapping[str, NDArray[Any]]

    @property
    def sha256(self) -> str:
        return _FORMAT.sha256(self.header, self.arrays)

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays called ``PREFIX/NAME``, by NAME."""
        start = f"{prefix}/"
        found = {name: array for name, array in self.arrays.items() if name.startswith(start)}
        return {name.removeprefix(start): array for name, array in found.items()}

    def array(self, path: Path, name: str) -> NDArray[Any]:
        return one_of(path, self.arrays, name)

    def write(self, path: Path) -> None:
        _FORMAT.write(path, self.header, self.arrays)

    @classmethod
    def read(cls, path: Path, made_from: Mapping[str, Any] | None = None) -> Stored:
        """Read a file; one that was changed, or made from something else, is refused."""
        stored = _FORMAT.read(path, cls)
        require_fit(path, stored.header, made_from or {})
        return stored


def need(
    path: Path, made_from: Mapping[str, Any], make: Callable[[], Stored], stale: Stale = "refuse"
) -> Stored:
    """Read the file at ``path`` if its header has the entries of ``made_from``; else make it.

    The header may have further entries. ``make`` returns content whose header has these entries.
    """
    stored = fitting(path, made_from, stale)
    if stored is None:
        stored = make()
        stored.write(path)
    return stored


def fitting(path: Path, made_from: Mapping[str, Any], stale: Stale = "refuse") -> Stored | None:
    """The file at ``path`` if it was made from these inputs; None if it must be made."""
    if not path.is_file():
        return None
    try:
        return Stored.read(path, made_from)
    except InputError:
        if stale == "refuse":
            raise
        return None


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
    """A mapping as JSON stores it: tuples become lists, keys become text."""
    result: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    return result


def columns(folder: Path) -> dict[str, Path]:
    """The stored files of a folder by column, in the order of their names."""
    return {path.stem: path for path in entries(folder, "*.npz")}


@dataclass(frozen=True)
class ResultFolder:
    """A result that is a folder, named by a hash of what it was made from.

    Other inputs give another folder: a unit exists or not, and is never stale.
    """

    folder: Path
    """``units/NAME-HASH`` inside a study's folder."""

    @classmethod
    def of(cls, study: Path, name: str, made_from: Mapping[str, Any]) -> ResultFolder:
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
        content: dict[str, Any] = read_json(self.folder / "unit.json")
        return content

    def arrays(self, name: str) -> Arrays:
        return read_arrays(self.folder / f"{name}.npz")


@contextmanager
def alone(folder: Path, tick: Tick = no_tick) -> Iterator[None]:
    """Lock a study's folder; another call that works in it waits until this one is done."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; {option('out')} needs a folder.")
    waiting = f"waiting for another process in {folder}"
    with locked(folder / ".lock", wait=lambda: tick(waiting, 0.0)):
        yield


@dataclass
class RunFolder:
    """A study's folder, and counts of what one call computed in it."""

    path: Path
    study: str = ""
    """The study that works in it, which ``config.json`` names."""
    asked: int = 0
    """Results that this call needed: trained critics, or columns of scores."""
    made: int = 0
    """Results that this call computed; the others were stored already."""
    tables: list[str] = field(default_factory=list)
    """Names of the tables written by this call."""

    @contextmanager
    def recording(
        self, config: Mapping[str, Any], seeds: list[int], command: str | None
    ) -> Iterator[None]:
        """Store the configuration, and the record before and after the work.

        Several calls may work on one folder, perhaps on different machines: the records of the
        others are preserved under ``earlier``.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; {option('out')} needs a folder.")
        start = time.monotonic()
        named = {"study": self.study} if self.study else {}
        content = {**named, "hash": digest(config), "config": config}
        write_json(self.path / "config.json", content)
        record: dict[str, Any] = {
            "command": command or " ".join(sys.argv),
            "state": "running",
            "config_hash": digest(config),
            "versions": versions(),
            "commit": commit(),
            "machine": machine(),
            "seeds": seeds,
        }
        self._write_record(record)
        yield
        record |= {
            "state": "finished",
            "seconds": round(time.monotonic() - start, 2),
            "units": {"trained": self.made, "reused": self.asked - self.made},
            "tables": self.tables,
        }
        self._write_record(record)

    def _write_record(self, record: Mapping[str, Any]) -> None:
        """Store a record together with those of other calls."""
        last: dict[str, Any] | None = read_json_if_exists(self.path / "record.json")
        others = [] if last is None else [*last.pop("earlier", []), last]
        same = ("command", "config_hash", "versions", "commit", "machine")
        others = [each for each in others if any(each.get(n) != record[n] for n in same)]
        kept = {"earlier": others} if others else {}
        write_json(self.path / "record.json", {**record, **kept})

    def write_table(self, name: str, table: Mapping[str, Any]) -> None:
        write_json(self.path / "tables" / f"{name}.json", table)
        self.tables.append(name)
