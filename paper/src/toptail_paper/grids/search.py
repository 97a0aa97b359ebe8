"""Search without bounds: the whole action box, ever more draws from it, and gradient ascent."""

from __future__ import annotations

from typing import Final

import jax
import numpy as np

from toptail.lab.scorers.ascent import climber
from toptail_paper.grids.cells import Reading
from toptail_paper.grids.reads import (
    Subject,
    bootstrap_of,
    near_pools,
    query_values,
    require_ways,
)
from toptail_paper.semantics.scoring import evaluate

STARTS: Final = 16
"""Random actions that gradient ascent starts from; the end with the highest score is taken."""

RATE: Final = 0.05
"""Length of a step of gradient ascent, whatever the gradient's."""

COARSE: Final = 41
"""Points per axis of the grid that the best possible value is looked for on."""


def read_search(subject: Subject) -> Reading:
    """Value of what each search finds, less the mean value of near states' actions.

    ``gain_near`` is the best of ``k`` near actions, ``gain_box`` that of a grid over the whole box,
    ``gain_wide_K`` that of K uniform draws, ``gain_ascent`` that of gradient ascent on the score;
    ``gain_best`` is what could be had. Below 0, whoever maximizes the score does worse than one
    who takes any action of a near state.
    """
    data, sizes = subject.data, subject.data.sizes
    require_ways(data, "search")
    split, pools = data.task.split("val"), near_pools(data, "val")
    at, goals, actions = pools.at, pools.goals, pools.actions
    scores = evaluate(subject.score, split, at[:, None], actions, goals[:, None])
    picks = {"near": _taken(actions, scores)}
    rng = np.random.default_rng([sizes.draw_seed, 11])
    drawn_actions = rng.uniform(-1, 1, (sizes.widest, 2)).astype(np.float32)
    for i, (row, goal) in enumerate(zip(at, goals, strict=True)):
        state, aim = split.observations[row], split.observations[goal]
        for name, found in _searched(subject, state, aim, drawn_actions).items():
            picks.setdefault(name, np.zeros((len(at), 2), np.float32))[i] = found
    rows = (split.observations[at], split.observations[goals])
    picks["ascent"] = _ascended(subject, *rows, drawn_actions[:STARTS])
    names = list(picks)
    chosen = np.stack([picks[name] for name in names], axis=1)
    values = query_values(data, "val", at, chosen, goals)
    grid = _grid(min(COARSE, sizes.box))
    coarse = np.broadcast_to(grid, (len(at), *grid.shape))
    best = query_values(data, "val", at, coarse, goals).max(axis=1)
    columns = dict(zip(names, values.T, strict=True))
    columns["best"] = np.maximum(best, values.max(axis=1))
    bootstrap, base = bootstrap_of(pools.trajectory, data), pools.values.mean(axis=1)
    return {f"gain_{name}": bootstrap.mean(value - base) for name, value in columns.items()}


def _taken(actions: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The first candidate of the highest score of each query."""
    chosen: np.ndarray = actions[np.arange(len(actions)), scores.argmax(axis=1)]
    return chosen


def _grid(points: int) -> np.ndarray:
    axis = np.linspace(-1, 1, points, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)


def _searched(
    subject: Subject, state: np.ndarray, goal: np.ndarray, drawn: np.ndarray
) -> dict[str, np.ndarray]:
    """The best of the grid, and of the first 64, 1,000, ... draws, at one query."""
    grid = _grid(subject.data.sizes.box)
    candidates = np.concatenate([grid, drawn])
    n = len(candidates)
    states, goals = (np.broadcast_to(x, (n, len(x))).astype(np.float32) for x in (state, goal))
    scores = subject.score(states, candidates, goals)
    found = {"box": grid[scores[: len(grid)].argmax()]}
    of_drawn = scores[len(grid) :]
    for k in _rising(len(drawn)):
        found[f"wide_{k}"] = drawn[of_drawn[:k].argmax()]
    return found


def _rising(most: int) -> list[int]:
    """64, and powers of ten from 1,000 on, up to the most."""
    return [k for k in (64, 1_000, 10_000, 100_000) if k < most] + [most]


def _ascended(
    subject: Subject, states: np.ndarray, goals: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """Where gradient ascent on the score ends, the best of its starts, ``[q, 2]``."""
    trained, steps = subject.trained, subject.data.sizes.ascent
    climb = climber(trained.critic, trained.critic.deployed, steps, RATE)
    first = np.broadcast_to(starts, (len(states), *starts.shape))
    with jax.default_matmul_precision("highest"):
        ends, scores = climb(trained.params, states[:, None], first, goals[:, None])
    return _taken(np.asarray(ends), np.asarray(scores))
