"""The environment of a task: the one that is given, or that of an OGBench data set."""

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
from toptail.lab.environments.protocol import Copies, Environment, has_goals
from toptail.lab.environments.rollout import BatchMaker
from toptail.lab.judges.rollouts import ContinuationPolicy
from toptail.lab.proposals.untrained import NearBehaviour, NearData
from toptail.lab.scorers.user import user_code, user_module
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import TaskName, parse_name
from toptail.lab.tasks.trajectories import FloatArray, IntArray

GYMNASIUM, OGBENCH = "gymnasium", "ogbench"


@dataclass(frozen=True, eq=False)
class TaskEnvironment:
    """The environment of a task, or the reason why there is none."""

    name: str
    """Its name on the page; empty without an environment."""
    make: BatchMaker | None
    """Makes the simulations; None without an environment."""
    goals: bool
    """Whether the task is about goals, and not about rewards."""
    act: Callable[..., Any] | None = None
    """The environment's own policy, if it has one."""
    missing: str = ""
    """Why there is no environment."""
    origin: Mapping[str, Any] = field(default_factory=dict)
    """What records of rollouts in it name it by."""

    def continuation(self, near: NearData, goals: FloatArray, count: int) -> ContinuationPolicy:
        """The policy after a judged action where no model was trained: `continuation_text`.

        ``goals`` are those of the queries; a record passes near a goal where one of its rows is
        among the ``count`` nearest.
        """
        if self.act is None:
            passed = goals if self.goals else None
            data = NearBehaviour(near, passed, min(count, len(near.rows)))
            return lambda keys, observed, _: data.act(observed, keys[:, 0])
        act = self.act

        def own(_: IntArray, observed: FloatArray, goals: FloatArray | None) -> FloatArray:
            return np.clip(np.asarray(act(observed, goals), np.float32), -1, 1)

        return own

    @property
    def goal_free(self) -> str:
        """Why a task without goals is taken as one."""
        if not self.name:
            return "The task is taken as goal-free, as --goal-free was given"
        return f"{self.name} has no method reached(goal), so the task is taken as goal-free"

    @property
    def continuation_text(self) -> str:
        """Which policy continues, in words."""
        if self.act is not None:
            return "the environment's own policy goes on"
        return "the data's actions at near states go on"


def task_environment(env: object, data: Dataset, *, goals: bool) -> TaskEnvironment:
    """The environment that is given, else that of an OGBench data set, else none.

    ``env`` is a text (``gymnasium:ID``, ``ogbench:NAME``, ``FILE.py:make``), a function that makes
    an environment (or, with an argument ``size``, a batch of them), or an environment. ``goals``
    says whether the task has goals where no environment says so.
    """
    if isinstance(env, str):
        return _environment(env, _of_text(env), _file_of(env))
    if env is not None:
        name = getattr(env, "__qualname__", type(env).__name__)
        return _environment(name, _of_object(env, name))
    if data.task is None:
        reason = "the data is not OGBench's, and no environment was named"
        return TaskEnvironment("", None, goals, missing=reason)
    if not goals:
        reason = "OGBench's tasks are about goals, and pay no reward"
        return TaskEnvironment("", None, goals, missing=reason)
    try:
        return _environment(data.task.environment, _ogbench(data.task))
    except InputError as error:
        return TaskEnvironment("", None, goals, missing=str(error))


def _environment(name: str, make: BatchMaker, file: Path | None = None) -> TaskEnvironment:
    cached = cache(make)  # simulations are restored before they are used, and slow to make
    one: Any = cached(1)
    recorded = {"name": name} | ({} if file is None else {"sha256": sha256(file)})
    origin = {"environment": recorded}
    return TaskEnvironment(name, cached, has_goals(one), getattr(one, "act", None), origin=origin)


def maze_environment(task: str) -> TaskEnvironment:
    """The maze of an OGBench data set; records name the simulator's versions."""
    name = parse_name(task)
    versions = {package: version(package) for package in ("mujoco", "ogbench")}
    make = cache(_ogbench(name))
    return TaskEnvironment(name.environment, make, goals=True, origin={"versions": versions})


def _file_of(text: str) -> Path | None:
    """The file of ``FILE.py:make``; None for a text without a file."""
    path = Path(text.rpartition(":")[0]).expanduser()
    return path if path.suffix == ".py" else None


def _of_text(text: str) -> BatchMaker:
    kind, _, name = text.partition(":")
    if kind == GYMNASIUM and name:
        _import_once(name.rpartition(":")[0])
        return partial(Copies, partial(_gymnasium, name))
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
    return _of_object(made, text)


def _of_object(env: Any, where: str) -> BatchMaker:
    """Batches of a function that makes environments or batches, or of a single environment."""
    if (callable(env) and not callable(getattr(env, "restore", None))) or inspect.isclass(env):
        if _takes_size(env):
            return partial(_batch, env, where)
        return partial(Copies, partial(_one, env, where))
    if callable(getattr(env, "observations", None)):
        batch: Any = _Guarded(env, where, ("restore", "step", "observations"), env.size)
        return lambda _: batch
    one: Environment = _adapted(env, where)
    return lambda _: Copies(lambda: one, 1)


def _import_once(module: str) -> None:
    """Let gymnasium find the module of ``MODULE:ID`` that is run for a critic of the same file."""
    file = Path(f"{module}.py")
    if module and module not in sys.modules and file.is_file():
        sys.modules[module] = user_module(file)


def _takes_size(function: Callable[..., Any]) -> bool:
    try:
        return "size" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return False


def _ogbench(task: TaskName) -> BatchMaker:
    from toptail.lab.environments.ogbench import ogbench_batch

    return partial(ogbench_batch, task)


def _gymnasium(environment: object) -> Environment:
    from toptail.lab.environments.gym import GymEnvironment

    return GymEnvironment(environment)


def _batch(function: Callable[..., Any], where: str, size: int) -> Any:
    with user_code(where, f"could not make {size} simulations"):
        made = function(size=size)
    return _Guarded(made, where, ("restore", "step", "observations"), getattr(made, "size", size))


def _one(function: Callable[..., Any], where: str) -> Any:
    from toptail.lab.environments.gym import unlogged

    with user_code(where, "could not make an environment"), unlogged():
        made = function()
    return _adapted(made, where)


def _adapted(made: Any, where: str) -> Any:
    """An environment of the protocol; gymnasium's own are adapted."""
    if hasattr(made, "unwrapped") and hasattr(made, "action_space"):
        return _gymnasium(made)
    return _Guarded(made, where, ("restore", "step"))


class _Guarded:
    """A user's environment; exceptions of its methods become errors that name it."""

    def __init__(self, made: Any, where: str, methods: tuple[str, ...], size: int = 1) -> None:
        self.size = size
        for name in methods:
            if not callable(getattr(made, name, None)):
                raise InputError(
                    f"{where} returned {type(made).__name__} without a method '{name}': expected "
                    f"{', '.join(methods)}, as toptail.lab.environments.protocol has them."
                )
        for name in (*methods, "reached", "act"):
            if callable(method := getattr(made, name, None)):
                setattr(self, name, partial(_call, method, f"{where}, {name}()"))


def _call(method: Callable[..., Any], where: str, *args: Any) -> Any:
    with user_code(where, "failed"):
        return method(*args)
