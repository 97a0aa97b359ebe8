"""The critic followed: best of K candidates at every step, against a random one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.lab.check.environments import TaskWorld
from toptail.lab.environments.protocol import Floats, Mask
from toptail.lab.environments.rollout import Policy, Walked, WalkRules, WalkStarts, walk
from toptail.lab.proposals.untrained import CandidateSource
from toptail.lab.scorers.base import Score, Scorer, score_each, score_towards
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds
from toptail.stats import bootstrap_sums, cluster_sums, percentile_interval

BASELINE = "K = 1"
"""Who is followed where nothing is chosen."""
_FOLLOWED = 1
"""Marks the draws of episodes, which must not be those of the queries."""


@dataclass(frozen=True, eq=False)
class Episodic:
    """What the episodes of all critics share."""

    world: TaskWorld
    """The environment."""
    val: Trajectories
    """What the starts are rows of."""
    queries: FrozenQueries
    """Starts and goals of the episodes."""
    source: CandidateSource
    """Candidates at every step."""
    ks: tuple[int, ...]
    """Sizes K, from 1."""
    rules: WalkRules
    """Length of an episode."""


def walks_of(scorers: Sequence[Scorer], ks: Sequence[int]) -> list[tuple[Scorer | None, int]]:
    """Who is followed with which K: first nobody, then every scorer with every other K."""
    return [(None, 1), *((each, k) for each in scorers for k in ks[1:])]


def worth_of(episodes: Episodic, scorer: Scorer | None, k: int) -> Floats:
    """What the episodes of one scorer and one K are worth."""
    walked = _walked(episodes, scorer, k)
    return (walked.reached > 0).astype(float) if episodes.world.goals else walked.rewards


def follow(
    episodes: Episodic,
    scorers: Sequence[Scorer],
    tick: Callable[[float], None],
    known: Mapping[int, Floats],
) -> dict[str, JudgedPicks]:
    """Follow every scorer in the same episodes: scorer -> what the episodes of each K were worth.

    A value is success (1 or 0) where the task has goals, and the sum of rewards elsewhere. In
    episode e and step t all K and all scorers meet the same candidates as long as they are in the
    same state; K = 1 takes the first of them. Training seeds of a scorer are repetitions. What is
    known of the walks, by their number in :func:`walks_of`, is not walked again.
    """
    walks = walks_of(scorers, episodes.ks)
    worth: dict[tuple[str, int], Floats] = {}
    for i, (scorer, k) in enumerate(walks):
        tick(i / len(walks))
        value = known[i] if i in known else worth_of(episodes, scorer, k)
        worth["" if scorer is None else scorer.column, k] = value
    grouped = episodes.world.goals
    return picks_of(episodes.queries, episodes.ks, scorers, worth, grouped=grouped)


def picks_of(
    queries: FrozenQueries,
    ks: Sequence[int],
    scorers: Sequence[Scorer],
    worth: Mapping[tuple[str, int], Floats],
    *,
    grouped: bool,
) -> dict[str, JudgedPicks]:
    """Scorer -> what best of each K is worth, as the audit of picks reads it: selectors are the K.

    ``worth`` has values ``[queries]`` by column and K; of K = 1 under the column "".
    """
    seeds = group_seeds([each.column for each in scorers])
    return {n: _picks(queries, ks, columns, worth, grouped) for n, columns in seeds.items()}


@dataclass(frozen=True)
class Recorded:
    """What the data's own episodes are worth, beside which a followed critic stands."""

    mean: float
    """Share of successes, or mean return."""
    low: float
    """Lower end of its 95 % interval over trajectories."""
    high: float
    """Upper end."""
    episodes: int
    """Episodes that it is the mean of."""
    says: str
    """What it is, in a sentence."""


def recorded(episodes: Episodic, most: int, resamples: int, seed: int) -> Recorded:
    """What the data's own episodes are worth, of ``most`` of them at most."""
    rng, horizon = np.random.default_rng(seed), episodes.rules.horizon
    if episodes.world.goals:
        worth, cluster = _came_to_goals(episodes)
        says = (
            f"Success of the data's own episodes is how many came to the goal within {horizon} "
            "steps: goals are states that the same episode came to later."
        )
    else:
        worth, cluster = recorded_returns(episodes, most, rng), None
        says = (
            "The return of the data's own episodes is that of their recorded actions from the "
            f"first row on, for up to {horizon} steps."
        )
    sums = cluster_sums(np.stack([worth, np.ones(len(worth))], axis=1), cluster)
    drawn = bootstrap_sums(sums, rng, resamples)
    low, high = percentile_interval(drawn[:, 0] / drawn[:, 1])
    return Recorded(float(worth.mean()), float(low), float(high), len(worth), says)


def _came_to_goals(episodes: Episodic) -> tuple[Floats, IntArray]:
    """Whether the record came to each goal in time, and the trajectory of each."""
    queries, horizon = episodes.queries, episodes.rules.horizon
    came = queries.distance <= horizon
    late = np.flatnonzero(~came)  # which may have come within the tolerance before
    taken, number = _taken(episodes, queries.rows[late], np.full(len(late), horizon), late)
    came[late] = np.bincount(number, taken.reached, len(late)) > 0
    cluster = np.unique(queries.trajectory, return_inverse=True)[1].astype(np.int64)
    return came.astype(float), cluster


def recorded_returns(episodes: Episodic, most: int, rng: np.random.Generator) -> Floats:
    """Sums of rewards of recorded episodes, up to the horizon or to the environment's end."""
    val = episodes.val
    chosen = np.sort(rng.permutation(len(val.ends))[:most])
    lengths = np.minimum(val.lengths[chosen], episodes.rules.horizon)
    taken, number = _taken(episodes, val.starts[chosen], lengths)
    ended: IntArray = taken.ended.astype(np.int64)
    before: IntArray = np.cumsum(ended) - ended  # ends before each row, of all episodes
    counted: Mask = before == before[np.cumsum(lengths) - lengths][number]
    rewards: Floats = np.where(counted, taken.rewards, 0.0)
    return np.asarray(np.bincount(number, rewards, len(chosen)), np.float64)


def _taken(
    episodes: Episodic, starts: IntArray, lengths: IntArray, query: IntArray | None = None
) -> tuple[Walked, IntArray]:
    """Recorded actions taken from recorded rows, and which start each row belongs to.

    Every row is restored and its own action is taken, so that no error grows along the way.
    """
    val, make = episodes.val, episodes.world.make
    assert make is not None
    number = np.repeat(np.arange(len(starts)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = starts[number] + np.arange(len(number)) - first

    def policy(walks: IntArray, _taken: IntArray, _seen: FloatArray) -> FloatArray:
        return np.asarray(val.actions[rows[walks]])

    goals = None if query is None else episodes.queries.goals[query[number]]
    return walk(make, WalkStarts(val, rows, goals), policy, WalkRules(horizon=1)), number


def _walked(episodes: Episodic, scorer: Scorer | None, k: int) -> Walked:
    """All episodes with one scorer and one K."""
    make, queries = episodes.world.make, episodes.queries
    assert make is not None
    starts = WalkStarts(episodes.val, queries.rows, queries.goals if episodes.world.goals else None)
    score = None if scorer is None else scorer.score
    return walk(make, starts, _chooser(episodes, score, k), episodes.rules)


def _chooser(episodes: Episodic, score: Score | None, k: int) -> Policy:
    """The policy that takes the highest score of K candidates; the first one without a score."""
    goals, most = episodes.queries.goals, episodes.ks[-1]
    towards = None if score is None else score_towards(score, goals)

    def policy(walks: IntArray, taken: IntArray, seen: FloatArray) -> FloatArray:
        keys = np.stack([walks, taken, np.full_like(walks, _FOLLOWED)], axis=1)
        drawn = episodes.source.draw(keys, seen, goals[walks], most)[:, :k]
        if towards is None or k == 1:
            return drawn[:, 0]
        scores = score_each(towards, seen, drawn, walks)
        return np.asarray(drawn[np.arange(len(walks)), scores.argmax(axis=1)])

    return policy


def _picks(
    queries: FrozenQueries,
    ks: Sequence[int],
    columns: Mapping[int | None, str],
    worth: Mapping[tuple[str, int], Floats],
    grouped: bool,
) -> JudgedPicks:
    parts: dict[str, list[Any]] = {name: [] for name in ("query", "selector", "replicate", "value")}
    for seed, column in columns.items():
        for k in ks:
            value = worth["" if k == 1 else column, k]
            parts["query"].append(np.arange(len(queries)))
            parts["selector"].append(np.full(len(queries), BASELINE if k == 1 else f"K = {k}"))
            parts["replicate"].append(np.full(len(queries), str(seed)))
            parts["value"].append(value)
    table = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    table["cluster"] = queries.trajectory[table["query"]]
    if grouped:
        table["group"] = queries.group[table["query"]]
    return JudgedPicks.from_arrow(pa.table(table), source="best of K")
