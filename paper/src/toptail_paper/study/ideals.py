r"""The ideal critics of PointMaze: what each objective would score if it were learned perfectly.

With s' the simulated step from s by a, and the data of a collected ``navigate`` set:

``q_star``
    Q* = gamma^(1 + N): N the fewest steps from s' to within 1 of g (`toptail.lab.judges.exact`).
``q_behaviour``
    gamma E[gamma^T] of the policy beta(a | s) of the data, T its steps from s' to within 1 of g. It
    is what bootstrapping evaluates: the state does not contain the collector's goal.
``log_ratio``
    log p(g | s, a) - log p(g): p(g | s, a) is the density of the contrastive positives, geometric
    with gamma and cut at the trajectory's end. The hidden goal matters: actions are evidence of it.
``gamma_d``
    The minimizer of squared error to gamma^d at positives, and to 0 at as many random goals:
    E[gamma^d] p(g | s, a) / (p(g | s, a) + p(g)), the mean over positives at g.

Cut at the end of trajectories of L steps, the positives' offsets have the weights
gamma^(d-1) ((1 - gamma)(1 - d/L) + 1/L) over all rows. `cut_discount` is the geometric
distribution that agrees with them in the first d, and within 1 % up to d = 150.

``q_star`` has the error of `exact`; the others are those of a chain on a grid
(`toptail_paper.study.behaviour`), whose errors are in ``docs/references.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from toptail.lab.judges.exact import PointSteps, discounted, exact_origin
from toptail.lab.judges.point import TOLERANCE, Points, is_point_maze, next_positions
from toptail.lab.scorers.base import Score, Scorer
from toptail.lab.tasks.maze import Positions
from toptail.lab.tasks.names import parse_name, published_recipe
from toptail.lab.tasks.trajectories import IntArray
from toptail_paper.study.behaviour import SPACING, Behaviour, Table

_AT_ONCE = 64
_NO_CHANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Where the behaviour is d = 1, 2, ... steps later, weighed by (1 - z) z^(d-1)."""

    behaviour: Behaviour
    discount: float
    tables: list[Table]
    """For each hidden goal: sum of z^d over d >= 0 of being at a node, ``[n, n]``, from a node at
    which the point has just arrived; new goals follow those that are reached."""

    @classmethod
    def solve(cls, behaviour: Behaviour, discount: float) -> Occupancy:
        """Solve for all pairs of nodes."""
        cells, _, n = behaviour.reached.shape
        tables: list[Table] = []
        first, jump = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
        likely = np.repeat(behaviour.layout[1][:, None], n, axis=1)
        for cell, step in enumerate(behaviour.steps):
            table = resolvent(step, discount)
            table[np.diag_indices(n)] -= 1.0  # from here on without d = 0
            nodes, reach = _first_reach(table, behaviour.reached[cell], likely)
            first += table - reach @ table[nodes]
            jump[:, nodes] += reach
            tables.append(table)
        afresh = _continued(first / cells, jump / cells)
        for cell, table in enumerate(tables):
            tables[cell] = cls._after_arrival(behaviour, cell, table, afresh)
        return cls(behaviour, discount, tables)

    @staticmethod
    def _after_arrival(behaviour: Behaviour, cell: int, table: Table, afresh: Table) -> Table:
        """The sums where the goal's place is as likely as data has it at each node."""
        reached, arrived = behaviour.reached[cell], behaviour.arrivals[cell]
        total = arrived.sum(axis=0)
        known = total > 0
        place = np.where(known, arrived / np.where(known, total, 1.0), behaviour.layout[1][:, None])
        going = np.where(reached, 0.0, place)
        nodes, reach = _first_reach(table, reached, going)
        stays = going.sum(axis=0).astype(np.float32)[:, None]
        result = stays * table - reach @ (table[nodes] - afresh[nodes]) + (1 - stays) * afresh
        result[np.diag_indices(len(result))] += 1.0
        return np.asarray(result, np.float32)

    def density(self, weights: Points, after: Positions, goals: Positions) -> Points:
        """Density at ``goals`` [n, 2] of where the point will be after arriving at ``after``.

        ``weights`` [n, c] are P(G | s, a). The density is the grid's, smooth over one spacing.
        """
        nodes = self.behaviour
        (start, start_share), (end, end_share) = nodes.spread(after), nodes.spread(goals)
        total = np.zeros(len(weights))
        for table, chance in zip(self.tables, weights.T, strict=True):
            rows = np.flatnonzero(chance > _NO_CHANCE)
            pairs = table[start[rows][:, :, None], end[rows][:, None, :]]
            shares = chance[rows, None, None] * start_share[rows][:, :, None]
            total[rows] += (pairs * shares * end_share[rows][:, None, :]).sum(axis=(1, 2))
        return np.asarray(np.maximum(total, 0.0) * (1.0 - self.discount) / nodes.spacing**2)


@dataclass(frozen=True, eq=False)
class Hitting:
    """How soon the policy beta(a | s) comes within the tolerance of a place."""

    behaviour: Behaviour
    table: Table
    """Sum of z^d over d >= 0 of being at a node, ``[n, n]``."""

    @classmethod
    def solve(cls, behaviour: Behaviour, discount: float) -> Hitting:
        """Solve for all pairs of nodes."""
        return cls(behaviour, resolvent(behaviour.policy, discount))

    def value(self, after: Positions, goals: Positions) -> Points:
        """E z^T from ``after`` to ``goals`` [n, 2], T the steps until within the tolerance: [n]."""
        start, share = self.behaviour.spread(after)
        different, number = np.unique(goals, axis=0, return_inverse=True)
        order = np.argsort(number.ravel(), kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(number.ravel()[order])) + 1)
        found = np.empty(len(after))
        for goal, rows in zip(different, groups, strict=True):
            away = np.linalg.norm(self.behaviour.nodes - goal, axis=1)
            ball = np.flatnonzero(away <= max(TOLERANCE, float(away.min())))
            # The table's sums over the ball are those of the first visit, and of what follows it.
            once = scipy.linalg.solve(self.table[np.ix_(ball, ball)], np.ones(len(ball)))
            value = self.table[start[rows][:, :, None], ball] @ once
            value[np.isin(start[rows], ball)] = 1.0  # exactly
            found[rows] = (value * share[rows]).sum(axis=1)
        # No more digits than the table's, so that places within the tolerance are equally good.
        return found.astype(np.float32).astype(np.float64)


def _continued(first: Table, jump: Table) -> Table:
    """The sums with new goals: until the first one is reached, and again after each."""
    some = np.flatnonzero(jump.any(axis=0))
    inner = np.eye(len(some), dtype=np.float32) - jump[np.ix_(some, some)]
    again = scipy.linalg.solve(inner, first[some])
    return np.asarray(first + jump[:, some] @ again, np.float32)


def resolvent(step: Any, discount: float) -> Table:
    """Sum of z^d P^d over d >= 0, row by row from one sparse factorization."""
    n = step.shape[0]
    inner = (scipy.sparse.eye_array(n) - discount * step).tocsc().astype(np.float32)
    factors: Any = splu(scipy.sparse.csc_matrix(inner), permc_spec="MMD_AT_PLUS_A")
    table = np.empty((n, n), np.float32)
    for start in range(0, n, _AT_ONCE):
        rows = np.arange(start, min(start + _AT_ONCE, n))
        unit = np.zeros((n, len(rows)), np.float32, order="F")
        unit[rows, rows - start] = 1.0
        table[rows] = factors.solve(unit, trans="T").T
    return table


def _first_reach(
    table: Table, reached: NDArray[np.bool_], weights: Points
) -> tuple[IntArray, Table]:
    """Nodes where a goal may be reached, and E z^T there, summed with weights [places, n].

    ``table`` has the sums over d >= 1 of the chain in which no goal is reached: its sums at a set
    of nodes are those of the first visit to the set, and of what follows it, d >= 0.
    """
    nodes = np.flatnonzero(reached.any(axis=0))
    total = np.zeros((len(table), len(nodes)), np.float32)
    for inside, weight in zip(reached, weights, strict=True):
        ball = np.flatnonzero(inside)
        among = table[np.ix_(ball, ball)] + np.eye(len(ball), dtype=np.float32)
        first = table[:, ball] @ scipy.linalg.inv(among)
        total[:, np.searchsorted(nodes, ball)] += weight[:, None].astype(np.float32) * first
    return nodes, total


Rows = NDArray[np.floating[Any]]


def cut_discount(gamma: float, steps: int) -> float:
    """The discount of a geometric distribution near that of offsets cut after so many steps."""
    return float(gamma * np.exp(-(1.0 - gamma) / (steps * (1.0 - gamma) + 1.0)))


def knows_ideals(task: str) -> bool:
    """Whether the ideal critics of a data set are known: PointMaze's, collected as ``navigate``."""
    return is_point_maze(task) and parse_name(task).kind == "navigate"


@dataclass(frozen=True, eq=False)
class PointIdeals:
    """The ideal critics of one data set; each is solved on its first use."""

    task: str
    gamma: float
    """Discount of values and of positives."""
    spacing: float = SPACING
    """Distance of the grid's nodes."""

    @cached_property
    def behaviour(self) -> Behaviour:
        """The chain that collected the data."""
        recipe = published_recipe(parse_name(self.task))
        assert recipe is not None  # known of every PointMaze
        return Behaviour(self._point_steps.maze, recipe.noise, recipe.rows, self.spacing)

    @cached_property
    def _point_steps(self) -> PointSteps:
        return PointSteps.of(self.task)

    @cached_property
    def _cut(self) -> float:
        return cut_discount(self.gamma, self.behaviour.rows - 1)

    @cached_property
    def _near(self) -> Occupancy:
        return Occupancy.solve(self.behaviour, self._cut)

    @cached_property
    def _nearer(self) -> Occupancy:
        return Occupancy.solve(self.behaviour, self._cut * self.gamma)

    @cached_property
    def _hitting(self) -> Hitting:
        return Hitting.solve(self.behaviour, self.gamma)

    def _after(self, states: Rows, actions: Rows) -> Points:
        return next_positions(self.task, states, actions)

    def _marginal(self, goals: Rows) -> Points:
        """Density p(g) of positives anywhere, which is that of the data's rows."""
        nodes, share = self.behaviour.spread(goals)
        return np.asarray((self.behaviour.marginal[nodes] * share).sum(axis=1) / self.spacing**2)

    def q_star(self, states: Rows, actions: Rows, goals: Rows) -> Points:
        """The optimal value of rows ``[n, 2]``: ``[n]``."""
        after = self._after(states, actions)
        return discounted(1 + self._point_steps.steps(after, goals), self.gamma)

    def q_behaviour(self, states: Rows, actions: Rows, goals: Rows) -> Points:
        """The value of the behaviour's policy."""
        return self.gamma * self._hitting.value(self._after(states, actions), goals)

    def log_ratio(self, states: Rows, actions: Rows, goals: Rows) -> Points:
        """The minimizer of binary NCE, up to the constant log(B - 1)."""
        weights = self.behaviour.goal_weights(states, actions)
        density = self._near.density(weights, self._after(states, actions), goals)
        return np.asarray(np.log(np.maximum(density, _LEAST)) - np.log(self._marginal(goals)))

    def gamma_d(self, states: Rows, actions: Rows, goals: Rows) -> Points:
        """The minimizer of squared error to gamma^d, with random goals as often as positives."""
        weights, after = self.behaviour.goal_weights(states, actions), self._after(states, actions)
        soon, any_time = (o.density(weights, after, goals) for o in (self._nearer, self._near))
        mass = self.gamma * (1.0 - self._cut) / (1.0 - self._cut * self.gamma)
        return np.asarray(mass * soon / (any_time + self._marginal(goals)))

    def scores(self) -> dict[str, Callable[[Rows, Rows, Rows], Points]]:
        return {
            "q_star": self.q_star,
            "q_behaviour": self.q_behaviour,
            "log_ratio": self.log_ratio,
            "gamma_d": self.gamma_d,
        }

    def origin(self, name: str) -> dict[str, Any]:
        """Everything that decides an ideal critic's scores, as JSON, and how exact they are."""
        if name == "q_star":
            return {**exact_origin(self.gamma), "ideal": name}
        return {
            "ideal": name,
            "task": self.task,
            "gamma": self.gamma,
            "spacing": self.spacing,
            "places": self.behaviour.places,
            "exactness": "a chain on a grid: see docs/references.md for its error",
        }


_LEAST = 1e-12
"""A density below this is rounding."""


@cache
def point_ideals(task: str, gamma: float, spacing: float = SPACING) -> PointIdeals:
    return PointIdeals(task, gamma, spacing)


def ideal_scorers(task: str, gamma: float) -> list[Scorer]:
    """The ideal critics of a PointMaze data set as scorers; solving for them takes minutes."""
    ideals = point_ideals(task, gamma)
    return [
        Scorer(name, _in_float32(score), ideals.origin(name))
        for name, score in ideals.scores().items()
    ]


def _in_float32(score: Callable[..., NDArray[Any]]) -> Score:
    def scored(states: Rows, actions: Rows, goals: Rows) -> NDArray[np.float32]:
        return np.asarray(score(states, actions, goals), np.float32)

    return scored
