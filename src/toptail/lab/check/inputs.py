"""The inputs of a check: sizes, data and scorers (names, paths, arrays, functions, objects)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, check_whole, option
from toptail.io.files import entries
from toptail.lab.scorers.base import Scorer
from toptail.lab.scorers.user import live_scorer, named, require_names, user_scorers
from toptail.lab.tasks.files import Dataset, TaskDataset, check_arrays
from toptail.lab.tasks.trajectories import ARRAYS, Trajectories

NEAREST, UNIFORM, BEHAVIOUR, ASCENT = "nearest", "uniform", "behaviour", "ascent"
SOURCES: Final = (NEAREST, UNIFORM, BEHAVIOUR, ASCENT)
"""Sources of candidates, besides a file."""

EXACT, ROLLOUTS, REFERENCE, NO_JUDGE = "exact", "rollouts", "reference", "none"
JUDGES: Final = (EXACT, ROLLOUTS, REFERENCE, NO_JUDGE)
"""Judges, besides a file."""

MOST: Final = 10_000
"""Candidates of a query, at most."""
WHOLE: Final = 256
"""Of at most so many candidates of a query, rollouts judge all; of more, only the picks."""


@dataclass(frozen=True)
class CheckConfig:
    """How much a check looks at.

    A judge by rollouts simulates every candidate to the horizon, so that it gets fewer queries and
    smaller pools by default.
    """

    per_group: int | None = None
    """Queries of each distance group; 200, or 60 if rollouts judge. Without goals there are no
    groups, and three times as many queries."""

    pool_size: int | None = None
    """Candidates of each query, up to 10,000; 64, or 16 if rollouts judge, which of more than 256
    judge the picks of best of K alone."""

    near: int = 200
    """Near states of the data whose actions are candidates."""

    starts: int = 80
    """Episodes of each distance group in which the critic is followed at every step; without goals
    three times as many."""

    follow_k: tuple[int, ...] = (1, 8, 64)
    """Candidates among which the critic chooses at every step; the others are compared with 1."""

    follow_ascent: bool = False
    """Follow the critic's maximizer at every step, too, for the candidates 'ascent': about 2,000
    scores a step."""

    horizon: int = 200
    """Steps of a rollout and of an episode."""

    gamma: float = 0.99
    """Discount of the judges."""

    repeats: int | None = None
    """Rollouts of each candidate, independent replicates of one noisy judge: 2 where a behaviour
    model continues, 1 where the continuation is deterministic."""

    resamples: int = 10_000
    """Bootstrap resamples of the audits."""

    seed: int = 0
    """Seed of queries, candidates and resamples."""

    def __post_init__(self) -> None:
        for name in ("near", "starts", "horizon"):
            check_whole(name, getattr(self, name), 1)
        check_whole("seed", self.seed, 0)
        check_whole("resamples", self.resamples, 100)
        for name, least in (("per_group", 1), ("pool_size", 2), ("repeats", 1)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least)
        if max(self.pool_size or 2, *self.follow_k) > MOST:
            raise InputError(
                f"{option('pool_size')} and {option('follow_k')} go up to {MOST:,} candidates."
            )
        ks = self.follow_k
        if len(ks) < 2 or ks[0] != 1 or list(ks) != sorted(set(ks)):
            raise InputError(f"The sizes K of the closed loop must rise from 1, not {ks}.")
        if not 0 < self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma:g}: expected a number above 0, at most 1.")

    def picked_k(self, source: str, judge: str) -> tuple[int, ...]:
        """Sizes K whose picks alone are judged, from 1; empty where all candidates are judged."""
        size = self.size(judge)
        if source == ASCENT:
            return (1, size)
        if judge != ROLLOUTS or size <= WHOLE:
            return ()
        return (*(4**i for i in range(size.bit_length()) if 4**i < size), size)

    def queries(self, judge: str) -> int:
        """Queries of each group under a judge."""
        return self.per_group or (60 if judge == ROLLOUTS else 200)

    def size(self, judge: str) -> int:
        """Candidates of a query under a judge."""
        return self.pool_size or (16 if judge == ROLLOUTS else 64)


Arrays: TypeAlias = Trajectories | Mapping[str, NDArray[Any]]
"""Trajectories, or their arrays by name: observations, actions, terminals and, where the simulator
needs them, qpos, qvel and button_states."""
Data: TypeAlias = str | PathLike[str] | Dataset | Arrays | tuple[Arrays, ...]
"""A data set by its name or path, both splits, or one set that is split here."""
Scorers: TypeAlias = Mapping[str, Any] | str | Callable[..., Any] | Sequence[Any]
"""Name -> function, object with a method ``score``, or text; or one or several of these, which name
themselves."""

VALIDATION = 5
"""Of a single set of trajectories, every fifth one is validation data."""


def task_dataset(data: Data) -> TaskDataset:
    if isinstance(data, str | PathLike):
        return TaskDataset.load(str(data))
    if not isinstance(data, Dataset):
        data = _split(data)
    return TaskDataset("data", "data", True, data)


def _split(data: Arrays | tuple[Arrays, ...]) -> Dataset:
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"The data has {len(data)} parts: expected training and validation.")
        train, val = (_trajectories(part) for part in data)
        return Dataset(train, val, None)
    whole = _trajectories(data)
    numbers = np.arange(len(whole.ends))
    held = numbers % VALIDATION == VALIDATION - 1
    if not held.any():
        raise InputError(
            f"{whole.source} has {len(numbers)} trajectories: expected at least {VALIDATION}, of "
            "which every fifth one is validation data; or give a pair (training, validation)."
        )
    return Dataset(whole.select(numbers[~held]), whole.select(numbers[held]), None)


def _trajectories(data: Arrays) -> Trajectories:
    if isinstance(data, Trajectories):
        arrays, source = data.arrays(), data.source
    elif isinstance(data, Mapping):
        arrays, source = {n: np.asarray(data[n]) for n in ARRAYS if n in data}, "the arrays"
    else:
        raise InputError(
            f"The data is of the type {type(data).__name__}: expected a name, a path, "
            "Trajectories, a mapping with observations, actions and terminals, or a pair of these."
        )
    kinds = {"terminals": np.bool_, "button_states": np.int64}
    found: dict[str, Any] = {n: a.astype(kinds.get(n, np.float32)) for n, a in arrays.items()}
    check_arrays(found, source, None)
    return Trajectories(**found, source=source)


def check_scorers(scorers: Scorers, task: TaskDataset) -> list[Scorer]:
    """The scorers of a check; a pattern stands for all runs that match it."""
    named = scorers.items() if isinstance(scorers, Mapping) else _unnamed(scorers)
    found = [each for name, critic in named for each in _scorers_of(name, critic, task)]
    if not found:
        raise InputError(f"There is nothing to check: name a critic with {option('scorer')}.")
    require_names([scorer.column for scorer in found])
    return found


def _unnamed(scorers: object) -> Iterable[tuple[None, object]]:
    """One scorer or several without names; a network that lists its layers is one."""
    one = isinstance(scorers, str) or callable(scorers) or hasattr(scorers, "score")
    every = scorers if isinstance(scorers, Iterable) and not one else [scorers]
    return [(None, each) for each in every]


def _scorers_of(name: str | None, critic: object, task: TaskDataset) -> list[Scorer]:
    """The scorers of a text, a function or an object, which without a name have their own."""
    if isinstance(critic, str | PathLike):
        return _of_text(f"{critic}" if name is None else f"{name}={critic}", task)
    own = getattr(critic, "__name__", type(critic).__name__).strip("<>")  # of <lambda>
    return [live_scorer(own if name is None else name, critic)]


def _of_text(text: str, task: TaskDataset) -> list[Scorer]:
    place, readout = _with_readout(text)
    name, folders = _named_runs(place)
    if folders is None:
        return user_scorers([text], ())
    if not folders:
        raise InputError(f"{option('scorer', text)}: no folder of a trained run fits that.")
    from toptail.lab.scorers.runs import of_folders

    return of_folders(folders, name, task.name, task.data.train, readout)


def _with_readout(text: str) -> tuple[str, str]:
    """A run ``.../seed-N:READOUT`` without its readout, and the readout; "" where there is none."""
    place, colon, readout = text.rpartition(":")
    of_run = colon and Path(place).name.startswith("seed-") and readout.isidentifier()
    return (place, readout) if of_run else (text, "")


def _named_runs(text: str) -> tuple[str, list[Path] | None]:
    """The name before runs, "" for their own, and the folders of the runs.

    Folders of critics with settings have equals signs, too: a name has no brackets and no slash.
    """
    folders = _runs(text)
    name, rest = named(text)
    if folders or name is None or any(sign in name for sign in "/["):
        return "", folders
    folders = _runs(rest)
    if folders and (not name or "@" in name):
        raise InputError(
            f"{option('scorer', text)}: a run has its own seed; give it a name without @, or none."
        )
    return name, folders


def _runs(text: str) -> list[Path] | None:
    """Folders of trained runs that a path or pattern names; None where it names something else."""
    path = Path(text).expanduser()
    if _is_run(path):
        return [path]
    parts = path.parts
    wild = next((i for i, part in enumerate(parts) if "*" in part or "?" in part), None)
    if wild is None or ".py:" in text or not path.name.startswith("seed-"):
        return None
    pattern = str(Path(*parts[wild:]))
    return [run for run in entries(Path(*parts[:wild]), pattern) if _is_run(run)]


def _is_run(folder: Path) -> bool:
    return (folder / "record.json").is_file()
