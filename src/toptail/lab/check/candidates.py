"""The queries of a check, and the sources of candidates at queries and at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from toptail.errors import InputError, option
from toptail.io.arrays import read_arrays
from toptail.lab.check.config import ASCENT, BEHAVIOUR, NEAREST, SOURCES, UNIFORM, CheckConfig
from toptail.lab.proposals.untrained import (
    CandidateSource,
    NearActions,
    NearData,
    UniformActions,
    generators,
)
from toptail.lab.store.units import one_of
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
        from toptail.lab.training.run_files import read_run
        from toptail.lab.training.runs import require_data

        require_data(folder, read_run(folder).record["data"]["train"], data.source, data.sha256)
        self._policy, self._key = load_policy(folder, task), jax.random.key(seed)
        self._seed = seed

    def pool(self, queries: FrozenQueries, count: int) -> FloatArray:
        """Ancestral samples for each query: ``[Q, count, a]``."""
        return self._policy.sample(self._key, queries.states, queries.goals, count)

    def draw(self, keys: IntArray, states: FloatArray, goals: FloatArray, count: int) -> FloatArray:
        """Noisy copies of one sample for each state."""
        base, drawn = self.act(keys, states, goals), generators(self._seed, keys)
        noise = np.stack([rng.normal(0.0, NOISE, (count, base.shape[1])) for rng in drawn])
        return np.clip(base[:, None] + noise, -1.0, 1.0).astype(np.float32)

    def act(self, keys: IntArray, states: FloatArray, goals: FloatArray) -> FloatArray:
        """One sample for each state."""
        from toptail.lab.proposals.denoiser import row_keys

        own = row_keys(self._key, *keys.reshape(len(keys), -1).T)
        steps = min(DDIM_STEPS, self._policy.model.schedule.levels)
        return self._policy.sample_rows(own, states, goals, steps)


def behaviour_folder(runs: Path | None, task: str) -> Path | None:
    """The run of the task's behaviour model; None without one."""
    if runs is None:
        return None
    from toptail.lab.training.run_files import RECORD, run_folder

    folder = run_folder(runs / task / "diffusion", POLICY_SEED)
    return folder if (folder / RECORD).is_file() else None


def source_of(
    text: str, data: NearData, task: str, runs: Path | None, config: CheckConfig
) -> Source:
    """The source that ``--pools`` names."""
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
    return _of_file(Path(text).expanduser(), text)


def _of_file(path: Path, text: str) -> Source:
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
