"""A world so regular that every diagnostic can be worked out by hand.

Each trajectory holds eight triples: every distance d in {1, 2, 3, 4} once at level 0 and once at
level 1. The level is a property of the triple that has nothing to do with d. The second goal is
at 5 - d, so that each distance is as often the first as the second one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.scored import ScoredTriples

GAMMA = 0.9
NEGATIVES = 3
LENGTH = 100

# score(level [n], distance [n]) of goals ahead; distance inf: on another trajectory.
Critic = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def exact(level: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
    return GAMMA**d + 0.0 * level


def steps(level: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
    return -(1.0 - GAMMA**d) / (1.0 - GAMMA) + 0.0 * level


def opposite(level: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
    return -exact(level, d)


def constant(level: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(np.broadcast_shapes(level.shape, d.shape), 0.1)


def separator(level: NDArray[np.float64], d: NDArray[np.float64]) -> NDArray[np.float64]:
    """Knows whether a goal is on the trajectory, and nothing of how far it is."""
    return np.where(np.isfinite(d), 1.0 + level, 0.0)


CRITICS: dict[str, Critic] = {
    "exact": exact,
    "steps": steps,
    "opposite": opposite,
    "constant": constant,
    "separator": separator,
}


def scored(trajectories: int = 12) -> ScoredTriples:
    index = np.arange(trajectories * 8)
    trajectory, place = index // 8, index % 8
    level, distance = (place // 4).astype(np.float64), place % 4 + 1
    rows = trajectory * LENGTH + place * 10
    goal_rows = rows + distance
    shifts = 8 * np.arange(1, NEGATIVES + 1)
    negative_rows = goal_rows[(index[:, None] + shifts) % index.size]
    far, d = np.full(index.size, np.inf), distance.astype(np.float64)

    def each(score: Callable[[Critic], NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
        return {name: score(critic) for name, critic in CRITICS.items()}

    return ScoredTriples(
        rows=rows,
        goal_rows=goal_rows,
        trajectory=trajectory,
        gamma=GAMMA,
        scores=each(lambda f: f(level, d)),
        readouts={"exact:norm": separator(level, d), "exact:raw": exact(level, d)},
        negatives=each(lambda f: np.repeat(f(level, far)[:, None], NEGATIVES, axis=1)),
        negative_rows=negative_rows,
        hard_negatives=each(lambda f: f(level, far)),
        hard_negative_rows=negative_rows[:, 0],
        second_goals=each(lambda f: f(level, 5.0 - d)),
        second_goal_rows=rows + 5 - distance,
        next_scores=each(lambda f: np.where(d >= 2, f(level, d - 1), np.nan)),
        step_reward={name: -1.0 if name == "steps" else 0.0 for name in CRITICS},
        query_means={"exact": exact(level, d)},
        values={"opposite": opposite(level, d), "same": 3.0 * exact(level, d) + 1.0},
    )


def resampled(triples: ScoredTriples, resamples: int = 50, seed: int = 0) -> TrajectoryBootstrap:
    return TrajectoryBootstrap(triples.trajectory, np.random.default_rng(seed), resamples)


def noisy(trajectories: int = 5, per: int = 3, seed: int = 0) -> ScoredTriples:
    """Unequal trajectories, arbitrary scores of few levels: many ties, no structure."""
    rng = np.random.default_rng(seed)
    trajectory = np.concatenate([np.arange(trajectories), rng.integers(0, trajectories, per * 2)])
    trajectory = trajectory[rng.permutation(trajectory.size)]
    n = trajectory.size
    rows = trajectory * LENGTH + rng.choice(80, n, replace=False)
    goal_rows = rows + rng.integers(1, 6, n)
    elsewhere = [np.flatnonzero(trajectory != t) for t in trajectory]
    negative_rows = np.stack([goal_rows[rng.choice(e, NEGATIVES)] for e in elsewhere])
    second = np.where(rng.random(n) < 0.3, -1, goal_rows + rng.integers(1, 4, n))

    def levels(*shape: int) -> dict[str, NDArray[np.float64]]:
        return {"any@7": rng.integers(0, 5, shape).astype(np.float64) / 4}

    return ScoredTriples(
        rows=rows,
        goal_rows=goal_rows,
        trajectory=trajectory,
        gamma=GAMMA,
        scores=levels(n),
        negatives=levels(n, NEGATIVES),
        negative_rows=negative_rows,
        hard_negatives=levels(n),
        hard_negative_rows=negative_rows[:, 0],
        second_goals=levels(n),
        second_goal_rows=second,
        next_scores=levels(n),
        step_reward={"any": -0.25},
        values={"judge": rng.integers(0, 4, n).astype(np.float64)},
    )
