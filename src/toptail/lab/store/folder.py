"""A study's folder: its lock, ``config.json``, ``record.json`` and ``tables/``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toptail.errors import InputError, option
from toptail.io.json_files import read_json_if_exists, write_json
from toptail.io.locks import locked
from toptail.lab.training.run_files import digest, machine, versions
from toptail.progress import Tick, no_tick
from toptail.provenance import commit


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
        last: dict[str, Any] | None = read_json_if_exists(self.path / "record.json")
        others = [] if last is None else [*last.pop("earlier", []), last]
        same = ("command", "config_hash", "versions", "commit", "machine")
        others = [each for each in others if any(each.get(n) != record[n] for n in same)]
        kept = {"earlier": others} if others else {}
        write_json(self.path / "record.json", {**record, **kept})

    def write_table(self, name: str, table: Mapping[str, Any]) -> None:
        """Store ``tables/NAME.json``."""
        write_json(self.path / "tables" / f"{name}.json", table)
        self.tables.append(name)
