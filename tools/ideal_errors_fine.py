"""Whether the ideal critics of PointMaze keep their order within a query on finer grids.

    python tools/ideal_errors_fine.py pointmaze-medium-navigate-v0.npz --cuts 3 4 6 8

The judge of `toptail_paper.study.ideals` solves for all pairs of nodes, which no grid much finer
than 1/4 has the memory for. At some queries less is needed: the columns of their goals, and those
of the nodes where a hidden goal is reached. What follows a new goal depends little on where the
first step went, and is taken from the grid of 1/3. At a spacing of 1/3 both ways agree to 2e-4.

``--cuts N`` is a spacing of 1/N. Printed for the first queries of `ideal_errors.py`: the normalized
regret of each ideal, and tau_b within a query between grids.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy.linalg
import scipy.sparse
from ideal_errors import CANDIDATES, GAMMA, QUERIES, TASK, Array
from numpy.typing import NDArray
from scipy.sparse.linalg import SuperLU, splu
from scipy.spatial import KDTree

from toptail.lab.judges.point import TOLERANCE
from toptail.lab.tasks.files import Dataset, load
from toptail.stats import best_of_k, kendall_tau_b
from toptail_paper.study import ideals as occupancy
from toptail_paper.study.behaviour import Behaviour
from toptail_paper.study.ideals import PointIdeals

AT_ONCE = 64
COARSE = 1 / 3
FIRST = 100
"""Queries that are asked, of those of the other tool."""


@dataclass(frozen=True)
class Asked:
    """Some queries with the actions of nearby data."""

    states: Array
    """[queries * candidates, 2]."""
    actions: Array
    """[queries * candidates, 2]."""
    goals: Array
    """[queries, 2]."""

    @property
    def query(self) -> NDArray[np.intp]:
        """The query of every row."""
        return np.repeat(np.arange(len(self.goals)), CANDIDATES)


def asked(data: Dataset, count: int) -> Asked:
    """The first queries that `ideal_errors.at_queries` draws."""
    rng, val, train = np.random.default_rng(1), data.val, data.train
    rows = rng.choice(np.flatnonzero(val.remaining(np.arange(len(val))) >= 60), QUERIES)
    goals = val.observations[rows + rng.integers(1, 60, QUERIES, endpoint=True)][:count]
    states = val.observations[rows[:count]]
    near = KDTree(train.observations[train.transitions]).query(states, CANDIDATES)[1]
    actions = train.actions[train.transitions[near]].reshape(-1, 2)
    return Asked(np.repeat(states, CANDIDATES, axis=0), actions, goals)


def afresh(behaviour: Behaviour, discount: float) -> Array:
    """Sums over d >= 1 from each node with a goal that was just drawn, as `Occupancy` has them."""
    cells, _, n = behaviour.reached.shape
    first, jump = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    likely = np.repeat(behaviour.layout[1][:, None], n, axis=1)
    for cell, step in enumerate(behaviour.steps):
        table = occupancy.resolvent(step, discount)
        table[np.diag_indices(n)] -= 1.0
        nodes, reach = occupancy._first_reach(table, behaviour.reached[cell], likely)
        first += table - reach @ table[nodes]
        jump[:, nodes] += reach
    return np.asarray(occupancy._continued(first / cells, jump / cells))


def factors(step: scipy.sparse.csr_array, discount: float) -> SuperLU:
    """The factorization of I - z P."""
    inner = scipy.sparse.eye_array(step.shape[0]) - discount * step
    return splu(scipy.sparse.csc_matrix(inner), permc_spec="MMD_AT_PLUS_A")


def columns(lu: SuperLU, right: Array) -> Array:
    """Solve for some columns."""
    parts = [right[:, i : i + AT_ONCE] for i in range(0, right.shape[1], AT_ONCE)]
    return np.concatenate([lu.solve(np.ascontiguousarray(part)) for part in parts], axis=1)


def units(n: int, at: NDArray[np.intp]) -> Array:
    """Columns that are one at a node each."""
    found = np.zeros((n, len(at)))
    found[at, np.arange(len(at))] = 1.0
    return found


class Fine:
    """One finer grid at the queries."""

    def __init__(self, coarse: PointIdeals, spacing: float, at: Asked) -> None:
        self.coarse, self.at, own = coarse.behaviour, at, coarse.behaviour
        self.grid = Behaviour(own.maze, own.noise, own.rows, spacing)
        self.beside, self.share = own.spread(self.grid.nodes)
        self.nearest = KDTree(own.nodes).query(self.grid.nodes)[1]
        self.start, self.part = self.grid.spread(coarse._after(at.states, at.actions))
        self.some = np.unique(self.start)
        self.weights = own.goal_weights(at.states, at.actions)
        nodes, share = self.grid.spread(at.goals)
        self.ends = np.zeros((len(self.grid.nodes), len(at.goals)))
        np.add.at(self.ends, (nodes, np.arange(len(at.goals))[:, None]), share / spacing**2)

    def later(self, table: Array) -> Array:
        """Density at the goals of what follows a new goal, from every fine node."""
        nodes, share = self.coarse.spread(self.at.goals)
        density = np.einsum("nqk,qk->nq", table[:, nodes], share) / self.coarse.spacing**2
        return np.asarray(np.einsum("nkq,nk->nq", density[self.beside], self.share))

    def density(self, discount: float, table: Array) -> Array:
        """Density at the goal after arriving where each action leads."""
        later, total = self.later(table), np.zeros(len(self.start))
        places = np.searchsorted(self.some, self.start)
        for cell, step in enumerate(self.grid.steps):
            sums = self._sums(cell, factors(step, discount), later)
            found = sums[places, self.at.query[:, None]]
            total += self.weights[:, cell] * (found * self.part).sum(axis=1)
        return np.asarray(np.maximum(total, 0.0) * (1.0 - discount))

    def _sums(self, cell: int, lu: SuperLU, later: Array) -> Array:
        """What `Occupancy._after_arrival` has, at the starts and the goals alone."""
        reached, n = self.grid.reached[cell], len(self.grid.nodes)
        nodes = np.flatnonzero(reached.any(axis=0))
        visits = columns(lu, units(n, nodes)) - units(n, nodes)
        never = columns(lu, self.ends) - self.ends
        going = np.where(reached[:, self.some], 0.0, self._places(cell))
        reach = np.zeros((len(self.some), len(nodes)))
        for inside, weight in zip(reached[:, nodes], going, strict=True):
            ball = np.flatnonzero(inside)
            among = visits[np.ix_(nodes[ball], ball)] + np.eye(len(ball))
            first = scipy.linalg.solve(among.T, visits[np.ix_(self.some, ball)].T).T
            reach[:, ball] += weight[:, None] * first
        stays = going.sum(axis=0)[:, None]
        sums = stays * never[self.some] - reach @ (never[nodes] - later[nodes])
        return np.asarray(sums + (1.0 - stays) * later[self.some] + self.ends[self.some])

    def _places(self, cell: int) -> Array:
        """How likely each place of the goal is at the starts."""
        arrived = self.coarse.arrivals[cell][:, self.nearest[self.some]]
        total = arrived.sum(axis=0)
        known = total > 0
        likely = self.coarse.layout[1][:, None]
        return np.where(known, arrived / np.where(known, total, 1.0), likely)

    def hitting(self) -> Array:
        """E gamma^T of the policy that forgets its goal."""
        rho = self.coarse.rho / np.maximum(self.coarse.marginal, 1e-300)
        share = (rho[:, self.beside] * self.share).sum(axis=2)
        mixed = zip(share / share.sum(axis=0), self.grid.steps, strict=True)
        lu = factors(sum(scipy.sparse.diags_array(p) @ s for p, s in mixed), GAMMA)
        return np.concatenate(list(self._hit(lu)))

    def _hit(self, lu: SuperLU) -> Iterator[Array]:
        for query, goal in enumerate(self.at.goals):
            away = np.linalg.norm(self.grid.nodes - goal, axis=1)
            ball = np.flatnonzero(away <= max(TOLERANCE, float(away.min())))
            visits = columns(lu, units(len(away), ball))
            value = visits @ scipy.linalg.solve(visits[ball], np.ones(len(ball)))
            value[ball] = 1.0  # not what rounding makes of it
            rows = self.at.query == query
            found = (value[self.start[rows]] * self.part[rows]).sum(axis=1)
            yield found.astype(np.float32)


def scores(coarse: PointIdeals, tables: dict[float, Array], fine: Fine) -> dict[str, Array]:
    """The ideals on a finer grid, [queries, candidates] each."""
    near, nearer = (fine.density(z, table) for z, table in tables.items())
    anywhere = coarse._marginal(fine.at.goals)[fine.at.query]
    cut = next(iter(tables))
    mass = GAMMA * (1.0 - cut) / (1.0 - cut * GAMMA)
    found = {
        "log_ratio": np.log(np.maximum(near, 1e-12) / anywhere),
        "gamma_d": mass * nearer / (near + anywhere),
        "q_behaviour": GAMMA * fine.hitting(),
    }
    return {name: x.reshape(-1, CANDIDATES) for name, x in found.items()}


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--cuts", type=int, nargs="+", default=[3, 4, 6])
    parser.add_argument("--queries", type=int, default=FIRST)
    given = parser.parse_args()
    at, coarse = asked(load(given.data), given.queries), PointIdeals(TASK, GAMMA, COARSE)
    goals = at.goals[at.query]
    value = coarse.q_star(at.states, at.actions, goals).reshape(-1, CANDIDATES)
    room = (value.max(axis=1) - value.mean(axis=1)).mean()
    tables = {z: afresh(coarse.behaviour, z) for z in (coarse._cut, coarse._cut * GAMMA)}
    found = {}
    for cuts in given.cuts:
        fine = Fine(coarse, 1 / cuts, at)
        found[cuts] = scores(coarse, tables, fine)
        for name, score in found[cuts].items():
            pick = best_of_k(score, value, [CANDIDATES])[:, 0]
            regret = (value.max(axis=1) - pick).mean() / room
            print(
                f"1/{cuts}, {len(fine.grid.nodes)} nodes, {name}: regret {regret:.3f}", flush=True
            )
    for one, two in combinations(found, 2):
        for name in found[one]:
            tau = np.nanmean(kendall_tau_b(found[one][name], found[two][name]))
            print(f"{name}: tau_b within a query between 1/{one} and 1/{two}: {tau:.3f}")


if __name__ == "__main__":
    main()
