"""A run's folder: what is in it, which attempt it is, and who works in it."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import read_object
from toptail.io.locks import is_locked, locked
from toptail.lab.training.metrics import read_lines

PACKAGES = ("toptail", "jax", "jaxlib", "flax", "optax", "numpy", "scipy")
"""Packages whose versions can change a result's last digits."""


def digest(content: Mapping[str, Any]) -> str:
    """Hash of a JSON-able mapping; the same content gives the same 16 digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say in which entries two contents differ: ``steps (100 and 200)``."""
    found: list[str] = []
    for name in sorted(a.keys() | b.keys()):
        one, other = a.get(name), b.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{prefix}{name}.")
        elif one != other:
            found.append(f"{prefix}{name} ({one} and {other})")
    return found


def versions() -> dict[str, str]:
    """Installed versions of everything that decides a result."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def machine() -> str:
    """The kind of machine and of accelerator, such as ``x86_64, NVIDIA H200``."""
    import jax  # only here: who reads what runs left needs no JAX

    return f"{platform.machine()}, {jax.devices()[0].device_kind}"


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


CONFIG = "config.json"
RECORD = "record.json"
METRICS = "metrics.jsonl"
PARAMS = "params.safetensors"
HISTORY = "history"


@dataclass(frozen=True)
class Run:
    """One run (task, critic, seed) as its folder holds it at the time of reading."""

    folder: Path
    """``OUT/TASK/CRITIC/seed-N``."""

    record: dict[str, Any]
    """The content of ``record.json``; empty if it cannot be read."""

    config: dict[str, Any]
    """The configuration in ``config.json``; empty if it cannot be read."""

    config_hash: str | None
    """The hash that ``config.json`` states."""

    @property
    def state(self) -> str:
        """``running`` (or stopped on the way), ``finished`` or ``invalid``, as recorded."""
        return str(self.record.get("state", "unknown"))

    @property
    def steps(self) -> int:
        """Steps that the configuration asks for."""
        return int(self.config.get("steps", 0))

    @property
    def attempt(self) -> int:
        """1, and one more for every time that the seed was repeated."""
        return attempt_at(self.folder)

    def steps_logged(self) -> int:
        """Steps that ``metrics.jsonl`` reaches."""
        lines = read_lines(self.folder / METRICS)
        return int(lines[-1]["step"] or 0) if lines else 0


def run_folder(home: Path, seed: int) -> Path:
    """Where a seed's run lives in its critic's folder."""
    return home / f"seed-{seed}"


def read_run(folder: str | Path) -> Run:
    """Read a run's record and configuration; damaged files give a run with a fault."""
    folder = Path(folder)
    if not (folder / RECORD).is_file():
        train = f"train it ('toptail train --critics {folder.parent.name}', or --train in a study)"
        how = f"; {train}" if folder.name.startswith("seed-") else ""
        raise InputError(f"{folder} is not the folder of a run: it holds no {RECORD}{how}.")
    stored = _object_or_empty(folder / CONFIG)
    config, config_hash = stored.get("config"), stored.get("hash")
    return Run(
        folder,
        _object_or_empty(folder / RECORD),
        config if isinstance(config, dict) else {},
        config_hash if isinstance(config_hash, str) else None,
    )


def find_runs(folder: str | Path) -> list[Run]:
    """Every run in a folder and below, seeds in order, earlier attempts left out."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: give the one that `toptail train` wrote into.")
    homes = [path.parent for path in entries(folder, f"**/{RECORD}")]
    runs = [home for home in homes if _seed(home) is not None]
    return [read_run(home) for home in sorted(runs, key=lambda home: (home.parent, _seed(home)))]


def attempt_at(folder: Path) -> int:
    """1, and one more for every attempt in the history."""
    return 1 + len(entries(folder / HISTORY, f"*/{RECORD}"))


@contextmanager
def training_lock(home: Path) -> Iterator[None]:
    """Hold a critic's folder; a second process that wants it raises `BusyError`."""
    busy = f"{home} is being trained by another process: wait for it, or stop it first."
    with locked(home / ".lock", busy):
        yield


def in_training(home: Path) -> bool:
    """Whether a process holds a critic's folder right now."""
    return is_locked(home / ".lock")


def _seed(folder: Path) -> int | None:
    """The seed in a run folder's name; None for any other folder, as those of the history."""
    digits = folder.name.removeprefix("seed-")
    return int(digits) if digits != folder.name and digits.isdigit() else None


def _object_or_empty(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except InputError:
        return {}
