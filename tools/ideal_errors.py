"""How far the ideal critics of PointMaze are from right: against data, and against a finer grid.

    python tools/ideal_errors.py pointmaze-medium-navigate-v0.npz --spacings 0.5 0.3333

Data collected with any seed will do; the ideals never see it. Printed for every spacing: how far
the grid's share of rows is from the data's; and for positives and as many random goals, in ten
equal groups by log_ratio and by gamma_d, what the ideal says and what the data has. Then, for
queries of the validation file with 64 actions of nearby data each: how well two grids agree on the
order within a query, and the normalized regret of each ideal under the exact value.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import expit

from toptail.lab.tasks.files import load
from toptail.lab.tasks.trajectories import Trajectories
from toptail.stats import best_of_k, kendall_tau_b
from toptail_paper.study.ideals import PointIdeals

TASK = "pointmaze-medium-navigate-v0"
GAMMA = 0.99
PAIRS, QUERIES, CANDIDATES = 100_000, 300, 64
Array = NDArray[np.float64]


def drawn(data: Trajectories, rng: np.random.Generator) -> tuple[Array, Array, Array, Array]:
    """States, actions and goals of positives and then of random goals, and gamma^d (or 0)."""
    rows = rng.choice(data.transitions, PAIRS)
    own = rows + np.minimum(rng.geometric(1.0 - GAMMA, size=len(rows)), data.remaining(rows))
    goals = np.concatenate([own, rng.permutation(own)])
    followed = np.concatenate([GAMMA ** (own - rows), np.zeros(PAIRS)])
    both = np.tile(rows, 2)
    return data.observations[both], data.actions[both], data.observations[goals], followed


def against_data(ideals: PointIdeals, data: Trajectories) -> None:
    """Print what the ideals say of drawn goals beside what the data has."""
    grid = ideals.behaviour
    nodes, share = grid.spread(data.observations)
    rows = np.bincount(nodes.ravel(), share.ravel(), len(grid.nodes)) / len(data)
    apart = 0.5 * np.abs(rows - grid.marginal).sum()
    print(f"spacing {grid.spacing:.3f}, {len(grid.nodes)} nodes: rows differ by {apart:.3f}")
    states, actions, goals, followed = drawn(data, np.random.default_rng(0))
    ratio = ideals.log_ratio(states, actions, goals)
    positive = np.arange(2 * PAIRS) < PAIRS
    loss = np.where(positive, np.logaddexp(0, -ratio), np.logaddexp(0, ratio)).mean()
    print(f"  binary NCE {loss:.4f}; log-odds by log_ratio, and in the data:")
    for group in groups(ratio):
        chance, hits = expit(ratio[group]).mean(), positive[group].mean()
        print(f"    {np.log(chance / (1 - chance)):6.2f} {np.log(hits / (1 - hits)):6.2f}")
    mean = ideals.gamma_d(states, actions, goals)
    print("  mean gamma^d by gamma_d, and in the data:")
    for group in groups(mean):
        print(f"    {mean[group].mean():6.3f} {followed[group].mean():6.3f}")


def groups(score: Array) -> list[NDArray[np.intp]]:
    """Ten groups of equal size by a score."""
    return np.array_split(np.argsort(score), 10)


def at_queries(ideals: PointIdeals, train: Trajectories, val: Trajectories) -> dict[str, Array]:
    """Every ideal's scores ``[queries, candidates]`` of actions of nearby data."""
    rng = np.random.default_rng(1)
    able = np.flatnonzero(val.remaining(np.arange(len(val))) >= 60)
    rows = rng.choice(able, QUERIES)
    goals = val.observations[rows + rng.integers(1, 60, QUERIES, endpoint=True)]
    near = KDTree(train.observations[train.transitions]).query(val.observations[rows], CANDIDATES)
    actions = train.actions[train.transitions[near[1]]].reshape(-1, 2)
    states, goals = (np.repeat(x, CANDIDATES, axis=0) for x in (val.observations[rows], goals))
    return {
        name: score(states, actions, goals).reshape(QUERIES, CANDIDATES)
        for name, score in ideals.scores().items()
    }


def main(file: Path, spacings: tuple[float, ...] = (1 / 2, 1 / 3)) -> None:
    """Print everything about a data file."""
    data, found = load(file), {}
    for spacing in spacings:
        ideals = PointIdeals(TASK, GAMMA, spacing)
        against_data(ideals, data.train)
        found[spacing] = scores = at_queries(ideals, data.train, data.val)
        value = scores["q_star"]
        room = (value.max(axis=1) - value.mean(axis=1)).mean()
        for name, score in scores.items():
            pick = best_of_k(score, value, [CANDIDATES])[:, 0]
            print(f"  {name}: regret {(value.max(axis=1) - pick).mean() / room:.3f}", flush=True)
    for one, two in pairwise(found):
        for name in found[one]:
            tau = np.nanmean(kendall_tau_b(found[one][name], found[two][name]))
            print(f"{name}: tau_b within a query between {one:.3f} and {two:.3f}: {tau:.3f}")


if __name__ == "__main__":
    tyro.cli(main, config=(tyro.conf.PositionalRequiredArgs,))
