"""All claims in one call, on one trained critic and its candidate pools."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from toptail.io.json_files import write_json
from toptail.lab.critics.base import Params
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail_paper.controlled.cells import training_data, unit_of
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.evaluate import Pools
from toptail_paper.controlled.theory.selection import (
    TwoSetWorld,
    boundedness_is_not_calibration,
    good_ranker_bad_objective,
    pick_regret,
    two_epsilon_bound,
    two_epsilon_is_tight,
    within_epsilon,
)
from toptail_paper.controlled.theory.support import (
    BadRegion,
    FloatArray,
    GoalMap,
    StateActionMap,
    StateActions,
    TheoryCheck,
    bilinear_scores,
    finite_inflation,
    inflate,
    off_support_nonidentifiability,
    positives_left_unordered,
    region_outside_disk,
)
from toptail_paper.controlled.trainings import cells_of
from toptail_paper.study.store import RunFolder

MARGIN = 100.0
"""M of the inflation construction: the score the bad region is lifted to."""
BAD_MASS = 0.05
"""p, the proposal mass of the bad set in the selection claims."""
KS = (1, 4, 16, 64, 256)
"""Pool sizes of the simulated selection claims."""
POOLS = 4000
"""Simulated pools per K."""
COSINE_GAP = 0.1
"""Delta of the bounded corollary: how far below the cap the support scores stay."""
EPSILON = 0.1
"""Size of the score errors in the two-epsilon bound."""
TRIALS = 50
"""Random score errors drawn per pool."""


def check_theory(
    phi: StateActionMap,
    psi: GoalMap,
    region: BadRegion,
    support: StateActions,
    goals: FloatArray,
    bad: StateActions,
    values: FloatArray,
    rng: np.random.Generator,
) -> list[TheoryCheck]:
    """Check every claim of the theory once.

    Parameters
    ----------
    phi, psi
        A trained bilinear critic: [n, s], [n, a] -> [n, d] and [m, g] -> [m, d].
    region
        The bad region B, with its distance from the support.
    support, goals
        A training batch: row i's positive is goal i.
    bad
        Samples of B.
    values
        Exact values of real candidate pools, [pools, k], for the two-epsilon bound.
    rng
        Source of every random draw.
    """

    def score(states: FloatArray, actions: FloatArray, at: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("nd,nd->n", phi(states, actions), psi(at)))

    def bump(states: FloatArray, actions: FloatArray, _at: FloatArray) -> FloatArray:
        lifted: FloatArray = MARGIN * region.bump(states, actions)
        return lifted

    few = slice(0, 64)  # 64 × 64 triples say as much as more would
    small = StateActions(support.states[few], support.actions[few])
    batch_scores = bilinear_scores(phi(small.states, small.actions), psi(goals[few]))
    negatives = batch_scores[0, 1:]
    top = float(negatives.max())
    return [
        off_support_nonidentifiability(score, bump, small, goals[few], bad),
        finite_inflation(phi, psi, region, support, bad, goals, MARGIN),
        good_ranker_bad_objective(TwoSetWorld(p=BAD_MASS), KS, POOLS, rng),
        boundedness_is_not_calibration(1.0, COSINE_GAP, BAD_MASS, KS, POOLS, rng),
        two_epsilon_bound(values, within_epsilon(values, EPSILON, TRIALS, rng), EPSILON),
        two_epsilon_is_tight(values, EPSILON),
        positives_left_unordered((top + 2.0, top + 1.0), negatives, (3.0, 30.0)),
    ]


CRITIC = "raw"
"""The unbounded bilinear critic, which the construction is about."""
GAP = 0.1
"""The bad region begins this far outside the support disk."""
ROWS = 256
"""Training pairs, and samples of the bad region, that the checks use."""
DIM = 2
"""Dimension of states, actions and goals."""


def embeddings(critic: EmbeddingCritic, params: Params) -> tuple[StateActionMap, GoalMap]:
    """Return phi(states, actions) and psi(goals) as NumPy functions.

    The score is the mean over the members' inner products, which is the inner product of the
    members' embeddings side by side, each divided by the root of their number.
    """
    embed = jax.jit(critic.embed)

    def joined(side: str, states: FloatArray, actions: FloatArray, goals: FloatArray) -> FloatArray:
        rows = [jnp.asarray(x, dtype=jnp.float32) for x in (states, actions, goals)]
        members: FloatArray = np.asarray(getattr(embed(params, *rows), side)).astype(np.float64)
        return np.concatenate(list(members / np.sqrt(len(members))), axis=-1)

    def phi(states: FloatArray, actions: FloatArray) -> FloatArray:
        return joined("phi", states, actions, np.zeros((1, DIM)))

    def psi(goals: FloatArray) -> FloatArray:
        return joined("psi", np.zeros((1, DIM)), np.zeros((1, DIM)), goals)

    return phi, psi


def write_theory(config: StudyConfig, out: str | Path) -> list[TheoryCheck]:
    """Check every claim on the first seed's raw critic and store ``theory.json``."""
    seed, world = config.seeds[0], config.world
    cell = cells_of(config, (CRITIC,))[0]
    assert isinstance(cell.critic, EmbeddingCritic)
    unit = unit_of(RunFolder(Path(out)), config, cell, seed, config.steps)
    phi, psi = embeddings(cell.critic, unit.params())
    pools = Pools.draw(config, world)
    data = training_data(config, world, seed)
    columns = [np.asarray(x[:ROWS], dtype=float) for x in (data.states, data.actions, data.goals)]
    support, goals = StateActions(columns[0], columns[1]), columns[2]
    far = np.linalg.norm(pools.actions, axis=-1) >= world.radius + GAP
    bad_actions = pools.actions[far][:ROWS]
    bad = StateActions(np.zeros_like(bad_actions), bad_actions)
    region = region_outside_disk(world.radius, GAP)
    rng = np.random.default_rng([config.pool_seed, 3])
    checks = check_theory(phi, psi, region, support, goals, bad, pools.value, rng)

    # What the construction would do to selection: the same loss, another pick.
    new_phi, new_psi, _ = inflate(phi, psi, region, bad, pools.queries.goals, MARGIN)
    before, after = _on_pools(phi, psi, pools), _on_pools(new_phi, new_psi, pools)
    effect = {
        "regret_before": float(pick_regret(pools.value, before).mean()),
        "regret_after": float(pick_regret(pools.value, after).mean()),
        "picks_in_bad_region_after": float(
            np.take_along_axis(far, after.argmax(axis=1)[:, None], axis=1).mean()
        ),
        "pools_with_bad_candidate": float(far.any(axis=1).mean()),
    }
    checks = [
        replace(c, details=dict(c.details) | effect) if c.where == "thm:finite-inflation" else c
        for c in checks
    ]
    content = {"critic": CRITIC, "seed": seed, "gap": GAP}
    stored = [check.as_json() for check in checks]
    write_json(Path(out) / "theory.json", {**content, "checks": stored})
    return checks


def _on_pools(phi: StateActionMap, psi: GoalMap, pools: Pools) -> FloatArray:
    """Scores phiᵀpsi of every candidate for its own query: [m, n]."""
    m, n, _ = pools.actions.shape
    states = np.repeat(pools.queries.states, n, axis=0)
    left = phi(states, pools.actions.reshape(m * n, -1)).reshape(m, n, -1)
    return np.asarray(np.einsum("mnd,md->mn", left, psi(pools.queries.goals)))
