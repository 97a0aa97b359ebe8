"""The goal-conditioned DDPM behaviour model: its network, its loss and its samplers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError, option
from toptail.lab.critics.base import (
    TARGET,
    Batch,
    Info,
    Learner,
    Params,
    half_kernels,
    trained_only,
)
from toptail.lab.critics.networks import Stack, flat_rows


@dataclass(frozen=True)
class Schedule:
    """The cosine schedule in squared time: x_t = cos(angle_t) x_0 + sin(angle_t) noise.

    The noise is N(0, I), so that cos^2(angle_t) is what is usually called abar_t. Level 0 is the
    action itself, and angle_t = (t / T)^2 arccos(left) for t = 0 ... T.

    Time is squared because the width of a mode is decided where the noise is as small as the
    mode. With a perfect predictor and modes of standard deviation 0.1, ten DDIM steps give 0.084
    on angles that are evenly spaced and 0.099 on these; 100 ancestral steps give 0.089 and 0.096.
    """

    levels: int = 100
    """T, the number of noise levels; ancestral sampling takes one step per level."""
    left: float = 0.05
    """Share of the action's amplitude at level T, where sampling starts from pure noise. Nearer to
    0 the start is more exact, but errors of the predictor are divided by it."""

    def __post_init__(self) -> None:
        if self.levels < 1:
            raise InputError(f"A diffusion model needs at least 1 noise level, not {self.levels}.")
        if not 0 < self.left < 1:
            raise InputError(
                f"The share of the action that is left at the last level must lie between 0 and "
                f"1, and {self.left:g} does not."
            )

    @property
    def angle(self) -> NDArray[np.float64]:
        """Angles of levels 0 ... T: [T + 1], from 0 up."""
        time = np.arange(self.levels + 1) / self.levels
        angle: NDArray[np.float64] = time**2 * np.arccos(self.left)
        return angle

    def amplitudes(self, level: jax.Array) -> tuple[jax.Array, jax.Array]:
        """cos(angle_t) and sin(angle_t) of levels [...]: [..., 1] each."""
        angle = self.angle
        keep, spread = (jnp.asarray(f(angle), jnp.float32)[level] for f in (np.cos, np.sin))
        return keep[..., None], spread[..., None]

    def noised(self, actions: jax.Array, level: jax.Array, noise: jax.Array) -> jax.Array:
        """Actions [..., a] with noise [..., a] at levels [...]: a draw from q(x_t | x_0)."""
        keep, spread = self.amplitudes(level)
        return keep * actions + spread * noise


HELD_OUT_LEVELS = 16
"""Noise levels of the held-out score."""


@dataclass(frozen=True)
class Diffusion(Learner):
    """pi(a | s, g) as a DDPM: eps(x_t, t, s, g) predicts the noise in a noised action.

    It is trained on the actions of the data set, with a future state of the same trajectory as
    the goal, and is sampled with the moving average (EMA) of its parameters, which are stored
    under `TARGET`.

    It proposes actions; it does not value them.
    """

    name: ClassVar[str] = "diffusion"

    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""
    levels: int = 100
    """T, the number of noise levels of the cosine `Schedule`."""
    time_dim: int = 32
    """Width of the sinusoidal embedding of the level; even."""
    ema_decay: float = 0.999
    """Share of the moving average of the parameters that stays after each step."""
    bfloat16: bool = False
    """Whether matrix products and activations are bfloat16."""

    def __post_init__(self) -> None:
        if self.time_dim < 2 or self.time_dim % 2:
            raise InputError(
                f"{option('time_dim', self.time_dim)} must be an even number from 2 up."
            )
        if not 0 <= self.ema_decay < 1:
            raise InputError(
                f"{option('ema_decay', self.ema_decay)} must be 0 or more, and below 1."
            )
        if not self.hidden:
            raise InputError("The denoiser needs at least one hidden layer.")
        Schedule(self.levels)  # refuses an impossible number of levels

    @property
    def schedule(self) -> Schedule:
        return Schedule(self.levels)

    def stack(self, action_dim: int) -> Stack:
        """The network, as a stack of one."""
        return Stack((("denoiser", 1),), self.hidden, action_dim, self.bfloat16)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """A fresh network, and its copy as the first moving average."""
        inputs = {"denoiser": state_dim + goal_dim + action_dim + self.time_dim}
        params = self.stack(action_dim).init(key, inputs)
        return {**params, TARGET: jax.tree.map(jnp.copy, params)}

    def compute_params(self, params: Params) -> Params:
        """The trained parameters without the average; kernels in bfloat16 if products are."""
        trained = trained_only(params)
        return half_kernels(trained) if self.bfloat16 else trained

    def after_update(self, params: Params) -> Params:
        """Move the average a little towards the parameters."""
        rate = 1.0 - self.ema_decay
        average = {
            name: value + rate * (params[name] - value) for name, value in params[TARGET].items()
        }
        return {**params, TARGET: average}

    def predict(
        self, params: Params, noised: jax.Array, level: jax.Array, context: jax.Array
    ) -> jax.Array:
        """The noise eps(x_t, t, s, g) that noised actions hold, in float32.

        eps = sin(angle_t) x_t + cos(angle_t) F(x_t, t, s, g) with F the network, whose target is
        then of order 1 at every level. The action that follows, cos(angle_t) x_t - sin(angle_t) F,
        does not amplify F's error, whereas the error of a network for eps itself is divided by 0.05
        at the last level, from which DDIM's few long steps do not recover.

        ``params`` are the trained parameters or their average, ``noised`` [n, a] the actions x_t,
        ``level`` [n] or [] their levels t, and ``context`` [n, s + g] states and goals.
        """
        time = jnp.broadcast_to(self.embed_level(level), (len(noised), self.time_dim))
        rows = jnp.concatenate([context, noised, time], axis=-1)
        out = self.stack(noised.shape[-1]).apply(params, {"denoiser": rows})["denoiser"]
        keep, spread = self.schedule.amplitudes(level)
        return spread * noised + keep * out[0].astype(jnp.float32)

    def embed_level(self, level: jax.Array) -> jax.Array:
        """Sines and cosines of t / T at frequencies from 1 to 1000: [..., time_dim]."""
        frequency = jnp.asarray(np.geomspace(1.0, 1000.0, self.time_dim // 2), jnp.float32)
        phase = level[..., None].astype(jnp.float32) / self.levels * frequency
        return jnp.concatenate([jnp.sin(phase), jnp.cos(phase)], axis=-1)

    def errors(
        self,
        params: Params,
        states: jax.Array,
        actions: jax.Array,
        goals: jax.Array,
        level: jax.Array,
        noise: jax.Array,
    ) -> jax.Array:
        """|eps(x_t, t, s, g) - noise|^2 / cos^2(angle_t), mean over the action's coordinates.

        The weight makes it the squared error of the network F: see `predict`. Rows are [..., dim]
        with leading axes that broadcast, also against ``level`` [...]; the result has those axes.
        """
        x = self.schedule.noised(actions, level, noise)
        rows, lead = flat_rows(states, goals, x, noise)
        context, x, noise = jnp.split(
            rows, np.cumsum([states.shape[-1] + goals.shape[-1], x.shape[-1]]), axis=-1
        )
        at = jnp.broadcast_to(level, lead).reshape(-1)
        error = (self.predict(params, x, at, context) - noise) / self.schedule.amplitudes(at)[0]
        return jnp.mean(error * error, axis=-1).reshape(lead)

    def draw_levels(self, key: jax.Array, rows: int) -> jax.Array:
        """Levels [rows] uniform on 1 ... T, spread evenly over the batch by one common shift."""
        place = (jnp.arange(rows) / rows + jax.random.uniform(key)) % 1.0
        return jnp.minimum(1 + (place * self.levels).astype(jnp.int32), self.levels)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Mean of `errors` over rows, with a level and a noise drawn for each.

        The info has the mean over each half of the levels: the lower one decides how sharp the
        actions are, the upper one which mode they belong to.
        """
        key_level, key_noise = jax.random.split(key)
        level = self.draw_levels(key_level, len(batch.actions))
        noise = jax.random.normal(key_noise, batch.actions.shape)
        error = self.errors(params, batch.states, batch.actions, batch.goals, level, noise)
        low = (2 * level <= self.levels).astype(jnp.float32)

        def mean(weight: jax.Array) -> jax.Array:
            return jnp.sum(weight * error) / jnp.maximum(jnp.sum(weight), 1.0)

        return jnp.mean(error), {"low_noise_loss": mean(low), "high_noise_loss": mean(1.0 - low)}

    def held_out(
        self, params: Params, states: jax.Array, actions: jax.Array, goals: jax.Array
    ) -> dict[str, jax.Array]:
        """How usual the action is: minus its denoising error, averaged over levels and noise.

        All rows have the same noise, so that scores differ by the actions alone.
        """
        level = jnp.asarray(np.linspace(1, self.levels, HELD_OUT_LEVELS).round(), jnp.int32)
        noise = jax.random.normal(jax.random.key(0), (HELD_OUT_LEVELS, actions.shape[-1]))

        def at(one: tuple[jax.Array, jax.Array]) -> jax.Array:
            return self.errors(params[TARGET], states, actions, goals, *one)

        return {"score": -jnp.mean(jax.lax.map(at, (level, noise)), axis=0)}


Predict: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""(noised actions [n, a], their common level []) -> their noise [n, a]."""


class SamplingPath(NamedTuple):
    """The levels that sampling visits, and the coefficients of its k steps: each [k]."""

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


def sampling_path(schedule: Schedule, steps: int | None) -> SamplingPath:
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
    return SamplingPath(jnp.asarray(levels[:-1]), *(jnp.asarray(x, jnp.float32) for x in columns))


def denoise(
    predict: Predict, path: SamplingPath, keys: jax.Array, dim: int, *, fresh_noise: bool
) -> jax.Array:
    """Draw one action per key.

    Row i uses ``keys[i]`` alone: fold_in(keys[i], 0) for the noise it starts from, and
    fold_in(keys[i], t) for the fresh noise of the step from level t. The predicted action is
    clipped to [-1, 1] in every step, and the noise is read again from the clipped one. Without
    ``fresh_noise`` the path's sigma is not used, and no noise is drawn between the levels.

    Returns
    -------
    Actions [n, dim] in [-1, 1].
    """

    def noise(number: jax.Array | int) -> jax.Array:
        return jax.vmap(lambda key: jax.random.normal(jax.random.fold_in(key, number), (dim,)))(
            keys
        )

    def step(x: jax.Array, at: SamplingPath) -> tuple[jax.Array, None]:
        action = jnp.clip((x - at.spread * predict(x, at.level)) / at.keep, -1.0, 1.0)
        held = (x - at.keep * action) / at.spread
        x = at.next_keep * action + at.direction * held
        return (x + at.sigma * noise(at.level) if fresh_noise else x), None

    actions, _ = jax.lax.scan(step, noise(0), path)
    return jnp.clip(actions, -1.0, 1.0)


@jax.jit
def row_keys(key: jax.Array, *numbers: ArrayLike) -> jax.Array:
    """One key per row, from integers that identify the row.

    ``row_keys(key, query, repeat, step)`` with arrays [n] gives rows of the same query, repeat
    and step the same key in any batch: common random numbers. The arrays broadcast.
    """
    columns = jnp.broadcast_arrays(*(jnp.asarray(x, jnp.uint32) for x in numbers))
    keys = jnp.broadcast_to(key, columns[0].shape)

    def fold(keys: jax.Array, column: jax.Array) -> jax.Array:
        return jax.vmap(jax.random.fold_in)(keys.ravel(), column.ravel()).reshape(column.shape)

    for column in columns:
        keys = fold(keys, column)
    return keys
