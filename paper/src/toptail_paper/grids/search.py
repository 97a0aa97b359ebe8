"""Search without bounds: the whole action box, ever more draws from it, and gradient ascent."""

from __future__ import annotations

from typing import Any, Final

import jax
import numpy as np
from scipy.stats import beta

from toptail.lab.judges.exact import exact_values
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.scorers.base import climber
from toptail.lab.tasks.maze import UNIT
from toptail.lab.tasks.names import parse_name
from toptail.stats.resample import Estimate
from toptail_paper.grids.cells import Reading, fixed
from toptail_paper.grids.readings import (
    Subject,
    bootstrap_of,
    near_pools,
    query_values,
    require_exact_value,
)
from toptail_paper.selection.deployment.actor import ActorConfig, train_actors
from toptail_paper.selection.deployment.config import EpisodeConfig, SearchConfig
from toptail_paper.selection.deployment.episodes import (
    Episodes,
    evaluation_episodes,
    follow,
    success,
)
from toptail_paper.selection.deployment.run import acting
from toptail_paper.selection.deployment.search import search_episodes
from toptail_paper.semantics.scoring import evaluate
from toptail_paper.study.naming import readout

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
    require_exact_value(data, "search")
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


AXIS: Final = 9
"""Points per axis of the actions that the search in the box chooses from at every step."""

PLACES: Final = 1_000
"""States of the validation split that the map is read at, for each evaluation goal."""


def read_actors(subject: Subject) -> Reading:
    """Success of an actor for each weight of behaviour cloning, and of search at every step.

    ``actor_0.03`` is the success of the actor with that weight, ``loop_box`` that of the best of a
    grid of actions at every step, and ``loop_behaviour_K`` that of the best of K noisy behaviour
    samples, where the grid names a behaviour model. Of a critic that is a value, ``map_mean``,
    ``map_low`` and ``map_high`` are the mean and the 5th and 95th percentiles of Q - Q*, and
    ``map_goal1_3_2`` is its mean over the states of one square of the maze for one goal.
    """
    data, sizes = subject.data, subject.data.sizes
    require_exact_value(data, "actors")
    config = EpisodeConfig(per_goal=sizes.episodes, limit=sizes.limit)
    episodes = evaluation_episodes(parse_name(data.task.name).environment, config)
    how = ActorConfig(sizes.actor_steps, hidden=sizes.actor_hidden, batch_size=sizes.actor_batch)
    actors = train_actors(how, sizes.alphas, subject.trained, data.rows, subject.seed)
    found = {}
    for alpha, trained in zip(sizes.alphas, actors, strict=True):
        reached = follow(episodes, acting(trained, episodes.goals))
        found[f"actor_{alpha:g}"] = _rate(reached, subject)
    found["loop_box"] = _rate(follow(episodes, _boxed(subject, episodes)), subject)
    if sizes.behaviour:
        policy = load_policy(sizes.behaviour, data.task.name)
        searched = search_episodes(SearchConfig(), subject.trained, policy, episodes)
        for k, entry in searched.items():
            found[f"loop_behaviour_{k}"] = _counted(entry, subject)
    return {**found, **_map(subject, episodes)}


def _rate(reached: np.ndarray, subject: Subject) -> Estimate:
    return _counted(success(np.zeros_like(reached), reached, 0), subject)


def _counted(entry: dict[str, Any], subject: Subject) -> Estimate:
    """A success rate with the uncertainty of its number of episodes."""
    hits, n = int(entry["successes"]), int(entry["episodes"])
    return rate_estimate(hits, n, subject.seed, subject.data.sizes.resamples)


def rate_estimate(hits: int, episodes: int, seed: int, resamples: int) -> Estimate:
    """A rate with evenly spaced quantiles of its Jeffreys posterior as resamples.

    Each seed has them in an order of its own: then a mean over seeds has the interval of all
    episodes together. In the same order they would add up, end to end.
    """
    levels = (np.arange(resamples) + 0.5) / resamples
    quantiles = beta.ppf(levels, hits + 0.5, episodes - hits + 0.5)
    order = np.random.default_rng([seed, hits, episodes]).permutation(resamples)
    return Estimate(np.asarray(hits / episodes), quantiles[order])


def _boxed(subject: Subject, episodes: Episodes) -> Any:
    """The policy that takes the best of a grid of actions."""
    grid, goals = _grid(AXIS), episodes.goals
    n = len(grid)

    def act(states: np.ndarray) -> np.ndarray:
        rows = (np.repeat(states, n, 0), np.tile(grid, (len(states), 1)), np.repeat(goals, n, 0))
        scores = subject.score(*rows).reshape(len(states), n)
        chosen: np.ndarray = grid[scores.argmax(axis=1)]
        return chosen

    return act


def _map(subject: Subject, episodes: Episodes) -> Reading:
    """Q - Q* in the scale of gamma^d, over recorded states and the evaluation goals."""
    read = readout(subject.config.critic)
    if read is None or not read.value:
        return {}
    data, sizes = subject.data, subject.data.sizes
    rng = np.random.default_rng([sizes.draw_seed, 13])
    split = data.task.data.val
    rows = rng.choice(split.transitions, PLACES)
    states, actions = split.observations[rows], split.actions[rows]
    _, first = np.unique(episodes.goal, return_index=True)
    errors: list[np.ndarray] = []
    squares, square = np.unique(np.round(states / UNIT).astype(int), axis=0, return_inverse=True)
    by_square: dict[str, float] = {}
    for number, goal in enumerate(episodes.goals[first], 1):
        aims = np.broadcast_to(goal, (PLACES, len(goal))).astype(np.float32)
        q = subject.score(states, actions, aims)
        if subject.config.reward == "-1/0":
            q = 1.0 + (1.0 - subject.config.gamma) * q
        exact = exact_values(data.task.name, states, actions[:, None], aims, sizes.gamma)[:, 0]
        errors.append(q - exact)
        for i, (x, y) in enumerate(squares.tolist()):
            by_square[f"map_goal{number}_{x}_{y}"] = float(errors[-1][square.ravel() == i].mean())
    error = np.concatenate(errors)
    low, high = np.quantile(error, [0.05, 0.95])
    numbers = {"map_mean": error.mean(), "map_low": low, "map_high": high, **by_square}
    return {name: fixed(float(x), sizes.resamples) for name, x in numbers.items()}
