"""Which environment is walked in: named on the command line, or the data set's own."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError, option
from toptail.io.files import sha256
from toptail.lab.environments.gym import GymEnvironment, unlogged
from toptail.lab.environments.ogbench import ogbench_batch
from toptail.lab.environments.protocol import Copies, Environment, has_goals
from toptail.lab.environments.rollout import Maker
from toptail.lab.judges.rollouts import GoesOn
from toptail.lab.proposals.untrained import NearBehaviour, NearData
from toptail.lab.scorers.user import others_code, user_module
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import TaskName, parse_name
from toptail.lab.tasks.trajectories import FloatArray, IntArray

GYMNASIUM, OGBENCH = "gymnasium", "ogbench"


@dataclass(frozen=True, eq=False)
class TaskWorld:
    """The environment of a task, as far as there is one."""

    name: str
    """What the page calls it; empty where there is none."""
    make: Maker | None
    """Makes the simulations; None where there are none."""
    goals: bool
    """Whether the task is about goals; otherwise it is about rewards."""
    act: Callable[..., Any] | None = None
    """The environment's own policy, if it has one."""
    lacks: str = ""
    """Why there is no environment."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What the files made in it record of it."""

    def goes_on(self, near: NearData, goals: FloatArray, count: int) -> GoesOn:
        """Who goes on after a judged action where no model was trained: `who_goes_on`.

        ``goals`` are those of the queries, whose records pass near them where a row is among the
        ``count`` nearest.
        """
        if self.act is None:
            passed = goals if self.goals else None
            data = NearBehaviour(near, passed, min(count, len(near.rows)))
            return lambda keys, seen, _: data.act(seen, keys[:, 0])
        act = self.act

        def own(_: IntArray, seen: FloatArray, aims: FloatArray | None) -> FloatArray:
            return np.clip(np.asarray(act(seen, aims), np.float32), -1, 1)

        return own

    @property
    def goal_free(self) -> str:
        """Why a task without goals is taken as one."""
        if not self.name:
            return "The task is taken as goal-free, as --goal-free was given"
        return f"{self.name} has no method reached(goal), so the task is taken as goal-free"

    @property
    def who_goes_on(self) -> str:
        """The environment's own policy, or what the data does."""
        if self.act is not None:
            return "the environment's own policy goes on"
        return "the data's actions at near states go on"


def world_of(text: str | None, data: Dataset, *, goals: bool) -> TaskWorld:
    """The environment that was named, else that of an OGBench data set, else none.

    ``goals`` says whether the task has goals where no environment says so.
    """
    if text is not None:
        return _world(text, _named(text), _file_of(text))
    if data.task is None:
        lacks = "the data is not OGBench's, and no environment was named"
        return TaskWorld("", None, goals, lacks=lacks)
    if not goals:
        lacks = "OGBench's tasks are about goals, and pay no reward"
        return TaskWorld("", None, goals, lacks=lacks)
    try:
        return _world(data.task.environment, _ogbench(data.task))
    except InputError as error:
        return TaskWorld("", None, goals, lacks=str(error))


def _world(name: str, make: Maker, file: Path | None = None) -> TaskWorld:
    kept = cache(make)  # simulations are restored before they are used, and slow to make
    one: Any = kept(1)
    recorded = {"name": name} | ({} if file is None else {"sha256": sha256(file)})
    origin = {"environment": recorded}
    return TaskWorld(name, kept, has_goals(one), getattr(one, "act", None), origin=origin)


def maze_world(task: str) -> TaskWorld:
    """The maze of an OGBench data set, whose files name the simulator's versions."""
    name = parse_name(task)
    versions = {package: version(package) for package in ("mujoco", "ogbench")}
    make = cache(_ogbench(name))
    return TaskWorld(name.environment, make, goals=True, origin={"versions": versions})


def _file_of(text: str) -> Path | None:
    """The file of ``FILE.py:make``; None of what needs none."""
    path = Path(text.rpartition(":")[0]).expanduser()
    return path if path.suffix == ".py" else None


def _named(text: str) -> Maker:
    """Simulations of ``gymnasium:ID``, ``ogbench:NAME`` or ``FILE.py:make``."""
    kind, _, name = text.partition(":")
    if kind == GYMNASIUM and name:
        _import_once(name.rpartition(":")[0])
        return partial(Copies, partial(GymEnvironment, name))
    if kind == OGBENCH and name:
        return _ogbench(parse_name(name))
    path, attribute = _file_of(text), text.rpartition(":")[2]
    if path is None:
        raise InputError(
            f"{option('env', text)}: expected {GYMNASIUM}:ID, {OGBENCH}:NAME, or "
            "path/to/file.py:make."
        )
    made: Any = getattr(user_module(path), attribute, None)
    if not callable(made):
        raise InputError(f"{path} has no function '{attribute}': name one that is there.")
    if _takes_size(made):
        return _batch(made, text)
    return partial(Copies, _one(made, text))


def _import_once(module: str) -> None:
    """Have gymnasium import the module of ``MODULE:ID`` as it was, or will be, run for a critic."""
    file = Path(f"{module}.py")
    if module and module not in sys.modules and file.is_file():
        sys.modules[module] = user_module(file)


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        return "size" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # something built in does not say
        return False


def _ogbench(task: TaskName) -> Maker:
    return partial(ogbench_batch, task)


def _batch(function: Callable[..., Any], where: str) -> Maker:
    """A user's function that makes a whole batch."""

    def make(size: int) -> Any:
        with others_code(where, f"could not make {size} simulations"):
            made = function(size=size)
        guarded = _Guarded(made, where, ("restore", "step", "observations"))
        guarded.size = size
        return guarded

    return make


def _one(function: Callable[..., Any], where: str) -> Callable[[], Environment]:
    """A user's function that makes one environment; gymnasium's own are adapted."""

    def make() -> Any:
        with others_code(where, "could not make an environment"), unlogged():
            made = function()
        if hasattr(made, "unwrapped") and hasattr(made, "action_space"):
            return GymEnvironment(made)
        return _Guarded(made, where, ("restore", "step"))

    return make


class _Guarded:
    """A user's environment whose methods fail in one sentence."""

    size: int

    def __init__(self, made: Any, where: str, methods: tuple[str, ...]) -> None:
        for name in methods:
            if not callable(getattr(made, name, None)):
                raise InputError(
                    f"{where} returned {type(made).__name__} without a method '{name}': expected "
                    f"{', '.join(methods)}, as toptail.lab.environments.protocol has them."
                )
        for name in (*methods, "reached", "act"):
            if callable(method := getattr(made, name, None)):
                setattr(self, name, _told(method, f"{where}, {name}()"))


def _told(method: Callable[..., Any], where: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        with others_code(where, "failed"):
            return method(*args)

    return call
