"""Live diagnostics: how a critic in training does on held-out triples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.learner import Learner, Params
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.tasks.triples import sample_triples
from toptail.stats import kendall_tau_b

PROBE_SIZE = 1024
"""Triples of a probe: enough for tau to two digits, and a small part of a step's work."""

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

    @classmethod
    def draw(cls, val: Trajectories, gamma: float, size: int = PROBE_SIZE) -> Probe:
        """Draw the triples as the paper does, from a generator of their own."""
        triples = sample_triples(val, size, np.random.default_rng(0), gamma=gamma)
        return cls(
            val.observations[triples.rows].astype(np.float32),
            val.actions[triples.rows].astype(np.float32),
            val.observations[triples.goal_rows].astype(np.float32),
            triples.value,
        )

    def read(self, learner: Learner, params: Params) -> list[dict[str, float]]:
        """Diagnostics of each row of stacked parameters.

        ``tau`` is Kendall's tau_b of the score, if the learner has one, with gamma^d (NaN where
        all scores are equal); the others are the scalars that it gives of held-out rows.
        """
        found = _reader(learner)(params, self.states, self.actions, self.goals)
        host = {name: np.asarray(values, np.float64) for name, values in found.items()}
        means = {}
        if "score" in host:
            scores = host.pop("score")
            means["tau"] = kendall_tau_b(scores, np.broadcast_to(self.value, scores.shape))
        rows = len(jax.tree.leaves(params)[0])
        return [{k: float(v[i]) for k, v in (means | host).items()} for i in range(rows)]


@lru_cache(maxsize=16)
def _reader(learner: Learner) -> Callable[..., dict[str, jax.Array]]:
    """What one parameter tree gives of held-out rows, compiled for a stack of them.

    One after another rather than side by side: a wider product rounds differently, and a seed's
    curve must not depend on which others it trains with.
    """
    return jax.jit(
        lambda params, *rows: jax.lax.map(lambda own: learner.held_out(own, *rows), params)
    )
