"""The controlled world against slow, independent versions of everything it states."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail_paper.controlled.world import (
    ControlledWorld,
    clipped_gaussian,
    exact_value,
    on_support,
    project_to_disk,
    rice_mean,
    sample_data,
    sample_queries,
    uniform_disk,
)

Floats = NDArray[np.float64]


def slow_actions(world: ControlledWorld, states: Floats, goals: Floats, seed: int) -> Floats:
    """The goal-aligned mixture, one row at a time, with rejection for the uniform part."""
    rng = np.random.default_rng(seed)
    actions = []
    for state, goal in zip(states, goals, strict=True):
        if rng.random() < world.aligned_share:
            way = goal - state
            distance = np.hypot(*way)
            action = way / distance * min(distance, world.radius)
            action = action + rng.normal(0, world.aligned_noise * world.radius, 2)
            if np.hypot(*action) > world.radius:
                action = action / np.hypot(*action) * world.radius
        else:
            action = rng.uniform(-world.radius, world.radius, 2)
            while np.hypot(*action) > world.radius:
                action = rng.uniform(-world.radius, world.radius, 2)
        actions.append(action)
    return np.array(actions)


def statistics(states: Floats, actions: Floats, goals: Floats) -> Floats:
    """Moments of actions, and how they lie to their goals: length, cosine, their products."""
    way = goals - states
    length = np.linalg.norm(actions, axis=1)
    cosine = (actions * way).sum(1) / (length * np.linalg.norm(way, axis=1))
    near = np.linalg.norm(way, axis=1) < 0.8
    columns = [
        *actions.T,
        *(actions**2).T,
        actions.prod(1),
        length,
        length > 0.3999,
        cosine,
        cosine > 0.9,
        near * cosine,
        near * length,
    ]
    return np.stack(columns, axis=1).astype(np.float64)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_data_has_the_statistics_of_a_slow_sampler(share: float) -> None:
    world = ControlledWorld(aligned_share=share)
    data = sample_data(world, 20_000, np.random.default_rng(1))
    fast = statistics(data.states, data.actions, data.goals)
    slow = statistics(data.states, slow_actions(world, data.states, data.goals, 2), data.goals)
    error = np.sqrt((fast.var(0) + slow.var(0)) / len(fast))
    assert np.all(np.abs(fast.mean(0) - slow.mean(0)) <= 4.5 * error + 1e-12)


def test_the_statistics_tell_another_mixture_apart() -> None:
    other = dataclasses.replace(ControlledWorld(), aligned_share=0.45)
    data = sample_data(ControlledWorld(), 20_000, np.random.default_rng(1))
    fast = statistics(data.states, data.actions, data.goals)
    slow = statistics(data.states, slow_actions(other, data.states, data.goals, 2), data.goals)
    error = np.sqrt((fast.var(0) + slow.var(0)) / len(fast))
    assert np.any(np.abs(fast.mean(0) - slow.mean(0)) > 4.5 * error)


def test_data_stays_in_its_ranges_and_rewards_are_distances() -> None:
    world = ControlledWorld(radius=0.25)
    data = sample_data(world, 5_000, np.random.default_rng(0))
    assert on_support(world, data.actions).all()
    assert np.abs(data.states).max() <= 2.0
    assert np.abs(data.goals).max() <= 2.0
    np.testing.assert_array_equal(data.next_states, data.states + data.actions)
    by_hand = [-np.hypot(*(s + a - g)) for s, a, g in zip(*data[:3], strict=True)]
    np.testing.assert_allclose(data.rewards, by_hand, rtol=1e-12)


def test_noise_changes_rewards_and_nothing_that_a_contrastive_critic_sees() -> None:
    quiet, noisy = (
        sample_data(ControlledWorld(sigma=sigma), 1_000, np.random.default_rng(3))
        for sigma in (0.0, 0.05)
    )
    for name in ("states", "actions", "goals"):
        np.testing.assert_array_equal(getattr(quiet, name), getattr(noisy, name))
    assert np.std(noisy.next_states - quiet.next_states) == pytest.approx(0.05, rel=0.1)
    assert not np.array_equal(quiet.rewards, noisy.rewards)


def test_queries_start_at_zero_with_the_optimum_on_support() -> None:
    world = ControlledWorld()
    queries = sample_queries(world, 4_000, np.random.default_rng(0))
    length = np.linalg.norm(queries.goals, axis=1)
    assert not queries.states.any()
    assert length.max() <= 0.6 * 0.4
    # Uniform in a disk: half of the goals lie within 1/sqrt(2) of its radius.
    assert np.mean(length < 0.24 / np.sqrt(2)) == pytest.approx(0.5, abs=0.03)
    assert on_support(world, queries.goals).all()
    np.testing.assert_array_equal(
        exact_value(world, queries.states, queries.goals, queries.goals), np.zeros(4_000)
    )


def test_disk_draws_are_uniform() -> None:
    points = uniform_disk(20_000, 0.5, np.random.default_rng(0))
    share = np.mean(np.linalg.norm(points - [0.2, 0.0], axis=1) < 0.2)
    assert share == pytest.approx(0.2**2 / 0.5**2, abs=0.012)


def test_projection_moves_only_what_lies_outside() -> None:
    points = np.array([[0.0, 0.0], [0.3, 0.4], [3.0, 4.0], [-1e9, 0.0]])
    expected = [[0.0, 0.0], [0.3, 0.4], [0.3, 0.4], [-0.5, 0.0]]
    np.testing.assert_allclose(project_to_disk(points, 0.5), expected, atol=1e-12)
    assert np.linalg.norm(project_to_disk(points, 0.5), axis=1).max() <= 0.5


def test_candidates_are_clipped_gaussian_draws() -> None:
    actions = clipped_gaussian(50, 400, 2, 0.48, 1.0, np.random.default_rng(0))
    assert actions.shape == (50, 400, 2)
    assert np.abs(actions).max() == 1.0
    # Two tails beyond 1 / 0.48 = 2.083 standard deviations hold 3.72 % of a Gaussian.
    assert np.mean(np.abs(actions) == 1.0) == pytest.approx(0.0372, abs=0.004)
    # P(||a|| <= R) = 1 - exp(-1 / (2 * 1.2^2)): both kinds of candidates are in every pool.
    inside = on_support(ControlledWorld(), actions)
    assert inside.mean() == pytest.approx(1 - np.exp(-1 / 2.88), abs=0.01)
    assert inside.any(axis=1).all()


@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_rice_mean_is_the_monte_carlo_mean(sigma: float) -> None:
    rng = np.random.default_rng(0)
    distances = np.array([0.0, 0.02, 0.1, 0.5, 2.0])
    noise = rng.normal(0.0, sigma, (400_000, 2))
    for distance, mean in zip(distances, rice_mean(distances, sigma), strict=True):
        lengths = np.hypot(distance + noise[:, 0], noise[:, 1])
        assert mean == pytest.approx(lengths.mean(), abs=4.5 * lengths.std() / 400_000**0.5)


def test_rice_mean_keeps_every_order_and_shifts_by_at_most_its_value_at_zero() -> None:
    distances = np.linspace(0.0, 3.0, 30_001)
    mean = rice_mean(distances, 0.05)
    assert np.all(np.diff(mean) > 0)
    shift = mean - distances
    assert shift[0] == pytest.approx(0.05 * np.sqrt(np.pi / 2), rel=1e-12)
    assert shift[0] == pytest.approx(0.063, abs=5e-4)
    assert np.all(np.diff(shift) <= 1e-12)
    assert np.all(shift > 0)


def test_rice_mean_without_noise_is_the_distance_and_survives_tiny_noise() -> None:
    distances = np.array([0.0, 1e-3, 1.0, 100.0])
    assert rice_mean(distances, 0.0) is distances
    np.testing.assert_allclose(rice_mean(distances, 1e-9)[1:], distances[1:], rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"radius": 1.5}, "radius"),
        ({"radius": 0.0}, "radius"),
        ({"aligned_share": 1.2}, "aligned_share"),
        ({"sigma": -0.1}, "sigma"),
    ],
)
def test_impossible_worlds_are_refused(settings: dict[str, float], word: str) -> None:
    with pytest.raises(InputError, match=word):
        ControlledWorld(**settings)
