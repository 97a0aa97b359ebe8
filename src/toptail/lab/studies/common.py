"""Run folders: configuration, record, and units that are computed once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.training.records import commit, digest, machine, versions
from toptail.pools.files import atomic, read_arrays, staged_folder

Arrays = dict[str, NDArray[np.generic]]

Tick = Callable[[str, float], None]
"""Told a stage's name and the share that is done, for progress."""


def no_tick(_stage: str, _share: float) -> None:
    """Show no progress."""


def write_json(path: Path, content: Any) -> None:
    """Write JSON with full precision; the file is there completely or not at all."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    atomic(path, lambda target: _write_text(target, text))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def read_json(path: Path) -> Any:
    """Read a JSON file of a run folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}); delete it and run the study again."
        ) from None


@dataclass
class RunFolder:
    """A study's folder: ``config.json``, ``record.json``, ``units/``, ``tables/``."""

    path: Path
    """Where everything lies."""

    units: int = 0
    """Units that this call asked for."""

    trained: int = 0
    """Units that this call had to compute; the others were found finished."""

    tables: list[str] = field(default_factory=list)
    """Names of the tables written by this call."""

    @contextmanager
    def recording(
        self, config: Mapping[str, Any], seeds: list[int], command: str | None
    ) -> Iterator[None]:
        """Store the configuration, and the record before and after the work.

        Calls that make parts of one folder, perhaps on different machines, do not erase each
        other: what earlier ones recorded stands under ``earlier``.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; --out needs a folder.")
        start = time.monotonic()
        earlier = self._earlier()
        write_json(self.path / "config.json", {"hash": digest(config), "config": config})
        record: dict[str, Any] = {
            "command": command or " ".join(sys.argv),
            "state": "running",
            "config_hash": digest(config),
            "versions": versions(),
            "commit": commit(),
            "machine": machine(),
            "seeds": seeds,
        }
        same = ("command", "config_hash", "versions", "commit", "machine")
        earlier = [each for each in earlier if any(each.get(n) != record[n] for n in same)]
        if earlier:
            record["earlier"] = earlier
        write_json(self.path / "record.json", record)
        yield
        record |= {
            "state": "finished",
            "seconds": round(time.monotonic() - start, 2),
            "units": {"trained": self.trained, "reused": self.units - self.trained},
            "tables": self.tables,
        }
        write_json(self.path / "record.json", record)

    def _earlier(self) -> list[dict[str, Any]]:
        """What the calls before this one recorded, oldest first."""
        path = self.path / "record.json"
        if not path.is_file():
            return []
        last: dict[str, Any] = read_json(path)
        return [*last.pop("earlier", []), last]

    def write_table(self, name: str, table: Mapping[str, Any]) -> None:
        """Store ``tables/NAME.json``."""
        write_json(self.path / "tables" / f"{name}.json", table)
        self.tables.append(name)


@dataclass(frozen=True)
class Unit:
    """One piece of work whose result is stored once: a folder named by its content's hash."""

    folder: Path
    """``units/NAME-HASH`` inside a run folder."""

    @classmethod
    def of(cls, run: RunFolder, name: str, spec: Mapping[str, Any]) -> Unit:
        """The unit that ``spec`` describes completely."""
        return cls(run.path / "units" / f"{name}-{digest(spec)}")

    @property
    def finished(self) -> bool:
        """Whether its result is stored; folders appear whole or not at all."""
        return (self.folder / "unit.json").is_file()

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A folder to write the result into; it becomes the unit's when the block succeeds."""
        with staged_folder(self.folder) as stage:
            yield stage

    def info(self) -> dict[str, Any]:
        """The stored ``unit.json``."""
        content: dict[str, Any] = read_json(self.folder / "unit.json")
        return content

    def arrays(self, name: str) -> Arrays:
        """The arrays of ``NAME.npz``."""
        return read_arrays(self.folder / f"{name}.npz")
