"""Queries, candidates and judges of a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, option
from toptail.io.arrays import one_of, read_arrays
from toptail.lab.check.closed_loop import TaskEnvironment
from toptail.lab.check.inputs import (
    ASCENT,
    BEHAVIOUR,
    EXACT,
    JUDGES,
    NEAREST,
    NO_JUDGE,
    REFERENCE,
    ROLLOUTS,
    SOURCES,
    UNIFORM,
    CheckConfig,
)
from toptail.lab.environments.rollout import RolloutRules, RolloutStarts
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.point import is_point_maze
from toptail.lab.judges.reference import REFERENCE_CRITIC, admission
from toptail.lab.judges.rollouts import ContinuationPolicy, candidate_returns
from toptail.lab.proposals.untrained import (
    CandidateSource,
    NearActions,
    NearData,
    UniformActions,
    generators,
)
from toptail.lab.scorers.base import Score, score_each
from toptail.lab.tasks.queries import FrozenQueries, QueryConfig, freeze_queries, group_bounds
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories

EVERY = "all"
"""The group of queries without goals."""
GROUPS = 3
"""Distance groups; without goals there are as many queries in one."""

POLICY_SEED = 42
"""Seed of the behaviour model's run."""
NOISE = 0.3
"""Standard deviation of the copies of a behaviour model's sample at every step: drawing each
candidate by itself would take K times as long."""
DDIM_STEPS = 10
"""Steps of the behaviour model's sampler inside episodes and rollouts."""


def check_queries(val: Trajectories, count: int, seed: int, *, goals: bool) -> FrozenQueries:
    """Draw ``count`` queries of each distance group; as many in all where there are no goals."""
    if not goals:
        return _states(val, GROUPS * count, seed)
    return freeze_queries(val, QueryConfig(per_group=count, seed=seed, **group_bounds(val)))


def _states(val: Trajectories, count: int, seed: int) -> FrozenQueries:
    """Rows with a transition, drawn uniformly, with goals of no numbers."""
    able = val.transitions
    rng = np.random.default_rng(seed)
    rows = rng.choice(able, size=count, replace=len(able) < count)
    return FrozenQueries(
        states=val.observations[rows],
        actions=val.actions[rows],
        goals=np.zeros((count, 0), np.float32),
        rows=rows,
        goal_rows=rows,
        trajectory=val.trajectory[rows],
        group=np.full(count, EVERY),
        config=QueryConfig(per_group=count, seed=seed),
        data_sha256=val.sha256,
    )


@dataclass(frozen=True, eq=False)
class Source:
    """A source of candidates."""

    name: str
    """``nearest``, ``uniform``, ``behaviour``, ``ascent`` or ``file``."""
    says: str
    """Its candidates, in words."""
    pool: Callable[[FrozenQueries, int], FloatArray]
    """(queries, size) -> candidates ``[Q, size, a]``."""
    along: CandidateSource | None
    """Candidates at any state; None for a file, which has those of the queries alone."""
    first: str = ""
    """Which policy takes the first candidate at every step, as K = 1 does."""

    @property
    def ascends(self) -> bool:
        """Whether each critic's maximizer is compared with its best of K."""
        return self.name == ASCENT


class BehaviourModel:
    """A trained diffusion model: its own samples at queries, noisy copies of one at every step."""

    def __init__(self, folder: Path, task: str, data: Trajectories, seed: int) -> None:
        import jax  # only here: other candidates need no JAX

        from toptail.lab.proposals.diffusion import load_policy
        from toptail.lab.training.runs import read_run, require_data

        require_data(folder, read_run(folder).record["data"]["train"], data.source, data.sha256)
        self._policy, self._key = load_policy(folder, task), jax.random.key(seed)
        self._seed = seed

    def pool(self, queries: FrozenQueries, count: int) -> FloatArray:
        return self._policy.sample(self._key, queries.states, queries.goals, count)

    def draw(self, keys: IntArray, states: FloatArray, goals: FloatArray, count: int) -> FloatArray:
        """Noisy copies of one sample for each state."""
        base, drawn = self.act(keys, states, goals), generators(self._seed, keys)
        noise = np.stack([rng.normal(0.0, NOISE, (count, base.shape[1])) for rng in drawn])
        return np.clip(base[:, None] + noise, -1.0, 1.0).astype(np.float32)

    def act(self, keys: IntArray, states: FloatArray, goals: FloatArray) -> FloatArray:
        from toptail.lab.proposals.denoiser import row_keys

        own = row_keys(self._key, *keys.reshape(len(keys), -1).T)
        steps = min(DDIM_STEPS, self._policy.model.schedule.levels)
        return self._policy.sample_rows(own, states, goals, steps)


def behaviour_folder(runs: Path | None, task: str) -> Path | None:
    """The run of the task's behaviour model; None without one."""
    if runs is None:
        return None
    from toptail.lab.training.runs import RECORD, run_folder

    folder = run_folder(runs / task / "diffusion", POLICY_SEED)
    return folder if (folder / RECORD).is_file() else None


def source_of(
    text: str, data: NearData, task: str, runs: Path | None, config: CheckConfig
) -> Source:
    if text == NEAREST:
        count = min(config.near, len(data.rows))
        near = NearActions(data, count, config.seed)
        says = f"the data's actions at the {count} nearest states"
        return Source(text, says, _keyed(near), near, "a random nearby action of the data")
    if text in (UNIFORM, ASCENT):
        box = UniformActions(data.data.actions.shape[1], config.seed)
        says = "the whole action box"
        says += ", and the action that maximizes the score in it" if text == ASCENT else ""
        return Source(text, says, _keyed(box), box, "a random policy")
    if text == BEHAVIOUR:
        folder = behaviour_folder(runs, task)
        if folder is None:
            raise InputError(
                f"{option('pools', text)} needs a trained behaviour model: give {option('runs')} a "
                f"folder with {task}/diffusion/seed-{POLICY_SEED}, which "
                f"'toptail train --critics diffusion' makes."
            )
        model = BehaviourModel(folder, task, data.data, config.seed)
        says, first = (
            "samples of a trained behaviour model",
            "a noisy sample of the behaviour model",
        )
        return Source(text, says, model.pool, model, first)
    return _candidates_of_file(Path(text).expanduser(), text)


def _candidates_of_file(path: Path, text: str) -> Source:
    if path.suffix != ".npz":
        raise InputError(
            f"{option('pools', text)}: expected {', '.join(SOURCES)}, or a file FILE.npz."
        )
    actions = one_of(path, read_arrays(path), "actions")

    def pool(queries: FrozenQueries, size: int) -> FloatArray:
        wanted = (len(queries), size, queries.actions.shape[1])
        if actions.shape != wanted or actions.dtype.kind != "f":
            raise InputError(
                f"{path}: 'actions' is {actions.dtype} of shape {actions.shape}, expected numbers "
                f"of shape {wanted}: candidates for the states of queries.npz, in its order."
            )
        if not (np.abs(actions) <= 1).all():
            raise InputError(f"{path}: 'actions' must be finite and within ±1.")
        return actions.astype(np.float32)

    return Source("file", f"those of {path.name}", pool, None)


def _keyed(source: CandidateSource) -> Callable[[FrozenQueries, int], FloatArray]:
    def pool(queries: FrozenQueries, size: int) -> FloatArray:
        keys = np.arange(len(queries))[:, None]
        return source.draw(keys, queries.states, queries.goals, size)

    return pool


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
    near: NearData
    val: Trajectories
    """The split of which queries are rows."""
    environment: TaskEnvironment
    runs: Path | None
    config: CheckConfig = field(default_factory=CheckConfig)

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
        from toptail.lab.training.runs import RECORD, run_folder

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
    makers = {EXACT: _exact, ROLLOUTS: _rollouts, REFERENCE: _reference, NO_JUDGE: _none}
    make = makers.get(text)
    return _judge_of_file(Path(text).expanduser(), text) if make is None else make(inputs)


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


def _judge_of_file(path: Path, text: str) -> Judge:
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
