"""The ideal critics of the controlled world against Monte Carlo, slow integrals and hand cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from toptail.errors import InputError
from toptail_paper.controlled import ideals as ideals_controlled
from toptail_paper.controlled.ideals import action_density, ideal_scores, log_likelihood, log_ratio
from toptail_paper.controlled.world import (
    ControlledWorld,
    project_to_disk,
    sample_data,
    uniform_disk,
)

WORLD = ControlledWorld()


def drawn_actions(goals: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Actions for the state 0 and given goals, drawn as the world's data is."""
    world = WORLD
    noise = rng.normal(0.0, world.aligned_noise * world.radius, (n, 2))
    aligned = project_to_disk(project_to_disk(goals, world.radius) + noise, world.radius)
    chosen = rng.random((n, 1)) < world.aligned_share
    return np.where(chosen, aligned, uniform_disk(n, world.radius, rng))


def share_near(actions: np.ndarray, at: np.ndarray, side: float = 0.04) -> float:
    """Share of actions in a small square around a point, per area."""
    return float((np.abs(actions - at).max(axis=1) < side / 2).mean() / side**2)


def test_both_densities_against_monte_carlo() -> None:
    rng, n = np.random.default_rng(0), 2_000_000
    zero, goal = np.zeros(2), np.array([0.2, -0.1])
    own = drawn_actions(np.broadcast_to(goal, (n, 2)), n, rng)
    any_goal = drawn_actions(rng.uniform(-2, 2, (n, 2)), n, rng)
    for at in (np.array([0.15, -0.1]), np.array([-0.1, 0.2]), np.array([0.25, 0.25])):
        likelihood = np.exp(log_likelihood(WORLD, zero, at, goal))
        marginal = action_density(WORLD, zero[None], at[None])[0]
        assert share_near(own, at) == pytest.approx(likelihood, rel=0.04)
        assert share_near(any_goal, at) == pytest.approx(marginal, rel=0.04)
        ratio = np.log(likelihood / marginal)
        assert log_ratio(WORLD, zero, at, goal) == pytest.approx(ratio, abs=1e-9)


def test_the_mean_over_goals_is_a_slow_integral_near_an_edge_of_the_square() -> None:
    state, action = np.array([1.8, -1.9]), np.array([[0.1, 0.2]])
    along = (np.arange(1_600) + 0.5) / 1_600 * 4 - 2
    goals = np.stack(np.meshgrid(along, along), axis=-1).reshape(-1, 2)
    mean = np.exp(log_likelihood(WORLD, state, action, goals)).mean()
    assert action_density(WORLD, state[None], action)[0] == pytest.approx(mean, rel=1e-3)


def test_chances_inside_and_on_the_rim_add_up_to_one() -> None:
    goal, zero = np.array([0.5, 0.9]), np.zeros(2)
    angle = (np.arange(400) + 0.5) / 400 * 2 * np.pi
    unit = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    length = (np.arange(400) + 0.5) / 400 * WORLD.radius
    inside = np.exp(log_likelihood(WORLD, zero, length[:, None, None] * unit, goal))
    area = (inside * length[:, None]).sum() * WORLD.radius / 400 * 2 * np.pi / 400
    rim = project_to_disk(2 * unit, WORLD.radius)
    on_rim = np.exp(log_likelihood(WORLD, zero, rim, goal)).sum() * 2 * np.pi / 400
    assert area + on_rim == pytest.approx(1.0, abs=1e-4)
    assert on_rim > 0.1


def test_the_sum_over_angles_is_exact_to_its_refinement(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    states, actions = rng.uniform(-2, 2, (50, 2)), uniform_disk(50, 0.39, rng)
    coarse = action_density(WORLD, states, actions)
    monkeypatch.setattr(ideals_controlled, "ANGLES", 8 * ideals_controlled.ANGLES)
    np.testing.assert_allclose(action_density(WORLD, states, actions), coarse, rtol=2e-4)


@pytest.mark.slow
def test_the_log_ratio_is_what_the_loss_asks_for() -> None:
    """Among pairs with their own and with other goals, exp(f) is the odds of an own one."""
    data = sample_data(WORLD, 50_000, np.random.default_rng(2))
    inside = np.linalg.norm(data.actions, axis=1) < WORLD.radius * 0.999
    s, a, g = (x[inside] for x in data[:3])
    own, other = log_ratio(WORLD, s, a, g), log_ratio(WORLD, s, a, np.roll(g, 1, axis=0))
    for low, high in ((-0.6, -0.3), (0.3, 0.6), (1.0, 1.4)):
        hits = [x[(x > low) & (x < high)] for x in (own, other)]
        odds = np.log(len(hits[0]) / len(hits[1]))
        assert odds == pytest.approx(np.mean(hits[1]), abs=0.08)


def test_what_exists_and_what_does_not() -> None:
    zero, goal = np.zeros(2), np.array([0.1, 0.0])
    scores = ideal_scores(WORLD, zero, np.array([[0.1, 0.0], [0.5, 0.0]]), goal)
    assert set(scores) == {"q_star", "q_behaviour", "log_ratio"}
    np.testing.assert_allclose(scores["q_star"], [0.0, -0.4])
    np.testing.assert_array_equal(scores["q_behaviour"], scores["q_star"])
    assert scores["log_ratio"][0] > 0.0
    assert scores["log_ratio"][1] == -np.inf
    apart = replace(WORLD, aligned_share=0.0)
    assert ideal_scores(apart, zero, np.array([0.1, 0.2]), goal)["log_ratio"] == 0.0
    sharp = replace(WORLD, aligned_noise=0.0)
    assert set(ideal_scores(sharp, zero, zero, goal)) == {"q_star", "q_behaviour"}
    with pytest.raises(InputError, match="aligned_noise"):
        log_ratio(sharp, zero, zero, goal)
