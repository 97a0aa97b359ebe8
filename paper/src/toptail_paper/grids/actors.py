"""Deployment: actors that follow a critic, search at every step, and a map of Q less Q*."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from scipy.stats import beta

from toptail.audit.sample import Estimate
from toptail.lab.critics.registry import readout
from toptail.lab.judges.exact import exact_values
from toptail.lab.proposals.actor import ActorConfig, train_actors
from toptail.lab.proposals.diffusion import load_policy
from toptail.lab.tasks.maze import UNIT
from toptail.lab.tasks.names import parse_name
from toptail_paper.grids.cells import Reading, fixed
from toptail_paper.grids.reads import Subject, require_ways
from toptail_paper.selection.deployment.config import EpisodeConfig, SearchConfig
from toptail_paper.selection.deployment.episodes import (
    Episodes,
    evaluation_episodes,
    follow,
    success,
)
from toptail_paper.selection.deployment.run import acting
from toptail_paper.selection.deployment.search import search_episodes

AXIS: Final = 9
"""Points per axis of the actions that the search in the box chooses from at every step."""

PLACES: Final = 1_000
"""States of the validation split that the map is read at, for each evaluation goal."""


def read_actors(subject: Subject) -> Reading:
    """Success of an actor for each weight of behaviour cloning, and of search at every step.

    ``actor_0.03`` is the success of the actor with that weight, ``loop_box`` that of the best of a
    grid of actions at every step, and ``loop_behaviour_K`` that of the best of K noisy behaviour
    samples, where the plan names a behaviour model. Of a critic that is a value, ``map_mean``,
    ``map_low`` and ``map_high`` are the mean and the 5th and 95th percentiles of Q - Q*, and
    ``map_goal1_3_2`` is its mean over the states of one square of the maze for one goal.
    """
    data, sizes = subject.data, subject.data.sizes
    require_ways(data, "actors")
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
    """A success rate, whose resamples are those of its episodes."""
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
    axis = np.linspace(-1, 1, AXIS, dtype=np.float32)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    goals, n = episodes.goals, len(grid)

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
