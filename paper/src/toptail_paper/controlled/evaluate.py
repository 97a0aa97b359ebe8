"""What is read from a trained critic: scores on the shared pools, curves, retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.base import Critic, Params, TrainedCritic
from toptail.lab.critics.embedding import EmbeddingCritic, capped_score
from toptail.lab.critics.networks import norm
from toptail.stats import best_of_k, oracle, paired_win_rate
from toptail.stats.best_of_k import Floats as Floats
from toptail_paper.controlled.config import NOISE_SIGMA, StudyConfig
from toptail_paper.controlled.world import (
    ACTION_DIM,
    ControlledWorld,
    Queries,
    Transitions,
    clipped_gaussian,
    exact_value,
    on_support,
    sample_data,
    sample_queries,
)

Scores = NDArray[np.float32]
Rows = tuple[jax.Array, jax.Array, jax.Array]

QUERIES_AT_ONCE = 20
"""Queries whose candidates are scored in one block."""

NEGATIVES = 10
"""Random goals that each held-out pair's own goal is compared with."""

CAP_QUANTILE = 0.99
"""Quantile of the in-support ||phi|| that the norm is capped at."""


@dataclass(frozen=True)
class Pools:
    """The queries and candidates that every critic of one world is scored on."""

    queries: Queries
    """m decision points."""
    actions: Floats
    """[m, n, 2] candidates."""
    value: Floats
    """[m, n] exact value."""
    value_noisy: Floats
    """[m, n] exact value under transition noise."""
    support: NDArray[np.bool_]
    """[m, n] whether the candidate lies on the support."""
    heldout: Transitions
    """Pairs that no critic was trained on."""

    @classmethod
    def draw(cls, config: StudyConfig, world: ControlledWorld) -> Pools:
        """Draw queries, then candidates, then held-out pairs."""
        rng = np.random.default_rng([config.pool_seed, 0])
        queries = sample_queries(world, config.queries, rng)
        scale = world.proposal_scale * world.radius
        actions = clipped_gaussian(config.queries, config.pool, ACTION_DIM, scale, world.box, rng)
        noisy = ControlledWorld(radius=world.radius, box=world.box, sigma=NOISE_SIGMA)
        states, goals = queries.states[:, None], queries.goals[:, None]
        return cls(
            queries,
            actions,
            exact_value(world, states, actions, goals),
            exact_value(noisy, states, actions, goals),
            on_support(world, actions),
            sample_data(world, config.heldout, rng),
        )

    def rows(self) -> tuple[Scores, Scores, Scores]:
        """States [m, 1, 2], actions [m, n, 2] and goals [m, 1, 2] in float32."""
        states, goals = self.queries.states[:, None], self.queries.goals[:, None]
        return states.astype(np.float32), self.actions.astype(np.float32), goals.astype(np.float32)


@lru_cache(maxsize=64)
def _reader(critic: Critic) -> Any:
    """One compiled function (params, rows, caps) for all readouts, a few queries at a time."""

    def read(params: Params, rows: Rows, caps: dict[str, jax.Array]) -> dict[str, jax.Array]:
        def some(part: Rows) -> dict[str, jax.Array]:
            scores = {name: f(params, *part) for name, f in critic.readouts().items()}
            if isinstance(critic, EmbeddingCritic):
                e = critic.embed(params, *part)
                scores |= {name: capped_score(e, cap) for name, cap in caps.items()}
            return scores

        # Blocks that fit the processor's cache are several times faster than all rows at once.
        scores: dict[str, jax.Array] = jax.lax.map(some, rows, batch_size=QUERIES_AT_ONCE)
        return scores

    return jax.jit(read)


@lru_cache(maxsize=64)
def _phi_norms(critic: EmbeddingCritic) -> Any:
    """A compiled function (params, states, actions, goals) -> ||phi|| [members, ...]."""
    return jax.jit(lambda params, *rows: norm(critic.embed(params, *rows).phi))


def read_scores(critic: Critic, params: Params, pools: Pools) -> dict[str, Scores]:
    """Every readout on the pools [m, n]; for embedding critics also the norm-capped scores.

    ``capped`` cuts ||phi|| at the 99th percentile over the in-support candidates of the pools,
    ``capped_data`` at that over the held-out data, whose states lie anywhere.
    """
    caps: dict[str, Scores] = {}
    if isinstance(critic, EmbeddingCritic):
        whole = np.broadcast_arrays(*pools.rows())
        at_query = tuple(x[pools.support] for x in whole)
        for name, rows in {"capped": at_query, "capped_data": pools.heldout[:3]}.items():
            lengths = _phi_norms(critic)(params, *(x.astype(np.float32) for x in rows))
            caps[name] = np.quantile(lengths, CAP_QUANTILE, axis=1).astype(np.float32)
    scores = _reader(critic)(params, pools.rows(), caps)
    return {name: np.asarray(x) for name, x in scores.items()}


def norm_readout(critic: Critic) -> str:
    """The readout that stands for the length of the critic's representation."""
    return "phi_norm" if isinstance(critic, EmbeddingCritic) else "feature_norm"


def selection_curves(
    score: Scores, length: Scores, pools: Pools, k: tuple[int, ...]
) -> dict[str, Floats]:
    """Exact best-of-K of every column, per query: metric -> [m, len(k)]."""
    columns = {
        "selected_score": score,
        "phi_norm": length,
        "value": pools.value,
        "off_support": ~pools.support,
        "mean_norm": np.linalg.norm(pools.actions, axis=-1),
    }
    stack = np.stack([column.astype(np.float64) for column in columns.values()])
    curves = dict(zip(columns, best_of_k(score, stack, k), strict=True))
    curves["regret"] = oracle(pools.value, k) - curves["value"]
    return curves


def heldout_scores(
    critic: Critic, params: Params, readout: str, pools: Pools
) -> tuple[Scores, Scores]:
    """Scores of held-out pairs with their own goal [h] and with other pairs' goals [h, 10]."""
    states, actions, goals = (x.astype(np.float32) for x in pools.heldout[:3])
    # Shifting the goals by 1, 2, ... rows gives each pair goals drawn independently of it.
    others = np.stack([np.roll(goals, shift, axis=0) for shift in range(NEGATIVES + 1)], axis=1)
    scores = TrainedCritic(critic, params, readout).score(states[:, None], actions[:, None], others)
    return scores[:, 0], scores[:, 1:]


def retrieval_auc(critic: Critic, params: Params, readout: str, pools: Pools) -> float:
    """How often a held-out pair's own goal scores above a random goal; 0.5 is chance."""
    own, others = heldout_scores(critic, params, readout, pools)
    return float(paired_win_rate(own[:, None], others).mean())
