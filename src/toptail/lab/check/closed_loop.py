"""The environment of a task, and episodes in it that follow a critic at every step."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from toptail.errors import InputError, option
from toptail.io.files import sha256
from toptail.lab.check.inputs import ASCENT
from toptail.lab.environments.protocol import Copies, Environment, Floats, Mask, has_goals
from toptail.lab.environments.rollout import (
    BatchMaker,
    Policy,
    RolloutRules,
    Rollouts,
    RolloutStarts,
    roll_out,
)
from toptail.lab.judges.rollouts import ContinuationPolicy
from toptail.lab.proposals.untrained import CandidateSource, NearBehaviour, NearData
from toptail.lab.scorers.base import Ascent, Score, Scorer, score_each, score_towards
from toptail.lab.scorers.user import user_code, user_module
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.names import TaskName, parse_name
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds
from toptail.provenance import installed
from toptail.stats import bootstrap_sums, cluster_sums, percentile_interval

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
    versions = {package: installed(package) for package in ("mujoco", "ogbench")}
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
    function: Any = getattr(user_module(path), attribute, None)
    if not callable(function):
        raise InputError(f"{path} has no function '{attribute}': name one that is there.")
    return _of_object(function, text)


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
        batch = function(size=size)
    return _Guarded(batch, where, ("restore", "step", "observations"), getattr(batch, "size", size))


def _one(function: Callable[..., Any], where: str) -> Any:
    from toptail.lab.environments.gym import unlogged

    with user_code(where, "could not make an environment"), unlogged():
        environment = function()
    return _adapted(environment, where)


def _adapted(environment: Any, where: str) -> Any:
    """An environment of the protocol; gymnasium's own are adapted."""
    if hasattr(environment, "unwrapped") and hasattr(environment, "action_space"):
        return _gymnasium(environment)
    return _Guarded(environment, where, ("restore", "step"))


class _Guarded:
    """A user's environment; exceptions of its methods become errors that name it."""

    def __init__(self, env: Any, where: str, methods: tuple[str, ...], size: int = 1) -> None:
        self.size = size
        for name in methods:
            if not callable(getattr(env, name, None)):
                raise InputError(
                    f"{where} returned {type(env).__name__} without a method '{name}': expected "
                    f"{', '.join(methods)}, as toptail.lab.environments.protocol has them."
                )
        for name in (*methods, "reached", "act"):
            if callable(method := getattr(env, name, None)):
                setattr(self, name, partial(_call, method, f"{where}, {name}()"))


def _call(method: Callable[..., Any], where: str, *args: Any) -> Any:
    with user_code(where, "failed"):
        return method(*args)


BASELINE = "K = 1"
"""The selector that takes the first candidate, whatever its score."""
_EPISODES = 1
"""Part of the key of draws in episodes, which must not be the draws of the queries."""

Search: TypeAlias = int | None
"""How a critic's pick is found: best of K candidates, or for None by ascent on the score."""


def selector_name(search: Search) -> str:
    """What the audit of picks calls a search: ``K = 8``, or ``ascent``."""
    return ASCENT if search is None else f"K = {search}"


def best_of_k(
    source: CandidateSource, score: Score | None, goals: FloatArray, k: int, draws: int
) -> Policy:
    """The policy that takes the highest score of K candidates; without a score the first one.

    Rollout e at step t sees the first K of the same ``draws`` candidates, whatever the K and the
    score, as long as it is in the same state. ``goals [n, g]`` has the goal of each rollout.
    """
    towards = None if score is None or k == 1 else score_towards(score, goals)

    def policy(numbers: IntArray, taken: IntArray, observed: FloatArray) -> FloatArray:
        drawn = source.draw(_keys(numbers, taken), observed, goals[numbers], draws)[:, :k]
        if towards is None:
            return drawn[:, 0]
        scores = score_each(towards, observed, drawn, numbers)
        return np.asarray(drawn[np.arange(len(numbers)), scores.argmax(axis=1)])

    return policy


def maximizer(
    source: CandidateSource, score: Score, goals: FloatArray, width: int, draws: int, seed: int
) -> Policy:
    """The policy that takes the action of ``width`` numbers that maximizes the score in the box.

    The search begins with the same ``draws`` candidates that `best_of_k` sees.
    """
    ascent = Ascent(score, goals, width, seed)

    def policy(numbers: IntArray, taken: IntArray, observed: FloatArray) -> FloatArray:
        keys = _keys(numbers, taken)
        drawn = source.draw(keys, observed, goals[numbers], draws)
        return ascent.best(keys, observed, numbers, drawn)

    return policy


def _keys(numbers: IntArray, taken: IntArray) -> IntArray:
    return np.stack([numbers, taken, np.full_like(numbers, _EPISODES)], axis=1)


@dataclass(frozen=True, eq=False)
class Episodes:
    """What the episodes of all critics share."""

    environment: TaskEnvironment
    val: Trajectories
    """The data of which the starts are rows."""
    queries: FrozenQueries
    """Starts and goals of the episodes."""
    source: CandidateSource
    draws: int
    """Candidates that are drawn at every step: the largest K."""
    rules: RolloutRules
    seed: int = 0
    """Seed of the ascent."""

    def worth(self, score: Score | None, search: Search) -> Floats:
        """Value of each episode: success (1 or 0) where the task has goals, else the return."""
        goals = self.queries.goals
        if search is None and score is not None:
            width = self.val.actions.shape[1]
            policy = maximizer(self.source, score, goals, width, self.draws, self.seed)
        else:
            policy = best_of_k(self.source, score, goals, search or 1, self.draws)
        found = self._rolled_out(self.queries.rows, goals, policy, self.rules)
        return (found.reached > 0).astype(float) if self.environment.goals else found.rewards

    def _rolled_out(
        self, rows: IntArray, goals: FloatArray | None, policy: Policy, rules: RolloutRules
    ) -> Rollouts:
        make = self.environment.make
        assert make is not None
        starts = RolloutStarts(self.val, rows, goals if self.environment.goals else None)
        return roll_out(make, starts, policy, rules)

    def recorded(
        self, starts: IntArray, lengths: IntArray, goals: FloatArray
    ) -> tuple[Rollouts, IntArray]:
        """Recorded actions taken from recorded rows, and which start each row belongs to.

        Every row is restored and its own action is taken, so that errors do not accumulate.
        """
        number = np.repeat(np.arange(len(starts)), lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = starts[number] + np.arange(len(number)) - first

        def policy(numbers: IntArray, _taken: IntArray, _observed: FloatArray) -> FloatArray:
            return np.asarray(self.val.actions[rows[numbers]])

        return self._rolled_out(rows, goals[number], policy, RolloutRules(horizon=1)), number


def picks_of(
    queries: FrozenQueries,
    searches: Sequence[Search],
    scorers: Sequence[Scorer],
    worth: Mapping[tuple[str, Search], Floats],
    *,
    grouped: bool,
) -> dict[str, JudgedPicks]:
    """Scorer -> values of its picks, as the audit of picks reads them: selectors are the searches.

    ``worth`` has values ``[queries]`` by column and search; of K = 1 under the column "". Training
    seeds of a scorer are replicates.
    """
    seeds = group_seeds([each.column for each in scorers])
    return {n: _picks(queries, searches, columns, worth, grouped) for n, columns in seeds.items()}


def _picks(
    queries: FrozenQueries,
    searches: Sequence[Search],
    columns: Mapping[int | None, str],
    worth: Mapping[tuple[str, Search], Floats],
    grouped: bool,
) -> JudgedPicks:
    parts: dict[str, list[Any]] = {name: [] for name in ("query", "selector", "replicate", "value")}
    for seed, column in columns.items():
        for search in searches:
            parts["query"].append(np.arange(len(queries)))
            parts["selector"].append(np.full(len(queries), selector_name(search)))
            parts["replicate"].append(np.full(len(queries), str(seed)))
            parts["value"].append(worth["" if search == 1 else column, search])
    table = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    table["cluster"] = queries.trajectory[table["query"]]
    if grouped:
        table["group"] = queries.group[table["query"]]
    return JudgedPicks.from_arrow(pa.table(table), source="best of K")


@dataclass(frozen=True)
class Recorded:
    """Value of the data's own episodes, for comparison with a followed critic."""

    mean: float
    """Share of successes, or mean return."""
    low: float
    """Lower end of its 95 % interval over trajectories."""
    high: float
    episodes: int
    says: str
    """What it is, in words."""


def recorded(episodes: Episodes, most: int, resamples: int, seed: int) -> Recorded:
    """The value of at most ``most`` of the data's own episodes."""
    rng, horizon = np.random.default_rng(seed), episodes.rules.horizon
    if episodes.environment.goals:
        worth, cluster = _reached_goals(episodes)
        says = (
            f"Success of the data's own episodes is how many came to the goal within {horizon} "
            "steps: goals are states that the same episode came to later."
        )
    else:
        worth, cluster = recorded_returns(episodes, most, rng), None
        says = (
            "The return of the data's own episodes is that of their recorded actions from the "
            f"first row on, for up to {horizon} steps."
        )
    sums = cluster_sums(np.stack([worth, np.ones(len(worth))], axis=1), cluster)
    drawn = bootstrap_sums(sums, rng, resamples)
    low, high = percentile_interval(drawn[:, 0] / drawn[:, 1])
    return Recorded(float(worth.mean()), float(low), float(high), len(worth), says)


def _reached_goals(episodes: Episodes) -> tuple[Floats, IntArray]:
    """Whether each recorded episode reached its goal within the horizon, and its trajectory."""
    queries, horizon = episodes.queries, episodes.rules.horizon
    came = queries.distance <= horizon
    late = np.flatnonzero(~came)  # which may have come within the tolerance before
    lengths = np.full(len(late), horizon)
    taken, number = episodes.recorded(queries.rows[late], lengths, queries.goals[late])
    came[late] = np.bincount(number, taken.reached, len(late)) > 0
    cluster = np.unique(queries.trajectory, return_inverse=True)[1].astype(np.int64)
    return came.astype(float), cluster


def recorded_returns(episodes: Episodes, most: int, rng: np.random.Generator) -> Floats:
    """Sums of rewards of recorded episodes, up to the horizon or to the environment's end."""
    val = episodes.val
    chosen = np.sort(rng.permutation(len(val.ends))[:most])
    lengths = np.minimum(val.lengths[chosen], episodes.rules.horizon)
    no_goals = np.zeros((len(chosen), 0), np.float32)
    taken, number = episodes.recorded(val.starts[chosen], lengths, no_goals)
    ended: IntArray = taken.ended.astype(np.int64)
    before: IntArray = np.cumsum(ended) - ended  # ends before each row, of all episodes
    counted: Mask = before == before[np.cumsum(lengths) - lengths][number]
    rewards: Floats = np.where(counted, taken.rewards, 0.0)
    return np.asarray(np.bincount(number, rewards, len(chosen)), np.float64)
