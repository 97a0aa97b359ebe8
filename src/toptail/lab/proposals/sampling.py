"""From noise back to actions: ancestral DDPM steps, or fewer and deterministic DDIM steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from toptail.errors import InputError
from toptail.lab.proposals.denoiser import Schedule

Predict: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""(noised actions [n, a], their common level []) -> the noise that they hold [n, a]."""


class Path(NamedTuple):
    """The levels that sampling visits, and what each of its k steps multiplies with: each [k]."""

    level: jax.Array
    """Level t that the step starts from; int32, falling."""

    keep: jax.Array
    """cos(angle_t)"""

    spread: jax.Array
    """sin(angle_t)"""

    next_keep: jax.Array
    """cos(angle_s), with s < t the level that the step leads to."""

    direction: jax.Array
    """sqrt(sin^2(angle_s) - sigma^2): how much of the predicted noise stays."""

    sigma: jax.Array
    """Standard deviation of the fresh noise."""


def path(schedule: Schedule, steps: int | None) -> Path:
    """The path of ancestral sampling (``steps`` None), or of DDIM with that many steps.

    With abar = cos^2(angle), a step from level t to level s < t adds fresh noise of variance

        sigma^2 = eta^2 (1 - abar_s) / (1 - abar_t) (1 - abar_t / abar_s)

    (Song et al., 2021). With eta = 1 and s = t - 1 this is the posterior variance of the DDPM
    (Ho et al., 2020); DDIM is eta = 0 on levels that are evenly spaced from T to 0.
    """
    if steps is not None and not 1 <= steps <= schedule.levels:
        raise InputError(
            f"DDIM takes between 1 and {schedule.levels} steps through this model's noise levels, "
            f"not {steps}."
        )
    count = schedule.levels if steps is None else steps
    levels = np.rint(np.linspace(schedule.levels, 0, count + 1)).astype(np.int32)
    now, then = schedule.angle[levels[:-1]], schedule.angle[levels[1:]]
    variance = np.zeros(count)
    if steps is None:
        variance = (np.sin(then) / np.sin(now)) ** 2 * (1 - (np.cos(now) / np.cos(then)) ** 2)
    columns = (
        np.cos(now),
        np.sin(now),
        np.cos(then),
        np.sqrt(np.maximum(np.sin(then) ** 2 - variance, 0)),
        np.sqrt(variance),
    )
    return Path(jnp.asarray(levels[:-1]), *(jnp.asarray(x, jnp.float32) for x in columns))


def denoise(
    predict: Predict, way: Path, keys: jax.Array, dim: int, *, fresh_noise: bool
) -> jax.Array:
    """Draw one action per key.

    Row i uses ``keys[i]`` alone: fold_in(keys[i], 0) for the noise it starts from, and
    fold_in(keys[i], t) for the fresh noise of the step from level t. The predicted action is
    clipped to [-1, 1] in every step, and the noise is read again from the clipped one. Without
    ``fresh_noise`` the path's sigma is not used, and no noise is drawn on the way.

    Returns
    -------
    Actions [n, dim] in [-1, 1].
    """

    def noise(number: jax.Array | int) -> jax.Array:
        return jax.vmap(lambda key: jax.random.normal(jax.random.fold_in(key, number), (dim,)))(
            keys
        )

    def step(x: jax.Array, at: Path) -> tuple[jax.Array, None]:
        action = jnp.clip((x - at.spread * predict(x, at.level)) / at.keep, -1.0, 1.0)
        held = (x - at.keep * action) / at.spread
        x = at.next_keep * action + at.direction * held
        return (x + at.sigma * noise(at.level) if fresh_noise else x), None

    actions, _ = jax.lax.scan(step, noise(0), way)
    return jnp.clip(actions, -1.0, 1.0)


@jax.jit
def row_keys(key: jax.Array, *numbers: ArrayLike) -> jax.Array:
    """One key per row, from integers that say which row it is.

    ``row_keys(key, query, repeat, step)`` with arrays [n] gives rows of the same query, repeat
    and step the same key, whatever else is in the batch: common random numbers. The arrays
    broadcast.
    """
    columns = jnp.broadcast_arrays(*(jnp.asarray(x, jnp.uint32) for x in numbers))
    keys = jnp.broadcast_to(key, columns[0].shape)

    def fold(keys: jax.Array, column: jax.Array) -> jax.Array:
        return jax.vmap(jax.random.fold_in)(keys.ravel(), column.ravel()).reshape(column.shape)

    for column in columns:
        keys = fold(keys, column)
    return keys
