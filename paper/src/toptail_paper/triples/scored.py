"""``ScoredTriples``: (state, action, goal) triples of recorded trajectories, with scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.columns import group_seeds, split_seed
from toptail.pools.scored import Container, named
from toptail.stats.best_of_k import Floats, Ints

_INDICES = ("rows", "goal_rows", "trajectory")
_GOALS = {
    "negatives": "negative_rows",
    "hard_negatives": "hard_negative_rows",
    "second_goals": "second_goal_rows",
}
"""Scores of other goals -> the field with the rows of those goals."""
_FAMILIES = ("scores", "readouts", *_GOALS, "next_scores", "query_means", "values")

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False, repr=False)
class ScoredTriples(Container):
    """Triples (s_t, a_t, g = s_{t+d}) with their scores, and the scores of other goals.

    Every mapping goes from a column's name to an array of float32 or float64; ``raw@42`` is
    training seed 42 of the scorer ``raw``. Larger scores are better. Entries that a diagnostic
    uses are finite.
    """

    rows: Ints
    """Row t of the state and the action in the data, ``[n]``."""
    goal_rows: Ints
    """Row t + d of the goal, ``[n]``."""
    trajectory: Ints
    """The trajectory that both are on, ``[n]``; intervals resample whole trajectories."""
    gamma: float
    """Discount of the return-to-go γ^d."""
    scores: Columns
    """Deployed score of the triple, f(s_t, a_t, g), ``[n]``."""
    readouts: Columns = field(default_factory=dict)
    """Other scalars read from a trained scorer (``raw:cosine@42``, ``raw:norm@42``), ``[n]``."""
    negatives: Columns = field(default_factory=dict)
    """Scores f(s_t, a_t, g⁻) of goals of triples on other trajectories, ``[n, m]``."""
    negative_rows: Ints | None = None
    """Rows of those goals, ``[n, m]``."""
    hard_negatives: Columns = field(default_factory=dict)
    """Scores of the goal of the nearest-state triple on another trajectory, ``[n]``."""
    hard_negative_rows: Ints | None = None
    """Rows of those goals, ``[n]``."""
    second_goals: Columns = field(default_factory=dict)
    """Scores of a second future state of the same trajectory, ``[n]``; unused where none."""
    second_goal_rows: Ints | None = None
    """Rows t + d' of the second goals, ``[n]``; -1 where a triple has none."""
    next_scores: Columns = field(default_factory=dict)
    """Scores one step on, f(s_{t+1}, a_{t+1}, g), ``[n]``; unused where d = 1."""
    step_reward: Mapping[str, float] = field(default_factory=dict)
    """Reward of a step that misses the goal, by scorer (no seed), for those with next scores."""
    query_means: Columns = field(default_factory=dict)
    """Mean score of behaviour-model actions at the same (s_t, g), ``[n]``."""
    values: Columns = field(default_factory=dict)
    """Another judge's value of the triple, ``[n]``."""
    source: str = "memory"
    """The origin of the triples, for errors."""

    def __post_init__(self) -> None:
        self._check_indices()
        if not self.scores:
            raise InputError(f"{self.source}: at least one score column is needed.")
        group_seeds(self.scores, self.source)
        width = 0 if self.negative_rows is None else self.negative_rows.shape[1]
        looked_at = {
            "next_scores": self.distance >= 2,
            "second_goals": np.zeros(len(self), bool)
            if self.second_goal_rows is None
            else self.second_goal_rows >= 0,
        }
        for family in _FAMILIES:
            shape = (len(self), width) if family == "negatives" else (len(self),)
            for name, column in getattr(self, family).items():
                self._check_column(family, name, column, shape, looked_at.get(family))
        for name in self.next_scores:
            scorer = split_seed(name)[0]
            if not np.isfinite(self.step_reward.get(scorer, np.nan)):
                raise InputError(
                    f"{self.source}: 'step_reward' has no finite number for '{scorer}', which has "
                    "next-step scores; give the reward of a step that misses the goal."
                )

    def __len__(self) -> int:
        return self.rows.size

    @property
    def distance(self) -> Ints:
        """Steps d from the state to the goal, ``[n]``."""
        return self.goal_rows - self.rows

    @property
    def second_distance(self) -> Ints:
        """Steps d' from the state to the second goal, ``[n]``; -1 where there is none."""
        if self.second_goal_rows is None:
            return np.full(len(self), -1, dtype=np.int64)
        return np.where(self.second_goal_rows >= 0, self.second_goal_rows - self.rows, -1)

    @property
    def value(self) -> Floats:
        """Return-to-go γ^d of the goal along the recorded trajectory, ``[n]``."""
        return np.power(self.gamma, self.distance, dtype=np.float64)

    @property
    def scorers(self) -> dict[str, dict[int | None, str]]:
        """Scorer -> training seed -> its column; the seed of a scorer without seeds is None."""
        return group_seeds(self.scores, self.source)

    def _summary(self) -> str:
        trajectories = f"{np.unique(self.trajectory).size:,} trajectories"
        return f"{len(self):,} triples on {trajectories}; scores {named(self.scores)}"

    def column(self, family: str, name: str) -> Floats:
        """A stored column as float64, or an :class:`InputError` that lists those there are."""
        columns: Columns = getattr(self, family)
        if name not in columns:
            raise InputError(
                f"{self.source}: there is no '{name}' among the {family.replace('_', ' ')}; "
                f"stored are: {', '.join(columns) or 'none'}."
            )
        return np.asarray(columns[name], dtype=np.float64)

    def _check_indices(self) -> None:
        n, where = self.rows.size, self.source
        if n == 0:
            raise InputError(f"{where}: there are no triples; draw at least one.")
        for name in (*_INDICES, *_GOALS.values()):
            array: Ints | None = getattr(self, name)
            if array is None:
                continue
            wide = name == "negative_rows"
            fits = array.ndim == (2 if wide else 1) and len(array) == n and array.size > 0
            if array.dtype != np.int64 or not fits:
                raise InputError(
                    f"{where}: '{name}' is {array.dtype} of shape {array.shape}, expected int64 "
                    f"of shape {'[n, m]' if wide else '[n]'} with n = {n} triples."
                )
        if not 0.0 < self.gamma < 1.0:
            raise InputError(f"{where}: gamma is {self.gamma}, expected a number between 0 and 1.")
        _refuse(where, "goal_rows", self.goal_rows <= self.rows, "is not after the state's row")
        for name in ("negative_rows", "hard_negative_rows"):
            if getattr(self, name) is not None:
                self._check_elsewhere(name, getattr(self, name).reshape(n, -1))
        if self.second_goal_rows is not None:
            second = self.second_goal_rows
            bad = (second >= 0) & ((second <= self.rows) | (second == self.goal_rows))
            bad |= second < -1
            what = "is neither -1 nor a later row than the state's, other than the goal's"
            _refuse(where, "second_goal_rows", bad, what)

    def _check_elsewhere(self, name: str, goals: Ints) -> None:
        """Each goal must be the goal of a triple on another trajectory."""
        known, first = np.unique(self.goal_rows, return_index=True)
        at = np.minimum(np.searchsorted(known, goals), known.size - 1)
        elsewhere = self.trajectory[first[at]] != self.trajectory[:, None]
        bad = ~((known[at] == goals) & elsewhere).all(axis=1)
        _refuse(self.source, name, bad, "is not the goal of a triple on another trajectory")

    def _check_column(
        self,
        family: str,
        name: str,
        column: NDArray[Any],
        shape: tuple[int, ...],
        looked_at: NDArray[np.bool_] | None,
    ) -> None:
        where = f"{self.source}: column '{name}' of '{family}'"
        if family in _GOALS and getattr(self, _GOALS[family]) is None:
            raise InputError(f"{where} needs '{_GOALS[family]}', the rows of the goals it scores.")
        if column.dtype not in (np.float32, np.float64) or column.shape != shape:
            raise InputError(
                f"{where} is {column.dtype} of shape {column.shape}, expected float32 or float64 "
                f"of shape {shape}."
            )
        bad = ~np.isfinite(column.reshape(len(self), -1)).all(axis=1)
        if looked_at is not None:
            bad &= looked_at
        if bad.any():
            raise InputError(
                f"{where} is not finite at triple {int(np.argmax(bad)) + 1}; every score and "
                "value must be a finite number."
            )


def _refuse(where: str, name: str, bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        raise InputError(f"{where}: '{name}' of triple {int(np.argmax(bad)) + 1} {what}.")
