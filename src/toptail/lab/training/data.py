"""Training data on the device: rows, batches with their goals, and held-out triples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.base import Batch, Learner, Params
from toptail.lab.critics.bellman import Reward
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import GAMMA, TooFewTrajectoriesError, negatives, sample_triples
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.loop import (
    check_fits,
    free_bytes,
    state_shapes,
    tree_bytes,
    width,
)
from toptail.stats import auc, best_of_k, kendall_tau_b, oracle


class OfflineData(NamedTuple):
    """A data set's rows as device arrays."""

    observations: jax.Array
    """[rows, o] float32"""
    actions: jax.Array
    """[rows, a] float32"""
    last: jax.Array
    """[rows] int32: the last row of each row's trajectory."""
    transitions: jax.Array
    """[transitions] int32: rows that have a next row."""
    extra: jax.Array | None = None
    """[rows, k] further numbers of each row, for `Learner.further`: see `TaskData.with_extra`."""

    @property
    def states(self) -> jax.Array:
        """The observations, under the name that `init_state` reads their width by."""
        return self.observations

    @property
    def goals(self) -> jax.Array:
        return self.observations


def device_data(trajectories: Trajectories) -> OfflineData:
    if len(trajectories) > np.iinfo(np.int32).max:
        raise InputError(
            f"{trajectories.source} has {len(trajectories):,} rows: too many to index."
        )
    last = trajectories.ends[trajectories.trajectory]
    return OfflineData(
        jnp.asarray(trajectories.observations, jnp.float32),
        jnp.asarray(trajectories.actions, jnp.float32),
        jnp.asarray(last, jnp.int32),
        jnp.asarray(trajectories.transitions, jnp.int32),
    )


def data_shapes(trajectories: Trajectories) -> OfflineData:
    """The shapes that a data set will have on the device."""
    rows = len(trajectories)

    def shape(dtype: Any, *dims: int) -> Any:
        return jax.ShapeDtypeStruct(dims, dtype)

    return OfflineData(
        observations=shape(jnp.float32, rows, *trajectories.observations.shape[1:]),
        actions=shape(jnp.float32, rows, *trajectories.actions.shape[1:]),
        last=shape(jnp.int32, rows),
        transitions=shape(jnp.int32, len(trajectories.transitions)),
    )


class Drawn(NamedTuple):
    """Drawn rows of the data set, each [size]."""

    row: jax.Array
    goal: jax.Array
    value_goal: jax.Array
    anywhere: jax.Array
    """Rows of any trajectory, independent of the transition."""


@dataclass(frozen=True)
class GoalSampling:
    """How transitions and their goals are drawn; an instance is a sampler for the trainer.

    The contrastive positive is a future state of the same trajectory at a geometric distance.
    The value goal is the current state, a future state or a random state of the data set. No
    goal lies beyond the trajectory's end, and the last row of a trajectory, whose action leads
    nowhere, is never drawn as a transition.
    """

    gamma: float = 0.99
    """Discount; a geometric distance d has P(d) = (1 - gamma) gamma^(d - 1), d = 1, 2, ..."""
    current: float = 0.2
    """Share of value goals that are the current state (reward and end of episode at once)."""
    future: float = 0.5
    """Share of value goals that are a future state; the rest are random states."""
    uniform_future: bool = False
    """Whether the future value goals are uniform over the rest of the trajectory, not geometric."""
    reward: Reward = "-1/0"
    """The reward that value goals give."""
    positive_gamma: float | None = None
    """Discount of the distance of contrastive positives; ``gamma`` by default."""
    positive_window: int | None = None
    """If given, contrastive positives are uniform over distances 1, 2, ... up to this one, within
    the trajectory, as evaluation triples are; by default they are geometric."""

    def __post_init__(self) -> None:
        if self.positive_gamma is not None and not 0 < self.positive_gamma < 1:
            raise InputError(
                f"{option('positive_gamma', self.positive_gamma)} must lie between 0 and 1."
            )
        if self.positive_window is not None:
            check_whole("positive_window", self.positive_window, 1)
            if self.positive_gamma is not None:
                raise InputError(
                    f"{option('positive_window')} and {option('positive_gamma')} are both given: "
                    "positives are uniform or geometric, so leave one out."
                )
        if not 0 < self.gamma < 1 or min(self.current, self.future) < 0:
            raise InputError(
                "gamma must lie between 0 and 1, and goal shares must not be negative."
            )
        if self.current + self.future > 1:
            raise InputError(
                f"Goal shares {self.current:g} (current) and {self.future:g} (future) add up to "
                "more than 1."
            )

    def rows(self, key: jax.Array, data: OfflineData, size: int) -> Drawn:
        """Draw rows [size] of transitions, and of goals for them."""
        k_row, k_goal, k_future, k_random, k_kind = jax.random.split(key, 5)
        row = data.transitions[jax.random.randint(k_row, (size,), 0, data.transitions.shape[0])]
        last = data.last[row]
        if self.positive_window is not None:
            near = _uniform_distance(k_goal, jnp.minimum(last - row, self.positive_window))
        else:
            discount = self.gamma if self.positive_gamma is None else self.positive_gamma
            near = _distance(k_goal, size, discount)
        goal = jnp.minimum(row + near, last)
        if self.uniform_future:
            far = _uniform_distance(k_future, last - row)
        else:
            far = _distance(k_future, size, self.gamma)
        future = jnp.minimum(row + far, last)
        anywhere = jax.random.randint(k_random, (size,), 0, data.observations.shape[0])
        kind = jax.random.uniform(k_kind, (size,))
        value = jnp.where(kind < self.current + self.future, future, anywhere)
        return Drawn(row, goal, jnp.where(kind < self.current, row, value), anywhere)

    def __call__(self, key: jax.Array, data: OfflineData, size: int) -> Batch:
        row, goal, value_goal, anywhere = self.rows(key, data, size)
        reached = (row == value_goal).astype(jnp.float32)
        return Batch(
            states=data.observations[row],
            actions=data.actions[row],
            goals=data.observations[goal],
            rewards=reached - 1.0 if self.reward == "-1/0" else reached,
            value_goals=data.observations[value_goal],
            next_states=data.observations[row + 1],
            masks=1.0 - reached,
            offsets=(goal - row).astype(jnp.float32),
            next_goals=data.observations[row + 1],
            random_goals=data.observations[anywhere],
            rows=row,
            goal_rows=goal,
            value_goal_rows=value_goal,
        )


def _distance(key: jax.Array, size: int, gamma: float) -> jax.Array:
    """Geometric distances by inversion: ceil(log(1 - u) / log(gamma)), at least 1."""
    u = jax.random.uniform(key, (size,))
    steps = jnp.ceil(jnp.log1p(-u) / jnp.log(gamma))
    return jnp.maximum(steps, 1).astype(jnp.int32)


def _uniform_distance(key: jax.Array, longest: jax.Array) -> jax.Array:
    """Distances uniform over 1, 2, ..., ``longest``, for each ``[size]``."""
    rest = longest.astype(jnp.float32)
    return 1 + jnp.floor(jax.random.uniform(key, longest.shape) * rest).astype(jnp.int32)


PROBE_SIZE = 1024
"""Triples of a probe: enough for tau to two digits, and a small part of a step's work."""

REGRET_K = 64
"""K of the logged regret; fewer where the probe has fewer triples."""

Rows: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Probe:
    """Triples of the validation split, the same for every critic and seed of a task."""

    states: Rows
    """[n, state_dim]"""
    actions: Rows
    """[n, action_dim]"""
    goals: Rows
    """[n, goal_dim]"""
    value: NDArray[np.float64]
    """[n] return-to-go gamma^d of each goal."""
    others: Rows | None
    """[n, goal_dim] a goal of another trajectory for each; None for a single trajectory."""

    @classmethod
    def draw(cls, val: Trajectories, gamma: float, size: int = PROBE_SIZE) -> Probe:
        """Draw the triples with a fixed seed: see `sample_triples`."""
        triples = sample_triples(val, size, np.random.default_rng(0), gamma=gamma)
        try:
            elsewhere = negatives(triples, 1, np.random.default_rng(1))[:, 0]
            others = val.observations[elsewhere].astype(np.float32)
        except TooFewTrajectoriesError:
            others = None
        return cls(
            val.observations[triples.rows].astype(np.float32),
            val.actions[triples.rows].astype(np.float32),
            val.observations[triples.goal_rows].astype(np.float32),
            triples.value,
            others,
        )

    def read(self, learner: Learner, params: Params) -> list[dict[str, float]]:
        """Numbers to log for each row of stacked parameters.

        For a learner with a score: ``tau``, Kendall's tau_b with gamma^d (NaN where all scores are
        equal); ``auc``, of goals against goals of other trajectories; ``regret_K``, the normalized
        regret of the best of K triples by score (0: chosen by gamma^d itself, 1: at random). In
        addition, the scalars of the learner's ``held_out``.
        """
        found = _reader(learner)(params, self.states, self.actions, self.goals)
        host = {name: np.asarray(values, np.float64) for name, values in found.items()}
        means = {}
        if "score" in host:
            scores = host.pop("score")
            means["tau"] = kendall_tau_b(scores, np.broadcast_to(self.value, scores.shape))
            means |= self._regret(scores) | self._auc(learner, params, scores)
        rows = len(jax.tree.leaves(params)[0])
        return [{k: float(v[i]) for k, v in (means | host).items()} for i in range(rows)]

    def _regret(self, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Normalized regret of the best of K; NaN where a score is not finite."""
        k = min(REGRET_K, scores.shape[1])
        finite = np.isfinite(scores).all(axis=1)
        picked = np.full(len(scores), np.nan)
        if finite.any():
            values = np.broadcast_to(self.value, scores[finite].shape)
            picked[finite] = best_of_k(scores[finite], values, [k])[:, 0]
        best = oracle(self.value[None], [k])[0, 0]
        return {f"regret_{k}": (best - picked) / (best - self.value.mean())}

    def _auc(
        self, learner: Learner, params: Params, scores: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """AUC of own goals against goals of other trajectories."""
        if self.others is None:
            return {}
        found = _reader(learner)(params, self.states, self.actions, self.others)["score"]
        both = np.concatenate([scores, np.asarray(found, np.float64)], axis=1)
        true = np.arange(both.shape[1]) < scores.shape[1]
        return {"auc": np.array([auc(row, true) for row in both])}


@lru_cache(maxsize=16)
def _reader(learner: Learner) -> Callable[..., dict[str, jax.Array]]:
    """``learner.held_out`` of stacked parameters, compiled.

    The parameter trees are read one after another: a wider product rounds differently, and a
    seed's curve must not depend on the other seeds of its batch.
    """
    return jax.jit(
        lambda params, *rows: jax.lax.map(lambda own: learner.held_out(own, *rows), params)
    )


@dataclass(frozen=True, eq=False)
class TaskData:
    """The data of a task, shared by all critics and seeds."""

    rows: OfflineData
    """The training split, on the device."""
    probe: Probe
    """Triples of the validation split."""
    sha256: str
    val_sha256: str
    source: str
    extra: Mapping[str, str] = field(default_factory=dict)
    """Hash and origin of ``rows.extra``; empty without further numbers."""

    @classmethod
    def place(
        cls,
        dataset: Dataset,
        configs: Iterable[LearnerConfig] = (),
        seeds: int = 1,
        gamma: float = GAMMA,
    ) -> TaskData:
        """Put a data set on the device; refused if it does not fit with the largest training.

        ``configs`` will be trained on it one at a time, each with ``seeds`` seeds; ``gamma`` is
        the discount of the probe's return-to-go.
        """
        for split in (dataset.train, dataset.val):
            if split.observations.ndim != 2 or split.actions.ndim != 2:
                raise InputError(
                    f"{split.source} has observations of shape {split.observations.shape[1:]} and "
                    f"actions of shape {split.actions.shape[1:]}: critics train on vectors only."
                )
        shapes = data_shapes(dataset.train)
        states = [tree_bytes(state_shapes(c.training, width(seeds), shapes)) for c in configs]
        rows = len(dataset.train)
        what = f"Training {seeds} seeds at once on {rows:,} rows"
        check_fits(what, tree_bytes(shapes) + max(states, default=0), free_bytes())
        return cls(
            device_data(dataset.train),
            Probe.draw(dataset.val, gamma),
            dataset.train.sha256,
            dataset.val.sha256,
            dataset.train.source,
        )

    def with_extra(self, extra: NDArray[np.float32], **origin: str) -> TaskData:
        """The same data with further numbers of each training row [rows, k], such as embeddings.

        They change what a run learns: its record names their hash and ``origin`` with the data.
        """
        if len(extra) != len(self.rows.actions):
            raise InputError(
                f"There are {len(extra)} rows of further numbers for {len(self.rows.actions)} rows "
                f"of {self.source}: give one for each."
            )
        values = np.ascontiguousarray(extra, np.float32)
        named = {"sha256": hashlib.sha256(values.tobytes()).hexdigest(), **origin}
        return replace(self, rows=self.rows._replace(extra=jnp.asarray(values)), extra=named)
