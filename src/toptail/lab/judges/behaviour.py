r"""PointMaze's collecting behaviour as a Markov chain on a grid, solved without sampling.

What ``toptail data collect`` does is known: with a hidden goal in cell G the point is at x, the
action is a = clip(u_G(x) + 0.5 z, -1, 1) with u_G(x) the unit vector towards the next cell's centre
and z standard normal, and it moves by 0.2 a, stopped by walls. Within 1 of the goal a new one is
drawn: one of the cells that are no straight corridor, and in it a place uniform within 1 of the
centre on each axis. So (x, G, place) is a Markov chain, observed through x alone.

Here x lives on the nodes of a grid. A step goes to three nodes on each axis, with the mean of the
true step and its variance (or, where three nodes cannot have it, the smallest that they can); nodes
inside walls stand for the nearest free one. The goal's place takes `PLACES` values on each axis.

Three things are solved for, each for all pairs of nodes at once:

- ``rho``: how often data has the point at x with the hidden goal G, by stepping the chain from the
  package's starts to the last row;
- ``occupied(z)``: sum_d (1 - z) z^(d-1) P(x_{t+d} = y | x_{t+1}, G). Between two new goals this is
  the resolvent of the chain of G; what a new goal changes has the rank of the few nodes where one is
  reached, and is put in afterwards;
- ``hitting(goals)``: E z^T of the *policy* beta(a | x) = sum_G P(G | x) beta(a | x, G), which
  forgets its goal at every step, with T the steps until it is within 1 of the goal.

The action says something of the hidden goal: P(G | s, a) is proportional to P(G | s) beta(a | s, G).
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

from toptail.lab.judges.point import POINT_RADIUS, STEP, TOLERANCE, Points
from toptail.lab.tasks.maze import UNIT, Maze, Positions
from toptail.lab.tasks.trajectories import IntArray

Table = NDArray[np.float32]

SPACING = 0.25
"""Distance of the grid's nodes."""
PLACES = 5
"""Places of the hidden goal on each axis of its cell."""
GOAL_REACH = 1.0
"""How far from its cell's centre a goal lies, on each axis, at most."""
SETTLED = 1e-5
"""A step that moves less than this share of the rows: those that follow are alike."""
_AT_ONCE = 64
_EDGE = 1e-5
"""Actions so close to the box's edge were clipped."""


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
        free = self._wall_distance(at) >= POINT_RADIUS - 1e-9
        nodes = at[free]
        return free, nodes, KDTree(nodes).query(at)[1].astype(np.int64)

    def _wall_distance(self, points: Points) -> Points:
        nearest = np.full(points.shape[:-1], np.inf)
        for centre in self.maze.centre(np.flatnonzero(self.maze.walls.ravel())):
            gap = np.maximum(np.abs(points - centre) - UNIT / 2, 0.0)
            nearest = np.minimum(nearest, np.hypot(gap[..., 0], gap[..., 1]))
        return nearest

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
    def reached(self) -> NDArray[np.bool_]:
        """Nodes within the tolerance of each place of each goal, ``[c, places, n]``."""
        along = ((np.arange(self.places) + 0.5) / self.places * 2 - 1) * GOAL_REACH
        offset = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
        at = self.maze.centre(self.goals)[:, None] + offset
        away = np.linalg.norm(self.nodes - at[:, :, None], axis=-1)
        return np.asarray(away <= TOLERANCE + 1e-9)

    @cached_property
    def _flows(self) -> tuple[Points, Points]:
        """Mean over rows of being at a node with a goal and place, before and after its step.

        ``[c, n]`` of the row itself, and ``[c, places, n]`` of arrivals, in which a goal that is
        reached still counts as it was.
        """
        cells, places, n = self.reached.shape
        free = self.maze.centre(self.maze.free)
        start = (np.abs(self.nodes - free[:, None]).max(axis=2) <= GOAL_REACH).sum(axis=0)
        state = np.empty((cells, n, places), np.float32)
        state[:] = (start / start.sum() / cells / places)[:, None]
        at, arrived = np.zeros((cells, n)), np.zeros((cells, n, places))
        turned = [step.T.tocsr().astype(np.float32) for step in self.steps]
        for row in range(self.rows - 1):
            after = np.stack([p @ s for p, s in zip(turned, state, strict=True)])
            new = self._with_new_goals(after)
            settled = np.abs(new - state).sum() < SETTLED
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
        new[:, some] += (fresh[some] / len(new) / self.places**2)[:, None]
        return new

    @property
    def rho(self) -> Points:
        """Share of data rows at each node with each hidden goal, ``[c, n]``."""
        return self._flows[0]

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

    def occupied(
        self,
        discount: float,
        weights: Points,
        after: Positions,
        goals: Positions,
        tick: Callable[[float], None] | None = None,
    ) -> Points:
        """Density of geometric goals at ``goals`` after arriving at ``after``: ``[n]``.

        ``weights`` [n, c] are P(G | s, a); discount z gives a goal d = 1, 2, ... steps later the
        weight (1 - z) z^(d-1). The density is that of the grid: it is smooth over one spacing.
        """
        new = _NewGoals.solve(self, discount, tick)
        (start, start_share), (end, end_share) = self.spread(after), self.spread(goals)
        total = np.zeros(len(weights))
        for cell, chance in enumerate(weights.T):
            rows = np.flatnonzero(chance > 1e-6)
            table = new.after_arrival(cell)
            pairs = table[start[rows][:, :, None], end[rows][:, None, :]]
            total[rows] += chance[rows] * np.einsum(
                "nij,ni,nj->n", pairs, start_share[rows], end_share[rows]
            )
            if tick is not None:
                tick(0.7 + 0.3 * (cell + 1) / len(self.goals))
        return total * (1.0 - discount) / self.spacing**2

    def hitting(self, discount: float, after: Positions, goals: Positions) -> Points:
        """E z^T of the policy that forgets its goal, from ``after`` to ``goals``: ``[n]``."""
        share = self.rho / np.maximum(self.marginal, 1e-300)
        policy = sum(
            scipy.sparse.diags_array(part) @ step
            for part, step in zip(share, self.steps, strict=True)
        )
        resolvent = _resolvent(policy, discount)
        start, start_share = self.spread(after)
        different, number = np.unique(goals, axis=0, return_inverse=True)
        found = np.empty(len(after))
        order = np.argsort(number.ravel(), kind="stable")
        for goal, rows in zip(
            different,
            np.split(order, np.flatnonzero(np.diff(number.ravel()[order])) + 1),
            strict=True,
        ):
            ball = np.flatnonzero(np.linalg.norm(self.nodes - goal, axis=1) <= TOLERANCE)
            if not len(ball):
                ball = np.array([np.argmin(np.linalg.norm(self.nodes - goal, axis=1))])
            once = scipy.linalg.solve(resolvent[np.ix_(ball, ball)], np.ones(len(ball)))
            value = resolvent[start[rows][:, :, None], ball] @ once
            found[rows] = (value * start_share[rows]).sum(axis=1)
        return found


@dataclass(frozen=True, eq=False)
class _NewGoals:
    """Sums of z^d over d >= 1 of being at a node, where new goals follow those that are reached."""

    behaviour: Behaviour
    resolvents: list[Table]
    """Of the chain of each goal that is never reached, without d = 0."""
    afresh: Table
    """The sums from a node where a new goal has just been drawn."""
    discount: float

    @classmethod
    def solve(
        cls, behaviour: Behaviour, discount: float, tick: Callable[[float], None] | None
    ) -> _NewGoals:
        cells, _, n = behaviour.reached.shape
        resolvents: list[Table] = []
        first, jump = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
        even = np.full(behaviour.reached.shape[1:], 1.0 / behaviour.reached.shape[1])
        for cell, step in enumerate(behaviour.steps):
            table = _resolvent(step, discount)
            table[np.diag_indices(n)] -= 1.0
            nodes, reach = _first_reach(table, behaviour.reached[cell], even)
            first += table - reach @ table[nodes]
            jump[:, nodes] += reach
            resolvents.append(table)
            if tick is not None:
                tick(0.7 * (cell + 1) / cells)
        first, jump = first / cells, jump / cells
        some = np.flatnonzero(jump.any(axis=0))
        inner = np.eye(len(some), dtype=np.float32) - jump[np.ix_(some, some)]
        afresh = first + jump[:, some] @ scipy.linalg.solve(inner, first[some])
        return cls(behaviour, resolvents, afresh, discount)

    def after_arrival(self, cell: int) -> Table:
        """From each node, at which the point has just arrived with a goal in that cell.

        With d = 0, the arrival itself. The place of the goal is as likely as data has it there.
        """
        b, table = self.behaviour, self.resolvents[cell]
        reached = b.reached[cell]
        arrived = b._flows[1][cell]
        total = arrived.sum(axis=0)
        place = np.where(total > 0, arrived / np.where(total > 0, total, 1.0), 1.0 / len(arrived))
        going = np.where(reached, 0.0, place)
        nodes, reach = _first_reach(table, reached, going)
        stays = going.sum(axis=0).astype(np.float32)[:, None]
        result = stays * table - reach @ (table - self.afresh)[nodes] + (1 - stays) * self.afresh
        result[np.diag_indices(len(result))] += 1.0
        return np.asarray(result, np.float32)


def _resolvent(step: Any, discount: float) -> Table:
    """Sum of z^d P^d over d >= 0, row by row from one sparse factorization."""
    n = step.shape[0]
    inner = (scipy.sparse.eye_array(n) - discount * step).tocsc().astype(np.float32)
    factors = splu(scipy.sparse.csc_matrix(inner), permc_spec="MMD_AT_PLUS_A")
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
    """Nodes where a goal may be reached, and sum over places of weight [place, n] times E z^T there.

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
