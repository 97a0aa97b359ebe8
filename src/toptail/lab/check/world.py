"""Which environment a check walks in: named on the command line, or the data set's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from toptail.errors import InputError, option
from toptail.lab.environments.copies import Copies
from toptail.lab.environments.gym import GymEnvironment, unlogged
from toptail.lab.environments.ogbench import ogbench_batch
from toptail.lab.environments.protocol import Environment, has_goals
from toptail.lab.environments.walks import Maker
from toptail.lab.studies.checked import others_code
from toptail.lab.studies.user_scorers import user_module
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import TaskName, parse_name

GYMNASIUM, OGBENCH = "gymnasium", "ogbench"


@dataclass(frozen=True, eq=False)
class CheckWorld:
    """The environment of a check, as far as there is one."""

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


def world_of(text: str | None, data: Dataset, *, goals: bool) -> CheckWorld:
    """The environment that was named, else that of an OGBench data set, else none.

    ``goals`` says whether the task has goals where no environment says so.
    """
    if text is not None:
        return _world(text, _named(text))
    if data.task is None:
        lacks = "the data is not OGBench's, and no environment was named"
        return CheckWorld("", None, goals, lacks=lacks)
    if not goals:
        lacks = "OGBench's tasks are about goals, and pay no reward"
        return CheckWorld("", None, goals, lacks=lacks)
    try:
        return _world(data.task.environment, _ogbench(data.task))
    except InputError as error:
        return CheckWorld("", None, goals, lacks=str(error))


def _world(name: str, make: Maker) -> CheckWorld:
    kept = cache(make)  # simulations are restored before they are used, and slow to make
    one: Any = kept(1)
    return CheckWorld(name, kept, has_goals(one), getattr(one, "act", None))


def _named(text: str) -> Maker:
    """Simulations of ``gymnasium:ID``, ``ogbench:NAME`` or ``FILE.py:make``."""
    kind, _, name = text.partition(":")
    if kind == GYMNASIUM and name:
        return partial(Copies, partial(GymEnvironment, name))
    if kind == OGBENCH and name:
        return _ogbench(parse_name(name))
    file, colon, attribute = text.rpartition(":")
    path = Path(file).expanduser()
    if not colon or path.suffix != ".py":
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
