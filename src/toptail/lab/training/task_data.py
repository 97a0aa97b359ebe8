"""A data set as a training session wants it: rows on the device, and a held-out probe."""

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

SEARCHED = 64
"""K of the regret that is logged, where a probe has so many triples."""

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
    """[n, goal_dim] a goal of another trajectory for each; None where there is but one."""

    @classmethod
    def draw(cls, val: Trajectories, gamma: float, size: int = PROBE_SIZE) -> Probe:
        """Draw the triples as the paper does, from a generator of their own."""
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
        """Diagnostics of each row of stacked parameters.

        Of a learner with a score: ``tau``, Kendall's tau_b with gamma^d (NaN where all scores are
        equal); ``auc``, how well it tells goals from those of other trajectories; ``regret_K``, the
        normalized regret of the best of K of these triples by score (0: by gamma^d itself, 1: at
        random). The others are the scalars that the learner gives of held-out rows.
        """
        found = _reader(learner)(params, self.states, self.actions, self.goals)
        host = {name: np.asarray(values, np.float64) for name, values in found.items()}
        means = {}
        if "score" in host:
            scores = host.pop("score")
            means["tau"] = kendall_tau_b(scores, np.broadcast_to(self.value, scores.shape))
            means |= self._searched(scores) | self._told_apart(learner, params, scores)
        rows = len(jax.tree.leaves(params)[0])
        return [{k: float(v[i]) for k, v in (means | host).items()} for i in range(rows)]

    def _searched(self, scores: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Regret of the best of K; a score that is not finite has none."""
        k = min(SEARCHED, scores.shape[1])
        finite = np.isfinite(scores).all(axis=1)
        picked = np.full(len(scores), np.nan)
        if finite.any():
            values = np.broadcast_to(self.value, scores[finite].shape)
            picked[finite] = best_of_k(scores[finite], values, [k])[:, 0]
        best = oracle(self.value[None], [k])[0, 0]
        return {f"regret_{k}": (best - picked) / (best - self.value.mean())}

    def _told_apart(
        self, learner: Learner, params: Params, scores: NDArray[np.float64]
    ) -> dict[str, NDArray[np.float64]]:
        """AUC of true goals against goals of other trajectories, in a pass of its own."""
        if self.others is None:
            return {}
        found = _reader(learner)(params, self.states, self.actions, self.others)["score"]
        both = np.concatenate([scores, np.asarray(found, np.float64)], axis=1)
        true = np.arange(both.shape[1]) < scores.shape[1]
        return {"auc": np.array([auc(row, true) for row in both])}


@lru_cache(maxsize=16)
def _reader(learner: Learner) -> Callable[..., dict[str, jax.Array]]:
    """What one parameter tree gives of held-out rows, compiled for a stack of them.

    One after another rather than side by side: a wider product rounds differently, and a seed's
    curve must not depend on which others it trains with.
    """
    return jax.jit(
        lambda params, *rows: jax.lax.map(lambda own: learner.held_out(own, *rows), params)
    )


@dataclass(frozen=True, eq=False)
class TaskData:
    """Shared by all critics and seeds of a task."""

    rows: OfflineData
    """The training split, on the device."""

    probe: Probe
    """Triples of the validation split."""

    sha256: str
    """Hash of the training split's content."""

    val_sha256: str
    """Hash of the validation split's content."""

    source: str
    """Where the training split came from."""

    @classmethod
    def place(
        cls,
        dataset: Dataset,
        configs: Iterable[LearnerConfig] = (),
        seeds: int = 1,
        gamma: float = GAMMA,
    ) -> TaskData:
        """Put a data set on the device, if it fits there together with the largest training.

        ``configs`` will be trained on it one at a time, each with so many ``seeds``; ``gamma`` is
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
