"""The sampler against textbook loops in NumPy, and against a mixture with a known predictor."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.proposals import mixture
from tests.proposals.mixture import CONTEXTS, SAMPLES, Floats
from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Schedule, denoise, row_keys, sampling_path

SCHEDULE = Schedule(levels=12)
ROWS, DIM = 7, 3


def wobbly(x: jax.Array, level: jax.Array) -> jax.Array:
    """Some predictor: not a good one, so that predicted actions are clipped now and then."""
    return jnp.sin(2 * x + level / 3) + 0.2 * jnp.roll(x, 1, axis=-1)


def noise_of(keys: jax.Array, number: int) -> Floats:
    rows = [jax.random.normal(jax.random.fold_in(key, number), (DIM,)) for key in keys]
    return np.asarray(rows, np.float64)


def predicted(x: Floats, level: int) -> tuple[Floats, Floats]:
    """The clipped action and how many coordinates were clipped."""
    angle = SCHEDULE.angle[level]
    noise = np.asarray(wobbly(jnp.asarray(x, jnp.float32), jnp.int32(level)), np.float64)
    action = (x - np.sin(angle) * noise) / np.cos(angle)
    return np.clip(action, -1, 1), np.abs(action) > 1


def ancestral(keys: jax.Array) -> tuple[Floats, int]:
    """Algorithm 2 of the DDPM: the posterior q(x_{t-1} | x_t, x_0) as its paper writes it."""
    signal = np.cos(SCHEDULE.angle) ** 2
    x, clipped = noise_of(keys, 0), 0
    for t in range(12, 0, -1):
        action, outside = predicted(x, t)
        clipped += int(outside.sum())
        beta = 1 - signal[t] / signal[t - 1]
        mean = (
            np.sqrt(signal[t - 1]) * beta / (1 - signal[t]) * action
            + np.sqrt(1 - beta) * (1 - signal[t - 1]) / (1 - signal[t]) * x
        )
        x = mean + np.sqrt((1 - signal[t - 1]) / (1 - signal[t]) * beta) * noise_of(keys, t)
    return np.clip(x, -1, 1), clipped


def implicit(keys: jax.Array, levels: list[int]) -> tuple[Floats, int]:
    """DDIM as a rotation: at the next angle, with the same action and the same noise."""
    x, clipped = noise_of(keys, 0), 0
    for t, s in pairwise(levels):
        action, outside = predicted(x, t)
        clipped += int(outside.sum())
        now, then = SCHEDULE.angle[t], SCHEDULE.angle[s]
        x = np.cos(then) * action + np.sin(then) * (x - np.cos(now) * action) / np.sin(now)
    return np.clip(x, -1, 1), clipped


@pytest.mark.parametrize(
    ("steps", "slow"),
    [
        (None, ancestral),
        (12, lambda keys: implicit(keys, list(range(12, -1, -1)))),
        (4, lambda keys: implicit(keys, [12, 9, 6, 3, 0])),
        (1, lambda keys: implicit(keys, [12, 0])),
    ],
    ids=["ancestral", "ddim-12", "ddim-4", "ddim-1"],
)
def test_sampling_is_the_textbook_loop(
    steps: int | None, slow: Callable[[jax.Array], tuple[Floats, int]]
) -> None:
    keys = jax.random.split(jax.random.key(4), ROWS)
    fast = denoise(wobbly, sampling_path(SCHEDULE, steps), keys, DIM, fresh_noise=steps is None)
    expected, clipped = slow(keys)
    assert clipped > 0  # else this would not see the clipping
    np.testing.assert_allclose(fast, expected, atol=2e-4)


@pytest.mark.parametrize("steps", [0, 13])
def test_steps_that_the_levels_do_not_allow_are_refused(steps: int) -> None:
    with pytest.raises(InputError, match="between 1 and 12 steps"):
        sampling_path(SCHEDULE, steps)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("steps", [None, 20], ids=["ancestral", "ddim"])
def test_with_a_perfect_predictor_the_density_is_the_mixture(
    context: tuple[float, float], steps: int | None
) -> None:
    schedule = Schedule(levels=100)
    predict = mixture.exact_noise(schedule, *context)
    keys = jax.random.split(jax.random.key(8), SAMPLES)
    drawn = denoise(predict, sampling_path(schedule, steps), keys, 2, fresh_noise=steps is None)
    sample = np.asarray(drawn, np.float64)
    state, goal = context
    assert mixture.distance_to_truth(sample, state, goal) < 1
    counts, centres = mixture.modes(sample, goal)
    assert mixture.weight_statistic(counts, state) < 13.8
    # Four standard errors of the rarest mode's mean (60 actions).
    np.testing.assert_allclose(centres, mixture.means(goal), atol=4 * 0.1 / np.sqrt(60))


def test_the_distance_sees_wrong_weights_wrong_widths_and_wrong_goals() -> None:
    rng = np.random.default_rng(2)
    (state, goal), n = CONTEXTS[0], SAMPLES
    for wrong in (
        mixture.draw(rng, n, -state, goal),
        mixture.draw(rng, n, state, goal, spread=0.2),
        mixture.draw(rng, n, state, goal - 0.1),
    ):
        assert mixture.distance_to_truth(wrong, state, goal) > 1
    counts, _ = mixture.modes(mixture.draw(rng, n, -state, goal), goal)
    assert mixture.weight_statistic(counts, state) > 13.8


def test_row_keys_depend_on_their_numbers_alone() -> None:
    key = jax.random.key(3)
    query, repeat = np.arange(4)[:, None], np.arange(3)[None]
    data = np.asarray(jax.random.key_data(row_keys(key, query, repeat, 9)))
    assert data.shape[:2] == (4, 3)
    assert len(np.unique(data.reshape(12, -1), axis=0)) == 12
    one = key
    for number in (2, 1, 9):
        one = jax.random.fold_in(one, number)
    np.testing.assert_array_equal(data[2, 1], jax.random.key_data(one))
    other = np.asarray(jax.random.key_data(row_keys(key, query, repeat, 10)))
    assert not (other == data).all(axis=-1).any()
