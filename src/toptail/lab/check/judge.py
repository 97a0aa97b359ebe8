"""The judges of a check: what the candidates of its queries are worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.arrays import read_arrays
from toptail.lab.check.candidates import BehaviourModel, behaviour_folder
from toptail.lab.check.config import (
    EXACT,
    JUDGES,
    NO_JUDGE,
    REFERENCE,
    ROLLOUTS,
    CheckConfig,
)
from toptail.lab.check.environments import TaskEnvironment
from toptail.lab.environments.rollout import RolloutRules, RolloutStarts
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.point import is_point_maze
from toptail.lab.judges.reference import REFERENCE_CRITIC, admission
from toptail.lab.judges.rollouts import ContinuationPolicy, candidate_returns
from toptail.lab.proposals.untrained import NearData
from toptail.lab.scorers.base import Score, score_each
from toptail.lab.store.units import one_of
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

REFERENCE_SEEDS = (101, 102, 103)
"""Seeds of the runs that judge."""
ADMITTED: dict[str, Any] = {"prespecified_group": "near", "resolvability": 0.5, "spearman": 0.7}
"""When the reference ensemble may judge, as the selection study declares it."""

Share: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """Values of the candidates of some queries."""

    values: NDArray[np.floating[Any]]
    """``[replicates, Q, N]``; larger is better."""
    doubts: tuple[str, ...] = ()
    """Reasons not to believe the judge."""


@dataclass(frozen=True, eq=False)
class Judge:
    """A judge of candidates."""

    name: str
    """``exact``, ``rollouts``, ``reference``, ``none`` or ``file``."""
    says: str
    """What a value is, in words."""
    value: Callable[[FrozenQueries, FloatArray, Share], JudgedValues] | None
    """(queries, candidates ``[Q, N, a]``, progress) -> values; None without a judge."""
    needs: str = ""
    """What would be needed to judge, where there is no judge."""


@dataclass(frozen=True, eq=False)
class JudgeInputs:
    """What judges are made of."""

    task: str
    """The data set's name."""
    near: NearData
    """The training split."""
    val: Trajectories
    """The split of which queries are rows."""
    environment: TaskEnvironment
    """The task's environment, or why there is none."""
    runs: Path | None
    """Folder of trained runs."""
    config: CheckConfig = field(default_factory=CheckConfig)
    """Sizes, horizon and discount."""

    @property
    def model_folder(self) -> Path | None:
        """The behaviour model that continues; None where the environment has its own policy."""
        if self.environment.act is not None or not self.environment.goals:
            return None
        return behaviour_folder(self.runs, self.task)

    def reference_runs(self) -> list[Path]:
        """The folders of the runs that judge; empty unless all are there."""
        if self.runs is None or not self.environment.goals:
            return []
        from toptail.lab.training.run_files import RECORD, run_folder

        home = self.runs / self.task / REFERENCE_CRITIC
        found = [run_folder(home, seed) for seed in REFERENCE_SEEDS]
        return found if all((folder / RECORD).is_file() for folder in found) else []


def best_judge(inputs: JudgeInputs) -> str:
    """The best judge that a task has: exact, else rollouts, else a reference ensemble."""
    if inputs.environment.goals and is_point_maze(inputs.task):
        return EXACT
    if inputs.environment.make is not None:
        return ROLLOUTS
    return REFERENCE if inputs.reference_runs() else NO_JUDGE


def judge_of(text: str, inputs: JudgeInputs) -> Judge:
    """The judge that ``--judge`` names."""
    makers = {EXACT: _exact, ROLLOUTS: _rollouts, REFERENCE: _reference, NO_JUDGE: _none}
    make = makers.get(text)
    return _of_file(Path(text).expanduser(), text) if make is None else make(inputs)


def _none(_: JudgeInputs) -> Judge:
    needs = (
        "an environment (--env FILE.py:make or gymnasium:ID), or values of the candidates in a "
        "file (--judge FILE.npz)"
    )
    return Judge(NO_JUDGE, "nobody judged", None, needs)


def _exact(inputs: JudgeInputs) -> Judge:
    if not inputs.environment.goals or not is_point_maze(inputs.task):
        raise InputError(
            f"{option('judge', EXACT)}: the exact value is known of PointMaze without teleports "
            f"alone, and not of {inputs.task}: leave it out, or choose another judge."
        )

    gamma = inputs.config.gamma

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        args = (queries.states, candidates, queries.goals, gamma, tick)
        return JudgedValues(exact_values(inputs.task, *args)[None])

    says = f"{gamma:g} to the power of the fewest steps to the goal in the task's own dynamics"
    return Judge(EXACT, says, value)


def _rollouts(inputs: JudgeInputs) -> Judge:
    environment, config, model = inputs.environment, inputs.config, inputs.model_folder
    make = environment.make
    if make is None:
        raise InputError(
            f"{option('judge', ROLLOUTS)} needs an environment, and {environment.missing}: name "
            f"one with {option('env')}."
        )
    rules = RolloutRules(config.horizon, config.gamma)
    repeats = config.repeats or (2 if model else 1)

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        goals = queries.goals if environment.goals else None
        starts = RolloutStarts(inputs.val, queries.rows, goals)
        args = (candidates, _continuation(inputs, queries), rules, repeats, tick)
        return JudgedValues(candidate_returns(make, starts, *args))

    what = "discounted success" if environment.goals else "discounted return"
    text = "the trained behaviour model goes on" if model else environment.continuation_text
    says = f"{what} within {config.horizon} steps, when after it {text}"
    return Judge(ROLLOUTS, says, value)


def _continuation(inputs: JudgeInputs, queries: FrozenQueries) -> ContinuationPolicy:
    """The policy after a judged action."""
    if folder := inputs.model_folder:
        return BehaviourModel(folder, inputs.task, inputs.near.data, inputs.config.seed).act
    return inputs.environment.continuation(inputs.near, queries.goals, inputs.config.near)


def _reference(inputs: JudgeInputs) -> Judge:

    if not inputs.reference_runs():
        raise InputError(
            f"{option('judge', REFERENCE)} needs {option('runs')} with "
            f"{inputs.task}/{REFERENCE_CRITIC}/seed-{REFERENCE_SEEDS[0]} to {REFERENCE_SEEDS[-1]}: "
            f"train {REFERENCE_CRITIC} with these seeds, or choose another judge."
        )
    from toptail.lab.scorers.runs import of_folders

    members = of_folders(inputs.reference_runs(), "", inputs.task, inputs.near.data)

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        scored = []
        for i, member in enumerate(members):
            scored.append(score_pools(member.score, queries, candidates))
            tick((i + 1) / len(members))
        values = np.stack(scored)
        rng = np.random.default_rng(inputs.config.seed)
        found = admission(
            values[:, :, None], queries.group, queries.trajectory, rng=rng, **ADMITTED
        )
        checks = () if found["admitted"] else (found["resolvability"], found["agreement"])
        failed = [check["advice"] for check in checks if check["status"] != "pass"]
        return JudgedValues(
            values, tuple(f"The reference is not admitted: {text}." for text in failed)
        )

    says = f"the mean of {len(members)} values trained apart, which judge of their own family"
    return Judge(REFERENCE, says, value)


def score_pools(score: Score, queries: FrozenQueries, candidates: FloatArray) -> FloatArray:
    """Scores of all candidates: ``[Q, N, a]`` in, ``[Q, N]`` out."""

    def towards(states: FloatArray, actions: FloatArray, goal: IntArray) -> FloatArray:
        return score(states, actions, queries.goals[goal])

    return score_each(towards, queries.states, candidates, np.arange(len(queries)))


def _of_file(path: Path, text: str) -> Judge:
    if path.suffix != ".npz":
        raise InputError(
            f"{option('judge', text)}: expected {', '.join(JUDGES)}, or a file FILE.npz."
        )
    values = one_of(path, read_arrays(path), "values")

    def value(_: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        stack = values[None] if values.ndim == 2 else values
        if stack.shape[1:] != candidates.shape[:2] or stack.dtype.kind not in "fiu":
            raise InputError(
                f"{path}: 'values' is {values.dtype} of shape {values.shape}, expected numbers of "
                f"shape {candidates.shape[:2]}, or of several replicates: values of the candidates "
                f"in pools.npz, which {option('judge', NO_JUDGE)} writes for one kind of "
                f"{option('pools')}."
            )
        tick(1.0)
        return JudgedValues(stack)

    return Judge("file", f"what {path.name} says", value)
