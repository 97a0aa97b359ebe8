"""The noise schedule of the diffusion model: how much of an action is left at each level."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError


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
    """Share of the action's amplitude that is left at level T, where sampling starts from pure
    noise. Nearer to 0 the start is more exact, but errors of the predictor are divided by it."""

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
