"""The folder of a run: its files, its metrics, its attempts and its lock."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

from toptail.errors import InputError
from toptail.io.files import entries
from toptail.io.json_files import read_object
from toptail.io.locks import is_locked, locked

Line: TypeAlias = dict[str, float | None]
"""A step and the scalars of the steps that ended there; None where one is not finite."""


def metrics_line(step: int, scalars: Mapping[str, float]) -> Line:
    """A line of metrics; scalars are rounded to seven digits, more than float32 has."""
    rounded = {k: float(f"{v:.7g}") if math.isfinite(v) else None for k, v in scalars.items()}
    return {"step": step, **rounded}


def append_line(path: Path, line: Line) -> None:
    """Append a line to ``metrics.jsonl``."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, allow_nan=False) + "\n")


def read_lines(path: Path) -> list[Line]:
    """Read every whole line; the part of a line that a killed process left is ignored."""
    return [line for _, line in _whole_lines(path)]


def cut_lines(path: Path, step: int) -> None:
    """Remove every line after ``step``, and a last line that is not whole."""
    if path.is_file():
        before = takewhile(lambda pair: (pair[1]["step"] or 0) <= step, _whole_lines(path))
        os.truncate(path, sum(length for length, _ in before))


def logged_steps(steps: int, log_every: int) -> list[int]:
    """The steps that are logged: multiples of ``log_every``, and the last step."""
    return sorted({*range(log_every, steps + 1, log_every), steps})


def _whole_lines(path: Path) -> Iterator[tuple[int, Line]]:
    """Bytes and content of each line, up to the first that is not whole."""
    for text in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            return
        named = isinstance(line, dict) and isinstance(line.get("step"), int)
        if not (named and text.endswith(b"\n")):
            return
        yield len(text), line


PACKAGES = ("toptail", "jax", "jaxlib", "flax", "optax", "numpy", "scipy")
"""Packages whose versions can change a result's last digits."""


def digest(content: Mapping[str, Any]) -> str:
    """The first 16 digits of the hash of a mapping that JSON can hold."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The entries in which two contents differ, in words: ``steps (100 and 200)``."""
    found: list[str] = []
    for name in sorted(a.keys() | b.keys()):
        one, other = a.get(name), b.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{prefix}{name}.")
        elif one != other:
            found.append(f"{prefix}{name} ({one} and {other})")
    return found


def versions() -> dict[str, str]:
    """Installed versions of Python and of `PACKAGES`."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def machine() -> str:
    """The kind of machine and of accelerator, such as ``x86_64, NVIDIA H200``."""
    import jax  # only here: reading the folder of a run needs no JAX

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
        """``running`` (also if it was killed), ``finished`` or ``invalid``, as recorded."""
        return str(self.record.get("state", "unknown"))

    @property
    def steps(self) -> int:
        """Steps of the configuration."""
        return int(self.config.get("steps", 0))

    @property
    def attempt(self) -> int:
        """1, and one more for every repetition of the seed."""
        return attempt_at(self.folder)

    def steps_logged(self) -> int:
        """The last step in ``metrics.jsonl``."""
        lines = read_lines(self.folder / METRICS)
        return int(lines[-1]["step"] or 0) if lines else 0


def run_folder(home: Path, seed: int) -> Path:
    """The folder of a seed's run in its critic's folder."""
    return home / f"seed-{seed}"


def read_run(folder: str | Path) -> Run:
    """Read a run's record and configuration; a file that cannot be read counts as empty."""
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
    """Every run in a folder and below, by seed, without earlier attempts."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: give the one that `toptail train` wrote into.")
    homes = [path.parent for path in entries(folder, f"**/{RECORD}")]
    runs = [home for home in homes if _seed(home) is not None]
    return [read_run(home) for home in sorted(runs, key=lambda home: (home.parent, _seed(home)))]


def attempt_at(folder: Path) -> int:
    """The number of the current attempt: one more than there are in the history."""
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
    """The seed in the name of a run's folder; None for other folders, such as the history."""
    digits = folder.name.removeprefix("seed-")
    return int(digits) if digits != folder.name and digits.isdigit() else None


def _object_or_empty(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except InputError:
        return {}
