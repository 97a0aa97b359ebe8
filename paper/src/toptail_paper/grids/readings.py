"""What is read from a trained critic on recorded data: triples, fixed queries, the ideal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from toptail.errors import InputError
from toptail.lab.critics.base import TrainedCritic
from toptail.lab.critics.registry import split_label
from toptail.lab.judges.exact import exact_values
from toptail.lab.judges.point import is_point_maze
from toptail.lab.scorers.base import Rows, Score
from toptail.lab.scorers.runs import RunScore
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.names import Split
from toptail.lab.tasks.neighbours import nearest_rows
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.tasks.triples import Triples, negatives, sample_triples
from toptail.lab.training.config import RunConfig
from toptail.lab.training.data import OfflineData, device_data
from toptail.stats import best_of_k, kendall_tau_b
from toptail_paper.grids.cells import Reading
from toptail_paper.grids.grid import Sizes
from toptail_paper.semantics.scoring import evaluate
from toptail_paper.study.ideals import knows_ideals, point_ideals
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.draws import hard_negatives, second_goals
from toptail_paper.triples.retrieval import (
    hard_negative_win_rate,
    nearer_goal_win_rate,
    recall,
    retrieval_auc,
)
from toptail_paper.triples.scored import ScoredTriples
from toptail_paper.triples.search import cross_query, saturation
from toptail_paper.triples.value_order import calibration, calibration_gap, ordering


@dataclass(frozen=True, eq=False)
class DrawnTriples:
    """What a critic is shown of one split."""

    triples: Triples
    """Rows of states, actions and goals."""
    negative_rows: IntArray
    """``[n, m]`` goals of other trajectories."""
    hard_negative_rows: IntArray
    """``[n]`` the goal of the nearest-state triple on another trajectory."""
    second_goal_rows: IntArray
    """``[n]`` a second goal of the same trajectory, -1 where there is none."""


@dataclass(frozen=True, eq=False)
class GridData:
    """One data set of a grid, and what is drawn from it, each when it is first needed."""

    name: str
    """As the grid has it."""
    task: TaskDataset
    width: int
    """Columns of an observation that are the task's own."""
    sizes: Sizes
    """How much is drawn."""

    @classmethod
    def load(cls, name: str, sizes: Sizes) -> GridData:
        """Load ``NAME`` or ``NAME[coordinates=8]``."""
        path, settings = split_label(name)
        if settings.keys() - {"coordinates"} or not settings.get("coordinates", "0").isdigit():
            raise InputError(f"{name}: a data set has the setting 'coordinates' alone, a number.")
        task = TaskDataset.load(path)
        width = task.data.train.observations.shape[1]
        count = int(settings.get("coordinates", 0))
        if count:
            rng = np.random.default_rng([sizes.draw_seed, count])
            splits = (task.data.train, task.data.val)
            train, val = (with_coordinates(split, count, rng) for split in splits)
            task = replace(task, data=replace(task.data, train=train, val=val))
        return cls(name, task, width, sizes)

    @cached_property
    def rows(self) -> OfflineData:
        """The training split on the device."""
        return device_data(self.task.data.train)

    @cached_property
    def held_out(self) -> DrawnTriples:
        """Triples of the validation split."""
        return self._drawn("val")

    @cached_property
    def seen(self) -> DrawnTriples:
        return self._drawn("train")

    def _drawn(self, name: Split) -> DrawnTriples:
        sizes, split = self.sizes, self.task.split(name)
        rng = np.random.default_rng([sizes.draw_seed, name == "train"])
        triples = sample_triples(split, sizes.triples, rng, sizes.max_offset, sizes.gamma)
        second = second_goals(triples, split, rng, sizes.max_offset)
        others = negatives(triples, sizes.negatives, rng)
        return DrawnTriples(triples, others, hard_negatives(triples, split), second)

    def near_rows(self, name: Split, drawn: DrawnTriples) -> IntArray:
        """Rows ``[queries, k]`` of the nearest states of other trajectories, whose actions compete.

        Near by the task's own columns, for the first triples of a split.
        """
        split, anchors = self.task.split(name), drawn.triples.rows[: self.sizes.queries]
        rows = split.transitions
        inside, own = np.searchsorted(rows, anchors), split.observations[rows][:, : self.width]
        found: IntArray = rows[nearest_rows(own, inside, self.sizes.k, split.trajectory[rows])]
        return found


def with_coordinates(split: Trajectories, count: int, rng: np.random.Generator) -> Trajectories:
    """The trajectories with ``count`` normal numbers, constant along each, appended to states."""
    each = rng.standard_normal((len(split.ends), count)).astype(np.float32)
    observations = np.concatenate([split.observations, each[split.trajectory]], axis=1)
    return replace(split, observations=observations)


_COLUMN: Final = "score"
_RESAMPLING: Final = 7


@dataclass(frozen=True, eq=False)
class Subject:
    """One trained critic on one data set."""

    trained: TrainedCritic
    """The critic, in float32."""
    config: RunConfig
    seed: int
    data: GridData

    @property
    def score(self) -> RunScore:
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
    if is_point_maze(data.task.name):
        queries = query_metrics(subject.score, data, "train")
        found |= {f"seen_{name}": estimate for name, estimate in queries.items()}
    return found


def read_queries(subject: Subject) -> Reading:
    """Selection among the actions of near states, by the exact value."""
    data = subject.data
    require_exact_value(data, "queries")
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


def triple_metrics(score: Score, data: GridData, name: Split, drawn: DrawnTriples) -> Reading:
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
def near_pools(data: GridData, name: Split) -> NearPools:
    """The queries of a split: the first triples, with the actions of their nearest states."""
    drawn = data.held_out if name == "val" else data.seen
    rows, t = data.near_rows(name, drawn), drawn.triples
    at, goals, trajectory = (x[: len(rows)] for x in (t.rows, t.goal_rows, t.trajectory))
    actions = data.task.split(name).actions[rows]
    values = query_values(data, name, at, actions, goals)
    return NearPools(at, goals, actions, values, trajectory)


def query_metrics(score: Score, data: GridData, name: Split) -> Reading:
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
    data: GridData, name: Split, at: np.ndarray, actions: np.ndarray, goals: np.ndarray
) -> np.ndarray:
    """Exact values ``[q, n]`` of candidates ``[q, n, 2]`` at rows and goals of a split."""
    own = data.task.split(name).observations[:, : data.width]
    task, gamma = data.task.name, data.sizes.gamma
    return exact_values(task, own[at], actions, own[goals], gamma).astype(np.float64)


def require_exact_value(data: GridData, what: str) -> None:
    if not is_point_maze(data.task.name):
        raise InputError(f"{data.name} has no exact value, which '{what}' needs: use PointMaze.")


def bootstrap_of(trajectory: np.ndarray, data: GridData) -> TrajectoryBootstrap:
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
