"""An environment for toptail check: gymnasium's pendulum, with a policy that goes on.

    toptail check --task pendulum.npz --env examples/pendulum_env.py:make --scorer ...

A candidate is then worth what this policy returns after it. Any class with ``restore(row)`` and
``step(action)`` does as well; see ``toptail.lab.environments.protocol``.
"""

from __future__ import annotations

import numpy as np

from toptail.lab.environments.gym import GymEnvironment


class Pendulum(GymEnvironment):
    """The pendulum, held up by a known controller."""

    def __init__(self) -> None:
        super().__init__("Pendulum-v1")

    def act(self, observations: np.ndarray, _goals: None) -> np.ndarray:
        """Pump energy until the pole is near the top, then hold it there."""
        cosine, sine, speed = observations.T
        energy = speed**2 / 6 + 5 * (cosine - 1)
        pump = -np.sign(np.where(speed == 0, 1.0, speed)) * np.sign(energy)
        hold = -4 * np.arctan2(sine, cosine) - speed
        return np.clip(np.where(cosine > 0.9, hold, pump), -1, 1)[:, None]


def make() -> Pendulum:
    """One simulation; more are made as they are needed."""
    return Pendulum()
