r"""The ideal critics of PointMaze: what each objective would score if it were learned perfectly.

With s' the simulated step from s by a, and the data of a collected ``navigate`` set:

``q_star``
    Q* = gamma^(1 + N): N the fewest steps from s' to within 1 of g (`toptail.lab.judges.exact`).
``q_behaviour``
    gamma E[gamma^T] of the policy beta(a | s) of the data, T its steps from s' to within 1 of g. It
    is what bootstrapping evaluates: the state forgets the goal that the collector had in mind.
``log_ratio``
    log p(g | s, a) - log p(g): p(g | s, a) is the density of the contrastive positives, geometric
    with gamma and cut at the trajectory's end. Here the hidden goal counts: the action tells of it.
``gamma_d``
    What squared error to gamma^d at positives, and to 0 at as many goals of any trajectory,
    converges to: E[gamma^d] p(g | s, a) / (p(g | s, a) + p(g)), the mean over positives at g.

Cut at the end of trajectories of L steps, the positives' offsets have the weights
gamma^(d-1) ((1 - gamma)(1 - d/L) + 1/L) over all rows. `cut_discount` is the geometric
distribution that agrees with them in the first d, and within 1 % up to d = 150.

``q_star`` has the error of `exact`; the others are those of a chain on a grid
(`toptail.lab.judges.behaviour`), whose errors are in ``docs/references.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.judges.behaviour import SPACING, Behaviour
from toptail.lab.judges.exact import PointSteps, discounted, exact_origin
from toptail.lab.judges.occupancy import Hitting, Occupancy
from toptail.lab.judges.point import Points, knows_ways, next_positions
from toptail.lab.tasks.names import parse_name, published_recipe

Rows = NDArray[np.floating[Any]]


def cut_discount(gamma: float, steps: int) -> float:
    """The discount of a geometric distribution near that of offsets cut after so many steps."""
    return float(gamma * np.exp(-(1.0 - gamma) / (steps * (1.0 - gamma) + 1.0)))


def knows_ideals(task: str) -> bool:
    """Whether the ideal critics of a data set are known: PointMaze's, collected as ``navigate``."""
    return knows_ways(task) and parse_name(task).kind == "navigate"


@dataclass(frozen=True, eq=False)
class PointIdeals:
    """The ideal critics of one data set; each is solved when it is first asked."""

    task: str
    """The data set's name."""
    gamma: float
    """Discount of values and of positives."""
    spacing: float = SPACING
    """Distance of the grid's nodes."""

    @cached_property
    def behaviour(self) -> Behaviour:
        """The chain that collected the data."""
        recipe = published_recipe(parse_name(self.task))
        assert recipe is not None  # known of every PointMaze
        return Behaviour(self._ways.maze, recipe.noise, recipe.rows, self.spacing)

    @cached_property
    def _ways(self) -> PointSteps:
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
        return discounted(1 + self._ways.steps(after, goals), self.gamma)

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
        """Every ideal critic by its name."""
        return {
            "q_star": self.q_star,
            "q_behaviour": self.q_behaviour,
            "log_ratio": self.log_ratio,
            "gamma_d": self.gamma_d,
        }

    def origin(self, name: str) -> dict[str, Any]:
        """What decides an ideal critic's scores, as JSON has it, and how exact they are."""
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
    """The ideal critics of a data set, solved once for all who ask."""
    return PointIdeals(task, gamma, spacing)
