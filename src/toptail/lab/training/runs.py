"""The folder of a run: its files, whether it is valid, and loading it. Imports no JAX.

The only reasons for which a run is invalid are those of `Cause`. How good a critic is never
decides: poor results, unusual curves and disagreement between seeds are no faults. An invalid run
is repeated with the same seed.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.files import entries, sha256
from toptail.io.json_files import read_object, write_json
from toptail.io.locks import is_locked, locked
from toptail.provenance import installed

if TYPE_CHECKING:
    from toptail.lab.critics.base import TrainedCritic
    from toptail.lab.training.config import LearnerConfig, RunConfig

Line: TypeAlias = dict[str, float | None]
"""A step and the scalars of the steps that ended there; None where one is not finite."""


def metrics_line(step: int, scalars: Mapping[str, float]) -> Line:
    """A line of metrics; scalars are rounded to seven digits, more than float32 has."""
    if "step" in scalars:
        raise ValueError("a learner calls a metric 'step', which is the number of the line's step")
    rounded = {k: float(f"{v:.7g}") if math.isfinite(v) else None for k, v in scalars.items()}
    return {"step": step, **rounded}


def append_line(path: Path, line: Line) -> None:
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


PACKAGES = ("toptail", "jax", "jaxlib", "optax", "numpy", "scipy")
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
    return {"python": platform.python_version()} | {name: installed(name) for name in PACKAGES}


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


Cause: TypeAlias = Literal[
    "steps missing",
    "unreadable checkpoint",
    "non-finite parameters or losses",
    "wrong task or configuration",
    "confirmed bug",
]
"""Every reason for which a run may be invalid."""


class Fault(NamedTuple):
    """Why a run is invalid."""

    cause: Cause
    detail: str

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}"


def invalid_reason(run: Run, task: str | None = None, config_hash: str | None = None) -> str | None:
    """Why a run is invalid, in words, or None; see `find_fault`."""
    fault = find_fault(run, task, config_hash)
    return None if fault is None else str(fault)


def find_fault(run: Run, task: str | None = None, config_hash: str | None = None) -> Fault | None:
    """Why a run is invalid or not of the expected task and configuration; None if it is valid."""
    if run.state == "invalid":
        recorded = run.record.get("invalid", {})
        cause = recorded.get("cause", "confirmed bug")
        return Fault(cause, str(recorded.get("detail", "without a reason")))
    return (
        identity_fault(run, task, config_hash)
        or _loss_fault(run)
        or _steps_fault(run)
        or _params_fault(run)
    )


def identity_fault(
    run: Run, task: str | None = None, config_hash: str | None = None
) -> Fault | None:
    """Whether record and configuration are unchanged, belong together, and are as expected."""

    def wrong(detail: str) -> Fault:
        return Fault("wrong task or configuration", detail)

    if not run.record:
        return wrong(f"{RECORD} cannot be read")
    if not run.config or run.config_hash != digest(run.config):
        return wrong(f"{CONFIG} does not have the content of its hash")
    if run.record.get("config_hash") != run.config_hash:
        return wrong(f"{RECORD} and {CONFIG} state different configuration hashes")
    for name in ("task", "critic"):
        if run.record.get(name) != run.config.get(name):
            return wrong(f"{RECORD} and {CONFIG} state different names of the {name}")
    if run.folder.name != f"seed-{run.record.get('seed')}":
        return wrong(f"{RECORD} is that of seed {run.record.get('seed')}")
    if task is not None and run.config["task"] != task:
        return wrong(f"it was trained on {run.config['task']}, not on {task}")
    if config_hash is not None and run.config_hash != config_hash:
        return wrong(f"its configuration is {run.config_hash}, not {config_hash}")
    return None


def _loss_fault(run: Run) -> Fault | None:
    for line in read_lines(run.folder / METRICS):
        if line.get("loss") is None:
            return Fault(
                "non-finite parameters or losses",
                f"a loss among the steps up to {line['step']} is not finite",
            )
    return None


def _steps_fault(run: Run) -> Fault | None:
    logged = [line["step"] for line in read_lines(run.folder / METRICS)]
    wanted = logged_steps(run.steps, int(run.config["log_every"]))
    if run.state == "finished" and logged == wanted:
        return None
    return Fault("steps missing", f"{METRICS} has {len(logged)} of {len(wanted)} lines")


def _params_fault(run: Run) -> Fault | None:
    path = run.folder / PARAMS
    if not path.is_file():
        return Fault("unreadable checkpoint", f"{PARAMS} is missing")
    if sha256(path) != run.record.get("params_sha256"):
        return Fault("unreadable checkpoint", f"{PARAMS} is not the file that training wrote")
    try:
        arrays = read_tensors(path)
    except InputError as error:
        return Fault("unreadable checkpoint", str(error))
    if not is_finite(arrays):
        return Fault("non-finite parameters or losses", f"{PARAMS} holds such numbers")
    return None


def is_finite(params: Mapping[str, Any]) -> bool:
    """Whether every number of a tree of parameters is finite."""
    return all(
        is_finite(value) if isinstance(value, dict) else bool(np.isfinite(value).all())
        for value in params.values()
    )


def read_tensors(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file of parameters, by their paths, such as ``phi/Dense_0/kernel``."""
    from safetensors.numpy import load_file

    with refusing(path, "cannot be read as a safetensors checkpoint", "train the critic again"):
        return load_file(path)


def load_run(
    folder: str | Path,
    task: str | None = None,
    config_hash: str | None = None,
    *,
    in_float32: bool = False,
) -> TrainedCritic:
    """Load the critic of a finished run; an invalid or unexpected run is refused, with the reason.

    With ``in_float32`` it computes in float32 even if it was trained with bfloat16 products, in
    which a value near -50 is a multiple of 0.25: as much as one action changes it.
    """
    from toptail.lab.critics.base import TrainedCritic
    from toptail.lab.training.checkpoints import load_params

    run = read_run(folder)
    reason = invalid_reason(run, task, config_hash)
    if reason is not None:
        raise InputError(
            f"{folder} is not a valid run ({reason}): start its `toptail train` command again, "
            "which goes on with it or repeats it with the same seed."
        )
    config = stored_config(run)
    if in_float32:
        config = replace(config, bfloat16=False)
    return TrainedCritic(config.build(), load_params(run.folder / PARAMS))


Config = TypeVar("Config", bound="LearnerConfig")
"""A kind of configuration."""


@overload
def stored_config(run: Run) -> RunConfig: ...
@overload
def stored_config(run: Run, kind: type[Config]) -> Config: ...
def stored_config(run: Run, kind: type[LearnerConfig] | None = None) -> LearnerConfig:
    """The configuration of a run; refused if it has another meaning in this version of the code."""
    from toptail.lab.training.config import RunConfig

    kind = kind or RunConfig
    try:
        config = kind.from_content(run.config)
        changed = ", ".join(differences(run.config, config.content))
    except (KeyError, TypeError, RecursionError) as error:
        changed = str(error)
    if changed:
        raise InputError(
            f"{run.folder} was trained by a version of toptail with other settings, {changed}: "
            "use it with that version, or train it again into another folder."
        )
    return config


def require_data(run: str | Path, trained_on: str, source: str, sha256: str) -> None:
    """Refuse a run that was trained on other data.

    ``trained_on`` is the content hash of the run's training split, ``sha256`` that of the split
    that was loaded from ``source``.
    """
    if trained_on != sha256:
        raise InputError(
            f"The run {run} was trained on other data than {source} (content hash "
            f"{trained_on[:12]}…, not {sha256[:12]}…): name runs of this data set, or give the "
            "data that the run was trained on."
        )


def invalidate(folder: str | Path, reason: str) -> Run:
    """Record that a run is invalid because of a confirmed bug that changes its objective."""
    run = read_run(folder)
    if not reason.strip():
        raise InputError("A run is recorded as invalid for a reason: give one.")
    with training_lock(run.folder.parent):
        mark_invalid(run, Fault("confirmed bug", reason.strip()))
    return read_run(run.folder)


def mark_invalid(run: Run, fault: Fault) -> None:
    """Write a fault into a run's record."""
    entry = {"cause": fault.cause, "detail": fault.detail, "at": now()}
    write_json(run.folder / RECORD, run.record | {"state": "invalid", "invalid": entry})


def archive(run: Run, fault: Fault) -> None:
    """Move an invalid run's files to ``history/ATTEMPT``, so that its seed can be repeated."""
    if run.state != "invalid":
        mark_invalid(run, fault)
    target = run.folder / HISTORY / str(run.attempt)
    target.mkdir(parents=True, exist_ok=True)
    files = [path for path in entries(run.folder) if path.is_file()]
    # The record is moved last: while it is there, an interrupted move is repeated.
    for path in sorted(files, key=lambda path: (path.name == RECORD, path.name)):
        path.replace(target / path.name)
