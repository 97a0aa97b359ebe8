"""The ant that walks in a direction: the package's online-ant-v0 with its XY wrapper."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toptail.lab.experts.body import Body, Floats, Ids, axes, turn

_NOISE = 0.1
_HEALTHY = (0.2, 1.0)


class Ant(Body):
    """The reward is the displacement along the direction.

    The package ends an episode when the torso leaves the heights [0.2, 1.0]. An ant on its back is
    within them, so a *fall* is counted here as a flip: the torso's own vertical points down.
    """

    name = "ant"
    observation_size = 29
    action_size = 8
    seconds = 0.1
    episode_steps = 1000
    command_steps: ClassVar[int | None] = 100

    def start(self, ids: Ids, rng: np.random.Generator) -> None:
        """Begin near the model's default pose, with a little speed and a new command."""
        qpos, qvel = self._noisy_states(ids, rng)
        self.reset(ids, qpos, qvel)
        self.new_commands(ids, rng)

    def step(self, actions: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Features: 0 and the displacement."""
        before = self.qpos[:, :2].copy()
        self.simulate(actions)
        self.moved = self.qpos[:, :2] - before
        return np.concatenate([np.zeros((self.size, 1)), self.moved], axis=1), self._unhealthy()

    def observations(self) -> Floats:
        """Positions without x and y, velocities, direction."""
        return np.concatenate([self.qpos[:, 2:], self.qvel, self.commands], axis=1)

    def standing(self) -> NDArray[np.bool_]:
        """Tell whose torso is within 60 degrees of upright."""
        return self._uprightness() > 0.5

    def fallen(self) -> NDArray[np.bool_]:
        """Tell whose torso points down."""
        return self._uprightness() < 0.0

    @staticmethod
    def inputs(observations: Any, xp: Any = np) -> Any:
        """Height, torso axes, joints, velocity, turning and joint speeds (32 numbers).

        Axes stand for the quaternion, whose two signs mean the same pose.
        """
        commands = observations[:, -2:]
        return xp.concatenate(
            [
                observations[:, :1],
                *(turn(axis, commands, xp) for axis in axes(observations[:, 1:5], xp)),
                observations[:, 5:13],
                turn(observations[:, 13:16], commands, xp),
                observations[:, 16:27],
            ],
            axis=1,
        )

    def _noisy_states(self, ids: Ids, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw states in the package's order, simulation by simulation."""
        qpos = np.tile(self._default_qpos, (len(ids), 1))
        qvel = np.zeros((len(ids), self.qvel.shape[1]))
        for i in range(len(ids)):
            qpos[i] += rng.uniform(-_NOISE, _NOISE, qpos.shape[1])
            qvel[i] += _NOISE * rng.standard_normal(qvel.shape[1])
        return qpos, qvel

    def _unhealthy(self) -> NDArray[np.bool_]:
        low, high = _HEALTHY
        height = self.qpos[:, 2]
        finite = np.isfinite(self.qpos).all(axis=1) & np.isfinite(self.qvel).all(axis=1)
        return ~(finite & (low <= height) & (height <= high))

    def _uprightness(self) -> Floats:
        vertical: Floats = axes(self.qpos[:, 3:7], np)[2][:, 2]
        return vertical
