r"""PointMaze's collecting behaviour as a Markov chain on a grid, solved without sampling.

``toptail data collect`` acts as follows: with a hidden goal in cell G and the point at x, the
action is a = clip(u_G(x) + 0.5 z, -1, 1) with u_G(x) the unit vector towards the next cell's centre
and z standard normal, and the point moves by 0.2 a, stopped by walls. Within 1 of the goal a new
one is drawn: one of the cells that are no straight corridor, and in it a place uniform within 1 of
the centre on each axis. So (x, G, place) is a Markov chain, observed through x alone.

Here x lives on the nodes of a grid. A step goes to three nodes on each axis, with the mean of the
true step and its variance (or, where three nodes cannot have it, the smallest that they can); nodes
inside walls stand for the nearest free one. The goal's place takes the `PLACES` values of Gauss's
rule on each axis.

The chain is stepped from the package's starts to the last row: `Behaviour.rho` is how often data
has the point at x with the hidden goal G. The action is evidence of that goal: P(G | s, a) is
proportional to P(G | s) beta(a | s, G). `toptail_paper.study.ideals` solves for the future.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.special import log_ndtr, ndtr

from toptail.lab.judges.point import POINT_RADIUS, STEP, TOLERANCE, Points
from toptail.lab.tasks.maze import UNIT, Maze, Positions
from toptail.lab.tasks.trajectories import IntArray
from toptail_paper.study.point_judges import EuclideanPaths

Table = NDArray[np.float32]

SPACING = 1 / 3
"""Distance of the grid's nodes."""
PLACES = 7
"""Places of the hidden goal on each axis of its cell."""
GOAL_REACH = 1.0
"""How far from its cell's centre a goal lies, on each axis, at most."""
SETTLED = 1e-4
"""The chain is stationary once a step changes less than this share of the rows."""
_LOOK = 10
_EDGE = 1e-5
"""Actions this close to the box's edge were clipped."""


@dataclass(frozen=True, eq=False)
class Behaviour:
    """The chain of one maze."""

    maze: Maze
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
        """Which lattice points are nodes ``[y, x]``, the nodes, and each point's nearest node."""
        rows, columns = self.maze.walls.shape
        x, y = (np.arange(n * round(UNIT / self.spacing)) for n in (columns, rows))
        at = np.stack(np.meshgrid(x, y), axis=-1) * self.spacing - UNIT * 1.5
        free = EuclideanPaths(self.maze).wall_distance(at) >= POINT_RADIUS - 1e-9
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
        """Places of a goal around its cell's centre ``[p, 2]``, and their probabilities ``[p]``.

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
        """The chain's state ``[c, n, places]`` after reached goals were replaced by new ones."""
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

        A goal that is reached there still counts as the old goal.
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
        """The chain of the policy beta(a | x), which draws a new goal at every step, ``[n, n]``."""
        share = self.rho / np.maximum(self.marginal, 1e-300)
        parts = zip(share, self.steps, strict=True)
        total = sum(scipy.sparse.diags_array(part) @ step for part, step in parts)
        return scipy.sparse.csr_array(total)


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
