"""PointMaze's behaviour on a grid: against slow linear algebra, the collector, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray

from toptail.lab.judges.point import TOLERANCE
from toptail.lab.tasks.episodes import DirectionExpert, Navigator
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail_paper.study.behaviour import (
    Behaviour,
    clipped_log_density,
    clipped_moments,
)
from toptail_paper.study.ideals import (
    Hitting,
    Occupancy,
    PointIdeals,
    cut_discount,
    knows_ideals,
    resolvent,
)

TASK = "pointmaze-medium-navigate-v0"
BEND = np.array([[1, 1, 1, 1, 1], [1, 0, 0, 0, 1], [1, 1, 1, 0, 1], [1, 1, 1, 1, 1]], dtype=bool)
Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def bend() -> Behaviour:
    """Three cells in a row and one beside the last, on a coarse grid."""
    return Behaviour(Maze(BEND), rows=41, spacing=1.0, places=2)


def test_moments_and_densities_of_clipped_noise() -> None:
    rng = np.random.default_rng(0)
    for mean in (0.0, 0.4, -0.9, 1.0):
        drawn = np.clip(mean + 0.5 * rng.normal(size=1_000_000), -1, 1)
        first, variance = clipped_moments(np.array(mean), 0.5)
        assert first == pytest.approx(drawn.mean(), abs=2e-3)
        assert variance == pytest.approx(drawn.var(), abs=2e-3)
        # Ratios over means count: at the edge of the chance to be clipped, inside of the density.
        at = np.array([[1.0], [0.2]])
        edge, inside = clipped_log_density(at, np.array([[mean]]), 0.5)
        assert np.exp(edge) == pytest.approx((drawn == 1.0).mean(), abs=2e-3)
        near = (np.abs(drawn - 0.2) < 0.01).mean() / 0.02 * 0.5 * np.sqrt(2 * np.pi)
        assert np.exp(inside) == pytest.approx(near, abs=0.03)


def test_steps_have_the_mean_of_the_behaviour(bend: Behaviour) -> None:
    middle = int(np.argmin(np.linalg.norm(bend.nodes - [3.0, 0.0], axis=1)))
    for goal, step in zip(bend.goals, bend.steps, strict=True):
        np.testing.assert_allclose(step.sum(axis=1), 1.0, atol=1e-12)
        mean, _ = clipped_moments(bend.direction(bend.nodes, int(goal)), bend.noise)
        moved = (step @ bend.nodes - bend.nodes)[middle]
        np.testing.assert_allclose(moved, 0.2 * mean[middle], atol=1e-9)


def whole_chain(bend: Behaviour) -> tuple[Array, Array]:
    """The chain of (goal, place, node) as one matrix, and that of draws of a new goal."""
    cells, places, n = bend.reached.shape
    likely = np.repeat(bend.layout[1] / cells, 1)
    step = np.zeros((cells, places, n, cells, places, n))
    for c in range(cells):
        for p in range(places):
            move = bend.steps[c].toarray()
            on = bend.reached[c, p]
            step[c, p, :, c, p] += np.where(on, 0.0, move)
            for other in range(cells):
                for q in range(places):
                    step[c, p, :, other, q] += np.where(on, move, 0.0) * likely[q]
    size = cells * places * n
    return step.reshape(size, size), likely


def test_occupancy_is_that_of_the_whole_chain(bend: Behaviour) -> None:
    """Arrive at a node with a goal, see whether it is reached, and go on for ever."""
    cells, places, n = bend.reached.shape
    z = 0.9
    step, likely = whole_chain(bend)
    table = scipy.linalg.inv(np.eye(len(step)) - z * step)
    visits = table.reshape(cells, places, n, cells, places, n).sum(axis=(3, 4))
    afresh = np.einsum("p,cpxy->xy", likely, visits)
    found = Occupancy.solve(bend, z)
    for c in range(cells):
        arrived = bend.arrivals[c]
        total = arrived.sum(axis=0)
        place = np.where(total > 0, arrived / np.maximum(total, 1e-300), bend.layout[1][:, None])
        each = np.where(bend.reached[c][..., None], afresh, visits[c])
        wanted = np.einsum("px,pxy->xy", place, each)
        np.testing.assert_allclose(found.tables[c], wanted, atol=2e-4)
        np.testing.assert_allclose(found.tables[c].sum(axis=1), 1 / (1 - z), rtol=1e-3)


def test_the_share_of_rows_is_the_mean_over_an_episode(bend: Behaviour) -> None:
    cells, places, n = bend.reached.shape
    step, likely = whole_chain(bend)
    free = bend.maze.centre(bend.maze.free)
    start = (np.abs(bend.nodes - free[:, None]).max(axis=2) <= 1).sum(axis=0).astype(float)
    state = np.broadcast_to(np.outer(likely, start / start.sum()), (cells, places, n)).ravel()
    total = np.zeros_like(state)
    for _ in range(bend.rows - 1):
        total, state = total + state, state @ step
    wanted = total.reshape(cells, places, n).sum(axis=1) / (bend.rows - 1)
    np.testing.assert_allclose(bend.rho, wanted, atol=2e-5)
    assert bend.marginal.sum() == pytest.approx(1.0, abs=1e-5)


def test_hitting_is_the_first_visit_of_the_policy_that_forgets(bend: Behaviour) -> None:
    goal, z = np.array([[8.0, 4.0]]), 0.95
    inside = np.linalg.norm(bend.nodes - goal, axis=1) <= TOLERANCE
    policy = bend.policy.toarray()
    np.testing.assert_allclose(policy.sum(axis=1), 1.0, atol=1e-6)
    going = np.where(inside[:, None], 0.0, z * policy)
    wanted = scipy.linalg.solve(np.eye(len(going)) - going, inside.astype(float))
    found = Hitting.solve(bend, z).value(bend.nodes, np.repeat(goal, len(bend.nodes), axis=0))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    assert found[inside].min() == pytest.approx(1.0, abs=1e-5)
    assert found.min() < 0.5


def test_places_within_the_tolerance_are_equally_good(bend: Behaviour) -> None:
    """Rounding does not order what is there already: a quarter of a query's actions may be."""
    goal, rng = np.array([4.5, 0.5]), np.random.default_rng(0)
    near = goal + rng.uniform(-0.4, 0.4, (200, 2))
    inside = np.linalg.norm(bend.nodes - goal, axis=1) <= TOLERANCE
    assert inside[bend.spread(near)[0]].all()
    found = Hitting.solve(bend, 0.99).value(near, np.tile(goal, (200, 1)))
    assert set(found) == {1.0}


def test_an_action_tells_of_the_hidden_goal(bend: Behaviour) -> None:
    states = np.tile([4.0, 0.0], (3, 1))
    weights = bend.goal_weights(states, np.array([[0.9, 0.0], [-0.9, 0.0], [0.0, 0.0]]))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    east = bend.maze.centre(bend.goals)[:, 0] > 4.0
    right, left, none = weights[:, east].sum(axis=1)
    assert right > none > left
    # Bayes by hand: the two actions are mirror images, so that their odds multiply to the prior's.
    prior = bend.rho[:, bend.spread(states[:1])[0][0]] @ bend.spread(states[:1])[1][0]
    west = bend.maze.centre(bend.goals)[:, 0] < 4.0
    odds = prior[east].sum() / prior[west].sum()
    product = (weights[0, east].sum() / weights[0, west].sum()) * (
        weights[1, east].sum() / weights[1, west].sum()
    )
    assert product == pytest.approx(odds**2, rel=1e-3)


def test_the_resolvent_is_a_sum_of_powers(bend: Behaviour) -> None:
    step = bend.steps[0]
    wanted = sum(np.linalg.matrix_power(0.8 * step.toarray(), d) for d in range(100))
    np.testing.assert_allclose(resolvent(step, 0.8), wanted, atol=1e-4)


def test_the_cut_sampler_is_nearly_geometric() -> None:
    gamma, steps = 0.99, 1_000
    d = np.arange(1, steps + 1)
    cut = gamma ** (d - 1) * ((1 - gamma) * (1 - d / steps) + 1 / steps)
    z = cut_discount(gamma, steps)
    geometric = (1 - z) * z ** (d - 1)
    assert cut.sum() == pytest.approx(1.0, abs=1e-3)
    assert 0.5 * np.abs(cut - geometric).sum() < 0.01
    assert np.abs(cut / geometric - 1)[:150].max() < 0.02


@pytest.fixture(scope="module")
def collected() -> tuple[Array, Array]:
    """Observations and actions of some real episodes, ``[episodes, rows, 2]``."""
    seeds = list(np.random.SeedSequence(5).spawn(150))
    navigator = Navigator(parse_name(TASK), 1_001, 0.5, DirectionExpert())
    episodes = navigator.collect(seeds)
    observed, acted = (
        np.stack([e.arrays[name] for e in episodes]) for name in ("observations", "actions")
    )
    return observed.astype(np.float64), acted


def test_the_log_ratio_has_the_odds_of_real_positives(collected: tuple[Array, Array]) -> None:
    """Among positives and random goals, exp(f) is the odds of a positive, on a coarse grid."""
    observed, acted = collected
    rng, n = np.random.default_rng(1), 60_000
    episode, row = rng.integers(150, size=n), rng.integers(1_000, size=n)
    goal = np.minimum(row + rng.geometric(0.01, n), 1_000)
    states, actions, own = observed[episode, row], acted[episode, row], observed[episode, goal]
    ideals = PointIdeals(TASK, 0.99, spacing=1.0)
    positive = ideals.log_ratio(states, actions, own)
    negative = ideals.log_ratio(states, actions, rng.permutation(own))
    for low, high in ((-2.0, -1.0), (-1.0, 0.0), (0.0, 1.0), (1.0, 2.0), (2.0, 3.0)):
        hits = [((x > low) & (x < high)).sum() for x in (positive, negative)]
        inside = negative[(negative > low) & (negative < high)]
        assert np.log(hits[0] / hits[1]) == pytest.approx(inside.mean(), abs=0.4)
    assert (positive > negative).mean() > 0.75


def test_only_collected_point_mazes_have_ideals() -> None:
    assert knows_ideals(TASK)
    for other in ("pointmaze-medium-stitch-v0", "antmaze-medium-navigate-v0", "my-data"):
        assert not knows_ideals(other)
    ideals = PointIdeals(TASK, 0.99, spacing=1.0)
    assert set(ideals.scores()) == {"q_star", "q_behaviour", "log_ratio", "gamma_d"}
    assert ideals.origin("q_star")["judge"] == "exact"
    assert ideals.origin("log_ratio")["spacing"] == 1.0
