"""Live diagnostics: how a critic in training does on held-out triples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.base import Critic, Params
from toptail.lab.critics.networks import norm
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

    def read(self, critic: Critic, params: Params) -> list[dict[str, float]]:
        """Diagnostics of each row of stacked parameters.

        ``tau`` is Kendall's tau_b of the deployed score with gamma^d (NaN where all scores are
        equal); ``phi_norm`` and ``psi_norm`` are mean lengths of the embeddings, where the
        critic has any.
        """
        found = _reader(critic)(params, self.states, self.actions, self.goals)
        host = {name: np.asarray(values, np.float64) for name, values in found.items()}
        scores = host.pop("score")
        tau = kendall_tau_b(scores, np.broadcast_to(self.value, scores.shape))
        means = {"tau": tau, **host}
        return [{k: float(v[i]) for k, v in means.items()} for i in range(len(scores))]


_Reader: TypeAlias = Callable[[Params, Rows, Rows, Rows], dict[str, jax.Array]]


@lru_cache(maxsize=16)
def _reader(critic: Critic) -> _Reader:
    """Scores [n] and mean norms of one parameter tree, compiled for a stack of them.

    One after another rather than side by side: a wider product rounds differently, and a seed's
    curve must not depend on which others it trains with.
    """
    embed = getattr(critic, "embed", None)

    def read(
        params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        found = {"score": critic.score(params, states, actions, goals)}
        if embed is not None:
            both = embed(params, states, actions, goals)
            found["phi_norm"] = jnp.mean(norm(both.phi.astype(jnp.float32)))
            found["psi_norm"] = jnp.mean(norm(both.psi.astype(jnp.float32)))
        return found

    def read_all(params: Params, *rows: jax.Array) -> dict[str, jax.Array]:
        found: dict[str, jax.Array] = jax.lax.map(lambda own: read(own, *rows), params)
        return found

    return jax.jit(read_all)
