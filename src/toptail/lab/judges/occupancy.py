r"""What the behaviour of `toptail.lab.judges.behaviour` does later, for all pairs of nodes at once.

- `Occupancy`: sum_d (1 - z) z^(d-1) P(x_{t+d} = y | x_{t+1}, G). Between two new goals this is the
  resolvent of the chain of G; what new goals change has the rank of the few nodes where one is
  reached, and is put in afterwards.
- `Hitting`: E z^T of the *policy* beta(a | x) = sum_G P(G | x) beta(a | x, G), which forgets its
  goal at every step, with T the steps until it is within 1 of a place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from toptail.lab.judges.behaviour import Behaviour, Table
from toptail.lab.judges.point import TOLERANCE, Points
from toptail.lab.tasks.maze import Positions
from toptail.lab.tasks.trajectories import IntArray

_AT_ONCE = 64
_NO_CHANCE = 1e-6


def _no_tick(_share: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True, eq=False)
class Occupancy:
    """Where the behaviour is d = 1, 2, ... steps later, weighed by (1 - z) z^(d-1)."""

    behaviour: Behaviour
    """The chain."""
    discount: float
    """The discount z."""
    tables: list[Table]
    """For each hidden goal: sum of z^d over d >= 0 of being at a node, ``[n, n]``, from a node at
    which the point has just arrived; new goals follow those that are reached."""

    @classmethod
    def solve(
        cls, behaviour: Behaviour, discount: float, tick: Callable[[float], None] = _no_tick
    ) -> Occupancy:
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
            tick(0.6 * (cell + 1) / cells)
        afresh = _continued(first / cells, jump / cells)
        for cell, table in enumerate(tables):
            tables[cell] = cls._after_arrival(behaviour, cell, table, afresh)
            tick(0.6 + 0.4 * (cell + 1) / cells)
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
    """How soon the policy that forgets its goal comes within the tolerance of a place."""

    behaviour: Behaviour
    """The chain."""
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
            # What the table has in the ball is the first visit there, and then what follows.
            once = scipy.linalg.solve(self.table[np.ix_(ball, ball)], np.ones(len(ball)))
            value = self.table[start[rows][:, :, None], ball] @ once
            value[np.isin(start[rows], ball)] = 1.0  # not what rounding makes of it
            found[rows] = (value * share[rows]).sum(axis=1)
        # No more digits than the table has: places within the tolerance are equally good.
        return found.astype(np.float32).astype(np.float64)


def _continued(first: Table, jump: Table) -> Table:
    """The sums where new goals follow: first, and after each jump to a new goal again."""
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

    ``table`` has the sums over d >= 1 of the chain in which nothing is reached: what it has at a
    set of nodes is the first visit to the set, and then whatever follows, d >= 0.
    """
    nodes = np.flatnonzero(reached.any(axis=0))
    total = np.zeros((len(table), len(nodes)), np.float32)
    for inside, weight in zip(reached, weights, strict=True):
        ball = np.flatnonzero(inside)
        among = table[np.ix_(ball, ball)] + np.eye(len(ball), dtype=np.float32)
        first = table[:, ball] @ scipy.linalg.inv(among)
        total[:, np.searchsorted(nodes, ball)] += weight[:, None].astype(np.float32) * first
    return nodes, total
