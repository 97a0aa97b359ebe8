"""The critic followed: best of K candidates, or the score's maximizer, at every step.

`best_of_k` and `maximizer` are policies for `toptail.lab.environments.rollout.roll_out`, which any
study of deployed critics can use; `Episodes` rolls them out from the starts of a check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from toptail.lab.check.config import ASCENT
from toptail.lab.check.environments import TaskEnvironment
from toptail.lab.environments.protocol import Floats, Mask
from toptail.lab.environments.rollout import (
    Policy,
    RolloutRules,
    Rollouts,
    RolloutStarts,
    roll_out,
)
from toptail.lab.proposals.untrained import CandidateSource
from toptail.lab.scorers.ascent import Ascent
from toptail.lab.scorers.base import Score, Scorer, score_each, score_towards
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray, IntArray, Trajectories
from toptail.pools import JudgedPicks
from toptail.pools.columns import group_seeds
from toptail.stats import bootstrap_sums, cluster_sums, percentile_interval

BASELINE = "K = 1"
"""The selector that takes the first candidate, whatever its score."""
_EPISODES = 1
"""Part of the key of draws in episodes, which must not be the draws of the queries."""

Search: TypeAlias = int | None
"""How a critic's pick is found: best of K candidates, or for None by ascent on the score."""


def selector_name(search: Search) -> str:
    """What the audit of picks calls a search: ``K = 8``, or ``ascent``."""
    return ASCENT if search is None else f"K = {search}"


def best_of_k(
    source: CandidateSource, score: Score | None, goals: FloatArray, k: int, draws: int
) -> Policy:
    """The policy that takes the highest score of K candidates; without a score the first one.

    Rollout e at step t sees the first K of the same ``draws`` candidates, whatever the K and the
    score, as long as it is in the same state. ``goals [n, g]`` has the goal of each rollout.
    """
    towards = None if score is None or k == 1 else score_towards(score, goals)

    def policy(numbers: IntArray, taken: IntArray, observed: FloatArray) -> FloatArray:
        drawn = source.draw(_keys(numbers, taken), observed, goals[numbers], draws)[:, :k]
        if towards is None:
            return drawn[:, 0]
        scores = score_each(towards, observed, drawn, numbers)
        return np.asarray(drawn[np.arange(len(numbers)), scores.argmax(axis=1)])

    return policy


def maximizer(
    source: CandidateSource, score: Score, goals: FloatArray, width: int, draws: int, seed: int
) -> Policy:
    """The policy that takes the action of ``width`` numbers that maximizes the score in the box.

    The search begins with the same ``draws`` candidates that `best_of_k` sees.
    """
    ascent = Ascent(score, goals, width, seed)

    def policy(numbers: IntArray, taken: IntArray, observed: FloatArray) -> FloatArray:
        keys = _keys(numbers, taken)
        drawn = source.draw(keys, observed, goals[numbers], draws)
        return ascent.best(keys, observed, numbers, drawn)

    return policy


def _keys(numbers: IntArray, taken: IntArray) -> IntArray:
    return np.stack([numbers, taken, np.full_like(numbers, _EPISODES)], axis=1)


@dataclass(frozen=True, eq=False)
class Episodes:
    """What the episodes of all critics share."""

    environment: TaskEnvironment
    """The task's environment."""
    val: Trajectories
    """The data of which the starts are rows."""
    queries: FrozenQueries
    """Starts and goals of the episodes."""
    source: CandidateSource
    """Candidates at every step."""
    draws: int
    """Candidates that are drawn at every step: the largest K."""
    rules: RolloutRules
    """Length of an episode."""
    seed: int = 0
    """Seed of the ascent."""

    def worth(self, score: Score | None, search: Search) -> Floats:
        """Value of each episode: success (1 or 0) where the task has goals, else the return."""
        goals = self.queries.goals
        if search is None and score is not None:
            width = self.val.actions.shape[1]
            policy = maximizer(self.source, score, goals, width, self.draws, self.seed)
        else:
            policy = best_of_k(self.source, score, goals, search or 1, self.draws)
        found = self._rolled_out(self.queries.rows, goals, policy, self.rules)
        return (found.reached > 0).astype(float) if self.environment.goals else found.rewards

    def _rolled_out(
        self, rows: IntArray, goals: FloatArray | None, policy: Policy, rules: RolloutRules
    ) -> Rollouts:
        make = self.environment.make
        assert make is not None
        starts = RolloutStarts(self.val, rows, goals if self.environment.goals else None)
        return roll_out(make, starts, policy, rules)

    def recorded(
        self, starts: IntArray, lengths: IntArray, goals: FloatArray
    ) -> tuple[Rollouts, IntArray]:
        """Recorded actions taken from recorded rows, and which start each row belongs to.

        Every row is restored and its own action is taken, so that errors do not accumulate.
        """
        number = np.repeat(np.arange(len(starts)), lengths)
        first = np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = starts[number] + np.arange(len(number)) - first

        def policy(numbers: IntArray, _taken: IntArray, _observed: FloatArray) -> FloatArray:
            return np.asarray(self.val.actions[rows[numbers]])

        return self._rolled_out(rows, goals[number], policy, RolloutRules(horizon=1)), number


def picks_of(
    queries: FrozenQueries,
    searches: Sequence[Search],
    scorers: Sequence[Scorer],
    worth: Mapping[tuple[str, Search], Floats],
    *,
    grouped: bool,
) -> dict[str, JudgedPicks]:
    """Scorer -> values of its picks, as the audit of picks reads them: selectors are the searches.

    ``worth`` has values ``[queries]`` by column and search; of K = 1 under the column "". Training
    seeds of a scorer are replicates.
    """
    seeds = group_seeds([each.column for each in scorers])
    return {n: _picks(queries, searches, columns, worth, grouped) for n, columns in seeds.items()}


def _picks(
    queries: FrozenQueries,
    searches: Sequence[Search],
    columns: Mapping[int | None, str],
    worth: Mapping[tuple[str, Search], Floats],
    grouped: bool,
) -> JudgedPicks:
    parts: dict[str, list[Any]] = {name: [] for name in ("query", "selector", "replicate", "value")}
    for seed, column in columns.items():
        for search in searches:
            parts["query"].append(np.arange(len(queries)))
            parts["selector"].append(np.full(len(queries), selector_name(search)))
            parts["replicate"].append(np.full(len(queries), str(seed)))
            parts["value"].append(worth["" if search == 1 else column, search])
    table = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    table["cluster"] = queries.trajectory[table["query"]]
    if grouped:
        table["group"] = queries.group[table["query"]]
    return JudgedPicks.from_arrow(pa.table(table), source="best of K")


@dataclass(frozen=True)
class Recorded:
    """Value of the data's own episodes, for comparison with a followed critic."""

    mean: float
    """Share of successes, or mean return."""
    low: float
    """Lower end of its 95 % interval over trajectories."""
    high: float
    """Upper end."""
    episodes: int
    """Number of episodes."""
    says: str
    """What it is, in words."""


def recorded(episodes: Episodes, most: int, resamples: int, seed: int) -> Recorded:
    """The value of at most ``most`` of the data's own episodes."""
    rng, horizon = np.random.default_rng(seed), episodes.rules.horizon
    if episodes.environment.goals:
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


def _came_to_goals(episodes: Episodes) -> tuple[Floats, IntArray]:
    """Whether the record came to each goal in time, and the trajectory of each."""
    queries, horizon = episodes.queries, episodes.rules.horizon
    came = queries.distance <= horizon
    late = np.flatnonzero(~came)  # which may have come within the tolerance before
    lengths = np.full(len(late), horizon)
    taken, number = episodes.recorded(queries.rows[late], lengths, queries.goals[late])
    came[late] = np.bincount(number, taken.reached, len(late)) > 0
    cluster = np.unique(queries.trajectory, return_inverse=True)[1].astype(np.int64)
    return came.astype(float), cluster


def recorded_returns(episodes: Episodes, most: int, rng: np.random.Generator) -> Floats:
    """Sums of rewards of recorded episodes, up to the horizon or to the environment's end."""
    val = episodes.val
    chosen = np.sort(rng.permutation(len(val.ends))[:most])
    lengths = np.minimum(val.lengths[chosen], episodes.rules.horizon)
    no_goals = np.zeros((len(chosen), 0), np.float32)
    taken, number = episodes.recorded(val.starts[chosen], lengths, no_goals)
    ended: IntArray = taken.ended.astype(np.int64)
    before: IntArray = np.cumsum(ended) - ended  # ends before each row, of all episodes
    counted: Mask = before == before[np.cumsum(lengths) - lengths][number]
    rewards: Floats = np.where(counted, taken.rewards, 0.0)
    return np.asarray(np.bincount(number, rewards, len(chosen)), np.float64)
