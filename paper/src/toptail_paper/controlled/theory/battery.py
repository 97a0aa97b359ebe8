"""All claims in one call, on one trained critic and its candidate pools."""

from __future__ import annotations

import numpy as np

from toptail_paper.controlled.theory.check import FloatArray, TheoryCheck, bilinear_scores
from toptail_paper.controlled.theory.selection import (
    TwoSetWorld,
    boundedness_is_not_calibration,
    good_ranker_bad_objective,
    two_epsilon_bound,
    two_epsilon_is_tight,
    within_epsilon,
)
from toptail_paper.controlled.theory.support import (
    BadRegion,
    GoalMap,
    StateActionMap,
    StateActions,
    finite_inflation,
    off_support_nonidentifiability,
    positives_left_unordered,
)

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
