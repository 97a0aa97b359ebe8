"""Who judges the candidates of a check, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.arrays import read_arrays
from toptail.lab.check.config import EXACT, JUDGES, NOBODY, REFERENCE, ROLLOUTS, CheckConfig
from toptail.lab.check.environments import TaskWorld
from toptail.lab.check.sources import BehaviourModel, behaviour_folder
from toptail.lab.environments.walks import WalkRules, WalkStarts
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.point import knows_ways
from toptail.lab.judges.reference import REFERENCE_CRITIC, admission
from toptail.lab.judges.rollouts import GoesOn, candidate_returns
from toptail.lab.proposals.untrained import NearData
from toptail.lab.scorers.base import Score, of_run, score_each
from toptail.lab.store.units import one_of
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.lab.training.run_files import RECORD, run_folder

REFERENCE_SEEDS = (101, 102, 103)
"""Seeds of the runs that judge."""
ADMITTED: dict[str, Any] = {"prespecified_group": "near", "resolvability": 0.5, "spearman": 0.7}
"""When the reference ensemble may judge, as the selection study declares it."""

Share: TypeAlias = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class JudgedValues:
    """What a judge says about the candidates of some queries."""

    values: NDArray[np.floating[Any]]
    """``[replicates, Q, N]``; larger is better."""
    doubts: tuple[str, ...] = ()
    """Why the judge may not be believed, where that is so."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Who judges, and how."""

    name: str
    """``exact``, ``rollouts``, ``reference``, ``none`` or ``file``."""
    says: str
    """What a value is, in a sentence."""
    value: Callable[[FrozenQueries, FloatArray, Share], JudgedValues] | None
    """(queries, candidates ``[Q, N, a]``, progress) -> values; None where nobody judges."""
    needs: str = ""
    """What would be needed to judge, where nobody does."""


@dataclass(frozen=True, eq=False)
class JudgeInputs:
    """What judges are made of."""

    task: str
    """The data set's name."""
    near: NearData
    """The training split."""
    val: Trajectories
    """The split that queries are rows of."""
    world: TaskWorld
    """The environment, as far as there is one."""
    runs: Path | None
    """Folder of trained runs."""
    config: CheckConfig = field(default_factory=CheckConfig)
    """Sizes, horizon and discount."""


def best_judge(given: JudgeInputs) -> str:
    """The best judge that a task has: exact, else rollouts, else a reference ensemble."""
    if given.world.goals and knows_ways(given.task):
        return EXACT
    if given.world.make is not None:
        return ROLLOUTS
    return REFERENCE if given.world.goals and _reference_runs(given) else NOBODY


def judge_of(text: str, given: JudgeInputs) -> Judge:
    """The judge that ``--judge`` names."""
    if text == EXACT:
        return _exact(given)
    if text == ROLLOUTS:
        return _rollouts(given)
    if text == REFERENCE:
        return _reference(given)
    if text == NOBODY:
        needs = (
            "an environment (--env FILE.py:make or gymnasium:ID), or values of the candidates in a "
            "file (--judge FILE.npz)"
        )
        return Judge(NOBODY, "nobody judged", None, needs)
    return _of_file(Path(text).expanduser(), text)


def _goes_on(given: JudgeInputs, queries: FrozenQueries) -> GoesOn:
    """Who goes on after a judged action: see `_who_goes_on`."""
    if folder := _model_goes_on(given):
        return BehaviourModel(folder, given.task, given.near.data, given.config.seed).act
    return given.world.goes_on(given.near, queries.goals, given.config.near)


def _model_goes_on(given: JudgeInputs) -> Path | None:
    """The behaviour model that goes on, where there is one and the environment has no policy."""
    if given.world.act is not None or not given.world.goals:
        return None
    return behaviour_folder(given.runs, given.task)


def _who_goes_on(given: JudgeInputs) -> str:
    if _model_goes_on(given):
        return "the trained behaviour model goes on"
    return given.world.who_goes_on


def _exact(given: JudgeInputs) -> Judge:
    if not given.world.goals or not knows_ways(given.task):
        raise InputError(
            f"{option('judge', EXACT)}: the exact value is known of PointMaze without teleports "
            f"alone, and not of {given.task}: leave it out, or choose another judge."
        )
    gamma = given.config.gamma

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        args = (queries.states, candidates, queries.goals, gamma, tick)
        return JudgedValues(exact_values(given.task, *args)[None])

    says = f"{gamma:g} to the power of the fewest steps to the goal in the task's own dynamics"
    return Judge(EXACT, says, value)


def _rollouts(given: JudgeInputs) -> Judge:
    make, config = given.world.make, given.config
    if make is None:
        raise InputError(
            f"{option('judge', ROLLOUTS)} needs an environment, and {given.world.lacks}: name one "
            f"with {option('env')}."
        )
    rules = WalkRules(config.horizon, config.gamma)
    repeats = config.repeats or (2 if _model_goes_on(given) else 1)

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        goals = queries.goals if given.world.goals else None
        starts = WalkStarts(given.val, queries.rows, goals)
        args = (candidates, _goes_on(given, queries), rules, repeats, tick)
        return JudgedValues(candidate_returns(make, starts, *args))

    what = "discounted success" if given.world.goals else "discounted return"
    says = f"{what} within {config.horizon} steps, when after it {_who_goes_on(given)}"
    return Judge(ROLLOUTS, says, value)


def _reference_runs(given: JudgeInputs) -> list[Path]:
    """The runs that judge, if all are there."""
    if given.runs is None:
        return []
    home = given.runs / given.task / REFERENCE_CRITIC
    found = [run_folder(home, seed) for seed in REFERENCE_SEEDS]
    return found if all((folder / RECORD).is_file() for folder in found) else []


def _reference(given: JudgeInputs) -> Judge:
    if not given.world.goals or not _reference_runs(given):
        raise InputError(
            f"{option('judge', REFERENCE)} needs {option('runs')} with "
            f"{given.task}/{REFERENCE_CRITIC}/seed-{REFERENCE_SEEDS[0]} to {REFERENCE_SEEDS[-1]}: "
            f"train {REFERENCE_CRITIC} with these seeds, or choose another judge."
        )
    from toptail.lab.training.runs import require_data

    assert given.runs is not None
    home, data = given.runs / given.task / REFERENCE_CRITIC, given.near.data
    members = [each for seed in REFERENCE_SEEDS for each in of_run(home, seed, given.task)]
    for member in members:
        require_data(member.origin["run"], member.origin["data"], data.source, data.sha256)

    def value(queries: FrozenQueries, candidates: FloatArray, tick: Share) -> JudgedValues:
        scored = []
        for i, member in enumerate(members):
            scored.append(score_pools(member.score, queries, candidates))
            tick((i + 1) / len(members))
        values = np.stack(scored)
        rng = np.random.default_rng(given.config.seed)
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
                f"in pools.npz, which {option('judge', NOBODY)} writes for one kind of "
                f"{option('pools')}."
            )
        tick(1.0)
        return JudgedValues(stack)

    return Judge("file", f"what {path.name} says", value)
