"""A study's folder: JSON in and out, ``config.json``, ``record.json`` and ``tables/``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toptail.errors import InputError, option, told
from toptail.io import guard
from toptail.io.files import NoLocksError, atomic, locks_exist, try_lock
from toptail.lab.training.run_files import digest, machine, versions
from toptail.progress import Tick, no_tick
from toptail.provenance import commit

_POLL = 0.1
"""Seconds between two attempts to lock a folder that another process holds."""


def write_json(path: Path, content: Any) -> None:
    """Write JSON with full precision; the file is there completely or not at all."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    atomic(path, lambda target: target.write_text(text, encoding="utf-8"))


def read_json(path: Path) -> Any:
    """Read a JSON file of a study's folder."""
    return guard.read_json(path, "delete it and run the study again")


def read_stored(path: Path) -> Any:
    """Read a JSON file of a study's folder; None where there is none."""
    return read_json(path) if path.is_file() else None


@contextmanager
def alone(folder: Path, tick: Tick = no_tick) -> Iterator[None]:
    """Lock a study's folder; another call that works in it waits until this one is done.

    The lock ends with the process. On systems and disks without locks nothing is locked.
    """
    if not locks_exist():
        yield
        return
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; {option('out')} needs a folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise told(error, folder) from None
    with file:
        with suppress(NoLocksError):
            while not try_lock(file.fileno()):
                tick(f"waiting for another process in {folder}", 0.0)
                time.sleep(_POLL)
        yield


@dataclass
class RunFolder:
    """A study's folder, and counts of what one call computed in it."""

    path: Path
    """The folder."""
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
        last: dict[str, Any] | None = read_stored(self.path / "record.json")
        others = [] if last is None else [*last.pop("earlier", []), last]
        same = ("command", "config_hash", "versions", "commit", "machine")
        others = [each for each in others if any(each.get(n) != record[n] for n in same)]
        kept = {"earlier": others} if others else {}
        write_json(self.path / "record.json", {**record, **kept})

    def write_table(self, name: str, table: Mapping[str, Any]) -> None:
        """Store ``tables/NAME.json``."""
        write_json(self.path / "tables" / f"{name}.json", table)
        self.tables.append(name)
