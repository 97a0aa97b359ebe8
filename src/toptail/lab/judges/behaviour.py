r"""PointMaze's collecting behaviour as a Markov chain on a grid, solved without sampling.

What ``toptail data collect`` does is known: with a hidden goal in cell G the point is at x, the
action is a = clip(u_G(x) + 0.5 z, -1, 1) with u_G(x) the unit vector towards the next cell's centre
and z standard normal, and it moves by 0.2 a, stopped by walls. Within 1 of the goal a new one is
drawn: one of the cells that are no straight corridor, and in it a place uniform within 1 of the
centre on each axis. So (x, G, place) is a Markov chain, observed through x alone.

Here x lives on the nodes of a grid. A step goes to three nodes on each axis, with the mean of the
true step and its variance (or, where three nodes cannot have it, the smallest that they can); nodes
inside walls stand for the nearest free one. The goal's place takes the `PLACES` values of Gauss's
rule on each axis.

Three things are solved for, the last two for all pairs of nodes at once:

- `Behaviour.rho`: how often data has the point at x with the hidden goal G, by stepping the chain
  from the package's starts to the last row;
- `Occupancy`: sum_d (1 - z) z^(d-1) P(x_{t+d} = y | x_{t+1}, G). Between two new goals this is the
  resolvent of the chain of G; what new goals change has the rank of the few nodes where one is
  reached, and is put in afterwards;
- `Hitting`: E z^T of the *policy* beta(a | x) = sum_G P(G | x) beta(a | x, G), which forgets its
  goal at every step, with T the steps until it is within 1 of a place.

The action says something of the hidden goal: P(G | s, a) goes with P(G | s) beta(a | s, G).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import splu
from scipy.spatial import KDTree
from scipy.special import log_ndtr, ndtr

from toptail.lab.judges.euclidean import Geodesic
from toptail.lab.judges.point import POINT_RADIUS, STEP, TOLERANCE, Points
from toptail.lab.tasks.maze import UNIT, Maze, Positions
from toptail.lab.tasks.trajectories import IntArray

Table = NDArray[np.float32]

SPACING = 1 / 3
"""Distance of the grid's nodes."""
PLACES = 7
"""Places of the hidden goal on each axis of its cell."""
GOAL_REACH = 1.0
"""How far from its cell's centre a goal lies, on each axis, at most."""
SETTLED = 1e-4
"""A step that moves less than this share of the rows: those that follow are alike."""
_LOOK = 10
_AT_ONCE = 64
_NO_CHANCE = 1e-6
_EDGE = 1e-5
"""Actions so close to the box's edge were clipped."""


def _no_tick(_share: float) -> None:
    """Tell nobody."""


@dataclass(frozen=True, eq=False)
class Behaviour:
    """The chain of one maze."""

    maze: Maze
    """Where the walls are."""
    noise: float = 0.5
    """Standard deviation of the noise on an action."""
    rows: int = 1_001
    """Rows of an episode."""
    spacing: float = SPACING
    """Distance of the nodes; a whole number of them makes a cell."""
    places: int = PLACES
    """Places of the hidden goal on each axis."""

    @cached_property
    def _lattice(self) -> tuple[NDArray[np.bool_], Points, IntArray]:
        """Which lattice points are nodes ``[y, x]``, the nodes, and the node nearest to each."""
        rows, columns = self.maze.walls.shape
        x, y = (np.arange(n * round(UNIT / self.spacing)) for n in (columns, rows))
        at = np.stack(np.meshgrid(x, y), axis=-1) * self.spacing - UNIT * 1.5
        free = Geodesic(self.maze).wall_distance(at) >= POINT_RADIUS - 1e-9
        nodes = at[free]
        return free, nodes, np.asarray(KDTree(nodes).query(at)[1], np.int64)

    @property
    def nodes(self) -> Points:
        """Positions of the nodes, ``[n, 2]``."""
        return self._lattice[1]

    @cached_property
    def goals(self) -> IntArray:
        """Cells that a hidden goal may be in, ``[c]``."""
        return self.maze.vertices

    def spread(self, points: Positions) -> tuple[IntArray, Points]:
        """Nodes ``[n, 4]`` around points ``[n, 2]`` and their weights, which are bilinear."""
        nearest = self._lattice[2]
        place = (np.asarray(points, np.float64) + UNIT * 1.5) / self.spacing
        low = np.clip(np.floor(place).astype(np.int64), 0, np.array(nearest.shape)[::-1] - 2)
        part = place - low
        found, weights = [], []
        for dx in (0, 1):
            for dy in (0, 1):
                found.append(nearest[low[:, 1] + dy, low[:, 0] + dx])
                share = [np.where(d, part[:, i], 1 - part[:, i]) for i, d in enumerate((dx, dy))]
                weights.append(share[0] * share[1])
        return np.stack(found, axis=1), np.stack(weights, axis=1)

    def direction(self, points: Positions, goal: int) -> Points:
        """The noiseless action at points ``[n, 2]`` with the hidden goal in a cell."""
        to = self.maze.centre(self.maze.next_cell[self.maze.cell(points), goal]) - points
        return np.asarray(to / (np.linalg.norm(to, axis=1, keepdims=True) + 1e-6))

    @cached_property
    def steps(self) -> list[scipy.sparse.csr_array]:
        """The chain of each hidden goal that is never reached, ``[n, n]`` each."""
        return [self._step(int(goal)) for goal in self.goals]

    def _step(self, goal: int) -> scipy.sparse.csr_array:
        n, nearest = len(self.nodes), self._lattice[2]
        mean, variance = clipped_moments(self.direction(self.nodes, goal), self.noise)
        move, spread = mean * STEP / self.spacing, variance * (STEP / self.spacing) ** 2
        middle = np.rint(move)
        chance = _three_nodes(move - middle, spread)
        at = np.rint((self.nodes + UNIT * 1.5) / self.spacing) + middle
        rows, columns, shares = [], [], []
        for dx in range(3):
            for dy in range(3):
                x, y = (at + np.array([dx - 1, dy - 1])).astype(np.int64).T
                rows.append(np.arange(n))
                columns.append(nearest[y, x])
                shares.append(chance[dx, :, 0] * chance[dy, :, 1])
        entries = (np.concatenate(shares), (np.concatenate(rows), np.concatenate(columns)))
        return scipy.sparse.csr_array(entries, shape=(n, n))

    @cached_property
    def layout(self) -> tuple[Points, Points]:
        """Where a goal lies around its cell's centre ``[p, 2]``, and how likely ``[p]``.

        By Gauss's rule, which has nodes near the corners: a goal there is found late, while the
        point lingers at the centre.
        """
        along, weight = np.polynomial.legendre.leggauss(self.places)
        offset = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
        return offset * GOAL_REACH, np.outer(weight, weight).ravel() / 4

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """Nodes within the tolerance of each place of each goal, ``[c, places, n]``."""
        at = self.maze.centre(self.goals)[:, None] + self.layout[0]
        away = np.linalg.norm(self.nodes - at[:, :, None], axis=-1)
        return np.asarray(away <= TOLERANCE + 1e-9)

    @cached_property
    def _flows(self) -> tuple[Points, Points]:
        """``rho`` and ``arrivals``: the chain's mean over the rows of an episode."""
        cells, places, n = self.reached.shape
        free = self.maze.centre(self.maze.free)
        start = (np.abs(self.nodes - free[:, None]).max(axis=2) <= GOAL_REACH).sum(axis=0)
        state = np.empty((cells, n, places), np.float32)
        state[:] = np.outer(start / start.sum() / cells, self.layout[1])
        at, arrived = np.zeros((cells, n)), np.zeros((cells, n, places), np.float32)
        turned = [step.T.tocsr().astype(np.float32) for step in self.steps]
        for row in range(self.rows - 1):
            after = np.stack([p @ s for p, s in zip(turned, state, strict=True)])
            new = self._with_new_goals(after)
            settled = row % _LOOK == 0 and np.abs(new - state).sum() < SETTLED
            rest = self.rows - 1 - row if settled else 1
            at += rest * state.sum(axis=2)
            arrived += rest * after
            if settled:
                break
            state = new
        return at / (self.rows - 1), arrived.transpose(0, 2, 1) / (self.rows - 1)

    def _with_new_goals(self, arrived: Table) -> Table:
        """The chain's state ``[c, n, places]`` after those who reached their goal drew another."""
        new, fresh = arrived.copy(), np.zeros(len(self.nodes), np.float32)
        for state, reached in zip(new, self.reached, strict=True):
            near = np.flatnonzero(reached.any(axis=0))
            done = np.where(reached[:, near].T, state[near], 0.0)
            state[near] -= done
            fresh[near] += done.sum(axis=1)
        some = np.flatnonzero(fresh)
        new[:, some] += np.outer(fresh[some] / len(new), self.layout[1])
        return new

    @property
    def rho(self) -> Points:
        """Share of data rows at each node with each hidden goal, ``[c, n]``."""
        return self._flows[0]

    @property
    def arrivals(self) -> Points:
        """Share of steps that arrive at a node, by hidden goal and its place, ``[c, places, n]``.

        A goal that is reached there still counts as it was.
        """
        return self._flows[1]

    @cached_property
    def marginal(self) -> Points:
        """Share of data rows at each node, ``[n]``."""
        return np.asarray(self.rho.sum(axis=0))

    def goal_weights(self, states: Positions, actions: Positions) -> Points:
        """P(G | s, a) of states and actions ``[n, 2]``: ``[n, c]``."""
        nodes, share = self.spread(states)
        prior = np.einsum("nk,cnk->nc", share, self.rho[:, nodes])
        likelihood = np.stack(
            [
                clipped_log_density(actions, self.direction(states, int(g)), self.noise)
                for g in self.goals
            ],
            axis=1,
        )
        weights = prior * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    @cached_property
    def policy(self) -> scipy.sparse.csr_array:
        """The chain of the policy beta(a | x), which forgets its goal at every step, ``[n, n]``."""
        share = self.rho / np.maximum(self.marginal, 1e-300)
        parts = zip(share, self.steps, strict=True)
        total = sum(scipy.sparse.diags_array(part) @ step for part, step in parts)
        return scipy.sparse.csr_array(total)


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
            found[rows] = (value * share[rows]).sum(axis=1)
        return found


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


def _three_nodes(move: Points, variance: Points) -> Points:
    """Chances of the nodes -1, 0, 1 ``[3, ...]`` with a mean in [-1/2, 1/2] and a variance."""
    square = np.maximum(variance, np.abs(move) - move**2) + move**2
    return np.stack([(square - move) / 2, 1 - square, (square + move) / 2])


def clipped_moments(mean: Points, noise: float) -> tuple[Points, Points]:
    """Mean and variance of clip(mean + noise z, -1, 1), z standard normal."""
    low, high = (-1.0 - mean) / noise, (1.0 - mean) / noise
    inside, bells = ndtr(high) - ndtr(low), (_bell(low), _bell(high))
    one = mean * inside + noise * (bells[0] - bells[1])
    two = (mean**2 + noise**2) * inside + 2 * mean * noise * (bells[0] - bells[1])
    two += noise**2 * (low * bells[0] - high * bells[1])
    below, above = ndtr(low), ndtr(-high)
    first = one + above - below
    return first, np.maximum(two + above + below - first**2, 0.0)


def clipped_log_density(actions: Positions, mean: Points, noise: float) -> Points:
    """Log density of clip(mean + noise z, -1, 1) at actions ``[n, a]``, summed over axes: ``[n]``.

    At the box's edge it is the logarithm of the chance to be clipped there; either way densities
    of one action may be compared over means.
    """
    z = (actions - mean) / noise
    inner = -0.5 * z**2
    edge = np.sign(actions)
    clipped = np.where(edge > 0, log_ndtr((mean - 1.0) / noise), log_ndtr((-1.0 - mean) / noise))
    parts = np.where(np.abs(actions) >= 1.0 - _EDGE, clipped, inner)
    return np.asarray(parts.sum(axis=-1))


def _bell(z: Points) -> Points:
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi))
