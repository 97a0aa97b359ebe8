"""A conditional mixture of Gaussians whose noise predictor is known, and distances to it."""

from __future__ import annotations

from functools import cache
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from toptail.lab.critics.base import Batch
from toptail.lab.proposals.denoiser import Predict, Schedule

Floats: TypeAlias = NDArray[np.float64]

MEANS = np.array([[0.5, 0.5], [-0.5, 0.3], [0.2, -0.6]])
SPREAD = 0.1
CONTEXTS = ((1.0, 0.2), (-1.0, -0.2))
"""A state, which decides the weights, and a goal, which shifts the first coordinate."""

SAMPLES = 600


def weights(state: float) -> Floats:
    return np.array([0.6, 0.1, 0.3]) if state > 0 else np.array([0.2, 0.5, 0.3])


def means(goal: float) -> Floats:
    moved: Floats = MEANS + np.array([goal, 0.0])
    return moved


def draw(
    rng: np.random.Generator, n: int, state: float, goal: float, spread: float = SPREAD
) -> Floats:
    modes = rng.choice(3, size=n, p=weights(state))
    drawn: Floats = means(goal)[modes] + spread * rng.normal(size=(n, 2))
    return drawn


def data_set(n: int, seed: int) -> Batch:
    """Rows with states -1 and 1 and goals between -0.3 and 0.3."""
    rng = np.random.default_rng(seed)
    states, goals = rng.choice([-1.0, 1.0], n), rng.uniform(-0.3, 0.3, n)
    actions = np.concatenate([draw(rng, 1, *row) for row in zip(states, goals, strict=True)])
    columns = (states[:, None], actions, goals[:, None], np.zeros(n))
    s, a, g, rewards = (jnp.asarray(column, jnp.float32) for column in columns)
    return Batch(s, a, g, rewards)


def exact_noise(schedule: Schedule, state: float, goal: float) -> Predict:
    """E[noise | x_t] of the mixture, in closed form."""
    centre, weight = jnp.asarray(means(goal)), jnp.asarray(weights(state))

    def predict(x: jax.Array, level: jax.Array) -> jax.Array:
        keep, spread = schedule.amplitudes(level)
        variance = keep**2 * SPREAD**2 + spread**2
        away = x[:, None] - keep * centre
        share = jax.nn.softmax(jnp.log(weight) - jnp.sum(away**2, -1) / 2 / variance, axis=-1)
        return spread * jnp.sum(share[..., None] * away, axis=1) / variance

    return predict


def energy_distance(x: Floats, y: Floats) -> float:
    return float(2 * cdist(x, y).mean() - cdist(x, x).mean() - cdist(y, y).mean())


@cache
def null_bound(state: float, goal: float) -> float:
    """The largest of 199 energy distances between two true samples: passed by 1 in 200."""
    rng = np.random.default_rng(11)
    pairs = [[draw(rng, SAMPLES, state, goal) for _ in range(2)] for _ in range(199)]
    return max(energy_distance(*pair) for pair in pairs)


def distance_to_truth(sample: Floats, state: float, goal: float, seed: int = 5) -> float:
    """Energy distance to a true sample, in units of the null's bound: above 1 is a mismatch."""
    truth = draw(np.random.default_rng(seed), SAMPLES, state, goal)
    return energy_distance(sample, truth) / null_bound(state, goal)


def modes(sample: Floats, goal: float) -> tuple[NDArray[np.int64], Floats]:
    """How many actions belong to each mode, and the centres of those."""
    nearest = cdist(sample, means(goal)).argmin(axis=1)
    centres = np.stack([sample[nearest == mode].mean(axis=0) for mode in range(3)])
    return np.bincount(nearest, minlength=3), centres


def weight_statistic(counts: NDArray[np.int64], state: float) -> float:
    """Pearson's chi-square of the modes' counts: 2 degrees of freedom, 13.8 is its 99.9 % point."""
    expected = counts.sum() * weights(state)
    return float(((counts - expected) ** 2 / expected).sum())
