"""What is read from a trained critic on recorded data: triples, fixed queries, the ideal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.audit.triples.retrieval import (
    hard_negative_win_rate,
    nearer_goal_win_rate,
    recall,
    retrieval_auc,
)
from toptail.audit.triples.search import cross_query, saturation
from toptail.audit.triples.value_order import calibration, calibration_gap, ordering
from toptail.errors import InputError
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.ideals import knows_ideals, point_ideals
from toptail.lab.judges.point import knows_ways
from toptail.lab.scorers.base import Rows, RunScore, Score
from toptail.lab.tasks.names import Split
from toptail.lab.training.config import RunConfig
from toptail.pools.triples import ScoredTriples
from toptail.stats import best_of_k, kendall_tau_b
from toptail_paper.grids.cells import Reading
from toptail_paper.grids.datasets import DrawnTriples, PlannedData
from toptail_paper.semantics.scoring import evaluate

_COLUMN: Final = "score"
_RESAMPLING: Final = 7


@dataclass(frozen=True, eq=False)
class Subject:
    """One trained critic on one data set."""

    trained: TrainedCritic
    """The critic, in float32."""

    config: RunConfig
    """How it was trained."""

    seed: int
    """Its training seed."""

    data: PlannedData
    """What it was trained on."""

    @property
    def score(self) -> RunScore:
        """Its deployed scalar."""
        return RunScore(lambda: self.trained, self.trained.critic.deployed)


def read_triples(subject: Subject) -> Reading:
    """Retrieval and order on held-out triples."""
    return triple_metrics(subject.score, subject.data, "val", subject.data.held_out)


def read_seen(subject: Subject) -> Reading:
    """The same on trajectories of the training data, and how much better it is there.

    Where the task's ways are known, also the order of actions at seen states.
    """
    data = subject.data
    held = triple_metrics(subject.score, data, "val", data.held_out)
    seen = triple_metrics(subject.score, data, "train", data.seen)
    found = {f"seen_{name}": estimate for name, estimate in seen.items()}
    for name in ("auc", "hard_negative_auc", "tau"):
        if name in seen:  # resampled apart, so the difference has the spread of both
            found[f"memory_{name}"] = seen[name] - held[name]
    if knows_ways(data.task.name):
        queries = query_metrics(subject.score, data, "train")
        found |= {f"seen_{name}": estimate for name, estimate in queries.items()}
    return found


def read_queries(subject: Subject) -> Reading:
    """Selection among the actions of near states, by the exact value."""
    data = subject.data
    require_ways(data, "queries")
    return query_metrics(subject.score, data, "val")


def read_ideal(subject: Subject) -> Reading:
    """What the minimizer of the contrastive loss would give, at this discount of positives."""
    data, config = subject.data, subject.config
    if not knows_ideals(data.task.name):
        raise InputError(f"{data.name} has no known ideal critics, which 'ideal' reads.")
    gamma = dict(config.settings).get("positive_gamma", config.gamma)
    ideals = point_ideals(data.task.name, gamma, data.sizes.spacing)

    def score(states: Rows, actions: Rows, goals: Rows) -> Rows:
        return np.asarray(ideals.log_ratio(states, actions, goals), np.float32)

    found = triple_metrics(score, data, "val", data.held_out)
    return {f"predicted_{name}": found[name] for name in ("tau", "nearer_goal", "auc")}


def triple_metrics(score: Score, data: PlannedData, name: Split, drawn: DrawnTriples) -> Reading:
    """Every diagnostic of a score on the triples of one split."""
    split, t, sizes = data.task.split(name), drawn.triples, data.sizes

    def scored(rows: np.ndarray, goals: np.ndarray) -> np.ndarray:
        return evaluate(score, split, rows, split.actions[rows], goals)

    second = np.where(drawn.second_goal_rows < 0, t.goal_rows, drawn.second_goal_rows)
    triples = ScoredTriples(
        t.rows, t.goal_rows, t.trajectory, sizes.gamma,
        {_COLUMN: scored(t.rows, t.goal_rows)},
        negatives={_COLUMN: scored(t.rows[:, None], drawn.negative_rows)},
        negative_rows=drawn.negative_rows,
        hard_negatives={_COLUMN: scored(t.rows, drawn.hard_negative_rows)},
        hard_negative_rows=drawn.hard_negative_rows,
        second_goals={_COLUMN: scored(t.rows, second)},
        second_goal_rows=drawn.second_goal_rows,
    )  # fmt: skip
    bootstrap = bootstrap_of(t.trajectory, data)
    found = {
        "auc": retrieval_auc(triples, _COLUMN, bootstrap),
        "hard_negative_auc": hard_negative_win_rate(triples, _COLUMN, bootstrap),
        "nearer_goal": nearer_goal_win_rate(triples, _COLUMN, bootstrap),
        "tau": ordering(triples, _COLUMN, bootstrap),
    }
    for k in (1, 5):
        if k <= sizes.negatives:
            found[f"recall_{k}"] = recall(triples, _COLUMN, k, bootstrap)
    if data.task.navigation:
        top = (min(sizes.k, len(t)),)
        found["gap"] = calibration_gap(calibration(triples, _COLUMN, bootstrap))
        found["regret"] = cross_query(triples, _COLUMN, top, bootstrap).regret[0]
        found["median_selected"] = saturation(triples, _COLUMN, top, bootstrap).median[0]
    return found


@dataclass(frozen=True, eq=False)
class NearPools:
    """Queries with the actions of near states, the same for every critic of a data set."""

    at: np.ndarray
    """``[q]`` rows of the states."""

    goals: np.ndarray
    """``[q]`` rows of the goals."""

    actions: np.ndarray
    """``[q, k, a]`` candidates."""

    values: np.ndarray
    """``[q, k]`` their exact values."""

    trajectory: np.ndarray
    """``[q]`` trajectory of each state."""


@lru_cache(maxsize=2)
def near_pools(data: PlannedData, name: Split) -> NearPools:
    """The queries of a split: the first triples, with the actions of their nearest states."""
    drawn = data.held_out if name == "val" else data.seen
    rows, t = data.near_rows(name, drawn), drawn.triples
    at, goals, trajectory = (x[: len(rows)] for x in (t.rows, t.goal_rows, t.trajectory))
    actions = data.task.split(name).actions[rows]
    values = query_values(data, name, at, actions, goals)
    return NearPools(at, goals, actions, values, trajectory)


def query_metrics(score: Score, data: PlannedData, name: Split) -> Reading:
    """Order of a query's candidates, and normalized regret of the best of all of them."""
    split, pools = data.task.split(name), near_pools(data, name)
    scores = evaluate(score, split, pools.at[:, None], pools.actions, pools.goals[:, None])
    values, bootstrap = pools.values, bootstrap_of(pools.trajectory, data)
    tau = kendall_tau_b(scores.astype(np.float64), values)
    picked = best_of_k(scores, values, [values.shape[1]])[:, 0]
    best, mean = bootstrap.mean(values.max(axis=1)), bootstrap.mean(values.mean(axis=1))
    return {
        "query_tau": bootstrap.mean(np.where(np.isnan(tau), 0.0, tau)),
        "query_regret": (best - bootstrap.mean(picked)) / (best - mean),
    }


def query_values(
    data: PlannedData, name: Split, at: np.ndarray, actions: np.ndarray, goals: np.ndarray
) -> np.ndarray:
    """Exact values ``[q, n]`` of candidates ``[q, n, 2]`` at rows and goals of a split."""
    own = data.task.split(name).observations[:, : data.width]
    task, gamma = data.task.name, data.sizes.gamma
    return exact_values(task, own[at], actions, own[goals], gamma).astype(np.float64)


def require_ways(data: PlannedData, what: str) -> None:
    """Refuse a data set without an exact value."""
    if not knows_ways(data.task.name):
        raise InputError(f"{data.name} has no exact value, which '{what}' needs: use PointMaze.")


def bootstrap_of(trajectory: np.ndarray, data: PlannedData) -> TrajectoryBootstrap:
    """The same resamples for every critic of a data set."""
    rng = np.random.default_rng([data.sizes.draw_seed, _RESAMPLING])
    return TrajectoryBootstrap(trajectory, rng, data.sizes.resamples)


def collapsed(reading: Reading) -> str:
    """Why a critic counts as collapsed: it does not tell its goals from others, or says nothing."""
    auc = reading.get("auc")
    if auc is None:
        return ""
    low, high = (float(x) for x in auc.interval(0.95))
    if low <= 0.5 <= high or not np.isfinite(reading["tau"].point):
        return f"collapsed: retrieval AUC {float(auc.point):.3f} [{low:.3f}, {high:.3f}]"
    return ""


READERS: Final[Mapping[str, Callable[[Subject], Reading]]] = {
    "triples": read_triples,
    "seen": read_seen,
    "queries": read_queries,
    "ideal": read_ideal,
}
"""What needs nothing but the critic and its data."""
