"""The closed form of the forward process against the process itself, step by step."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Schedule

N = 20_000
SCHEDULE = Schedule(levels=20)


def test_levels_go_from_the_action_to_almost_pure_noise() -> None:
    angle = SCHEDULE.angle
    assert angle.shape == (21,)
    assert angle[0] == 0
    assert (np.diff(angle) > 0).all()
    np.testing.assert_allclose(np.cos(angle[-1]), 0.05)
    np.testing.assert_allclose(angle[10], angle[20] / 4)  # half the time, a quarter of the angle


def test_the_number_of_levels_only_cuts_the_same_process_finer() -> None:
    np.testing.assert_allclose(Schedule(40).angle[::2], SCHEDULE.angle, rtol=1e-12)


def test_marginals_are_those_of_the_steps() -> None:
    """x_t = sqrt(1 - beta_t) x_{t-1} + sqrt(beta_t) z has the closed form's mean and variance."""
    rng = np.random.default_rng(0)
    action = np.array([0.8, -0.3])
    signal = np.cos(SCHEDULE.angle) ** 2
    beta = 1 - signal[1:] / signal[:-1]
    x = np.tile(action, (N, 1))
    for level in range(1, 21):
        x = np.sqrt(1 - beta[level - 1]) * x + np.sqrt(beta[level - 1]) * rng.normal(size=x.shape)
        closed = SCHEDULE.noised(
            jnp.asarray(action, jnp.float32),
            jnp.full(N, level),
            jax.random.normal(jax.random.key(level), (N, 2)),
        )
        variance = 1 - signal[level]
        for sample in (x, np.asarray(closed)):
            # Five standard errors of a mean and of a normal sample's variance.
            off = np.abs(sample.mean(axis=0) - np.sqrt(signal[level]) * action)
            assert (off < 5 * np.sqrt(variance / N)).all()
            assert (np.abs(sample.var(axis=0) / variance - 1) < 5 * np.sqrt(2 / N)).all()


def test_noised_broadcasts_levels_over_rows() -> None:
    actions, noise = jnp.ones((3, 1, 2)), jnp.ones((5, 2))
    level = jnp.array([[0], [10], [20]])
    x = SCHEDULE.noised(actions, level, noise)
    angle = SCHEDULE.angle[np.array([0, 10, 20])]
    expected = np.broadcast_to((np.cos(angle) + np.sin(angle))[:, None, None], (3, 5, 2))
    np.testing.assert_allclose(x, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"levels": 0}, "at least 1"), ({"left": 0.0}, "between 0"), ({"left": 1.0}, "between 0")],
)
def test_impossible_schedules_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Schedule(**settings)  # type: ignore[arg-type]
