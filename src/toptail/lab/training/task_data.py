"""A data set for training: rows on the device, and a held-out probe for the metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.critics.base import Learner, Params
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import GAMMA, TooFewTrajectoriesError, negatives, sample_triples
from toptail.lab.training.config import LearnerConfig
from toptail.lab.training.offline import OfflineData, device_data
from toptail.lab.training.programs import (
    check_fits,
    data_shapes,
    free_bytes,
    state_shapes,
    tree_bytes,
    width,
)
from toptail.stats import auc, best_of_k, kendall_tau_b, oracle

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
    """Hash of the training split's content."""
    val_sha256: str
    """Hash of the validation split's content."""
    source: str
    """Path of the training split."""

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
