"""The humanoid that gets up and runs: the package's online-humanoid-v0 with its DMC XY wrapper."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.experts.body import SUBSTEPS, Body, Floats, Ids, turn
from toptail.lab.tasks.batch import humanoid_body

_TORSO, _HEAD = 1, 2
_STANDING, _FALLEN = 1.2, 0.8
"""Heights of the head above which it stands and below which it has fallen."""
_STARTS = {0: (0.35, 0.25), 5_000_000: (0.05, 0.10)}
"""Shares of training episodes that begin standing and on the floor, from an environment step on."""


class Humanoid(Body):
    """The reward is stand · (1 + 100 · displacement along the direction), and nothing ends early.

    The package drops the body from above in a random pose, so it must learn to get up.
    """

    name = "humanoid"
    observation_size = 69
    action_size = 21
    seconds = 0.025
    episode_steps = 1000
    command_steps = 200

    def __init__(self, size: int, threads: int = 1) -> None:
        super().__init__(size, threads)
        self._xpos: Floats = self._batch.bind("xpos")
        self._xmat: Floats = self._batch.bind("xmat")
        self._sensors: Floats = self._batch.bind("sensordata")
        self._contacts: NDArray[np.int32] = self._batch.bind("ncon")
        self._ranges: Floats = self._batch.model.jnt_range[1:]
        self._batch.forward()  # what was bound just now is read from here on

    def start(self, ids: Ids, rng: np.random.Generator) -> None:
        """Begin above the ground in a random pose that touches nothing."""
        waiting = ids
        while len(waiting):
            qpos = np.tile(self._default_qpos, (len(waiting), 1))
            for row in qpos:  # in the package's order
                quaternion = rng.uniform(size=4)
                row[3:7] = quaternion / np.linalg.norm(quaternion)
                row[7:] = rng.uniform(self._ranges[:, 0], self._ranges[:, 1])
            self.reset(waiting, qpos, np.zeros((len(waiting), self.qvel.shape[1])))
            waiting = waiting[self._contacts[waiting] > 0]
        self.new_commands(ids, rng)

    def training_start(self, ids: Ids, rng: np.random.Generator, env_steps: int) -> Ids:
        """Begin some episodes standing and some on the floor, the others as the package does."""
        upright, lying = next(
            shares for since, shares in reversed(_STARTS.items()) if env_steps >= since
        )
        draw = rng.uniform(size=len(ids))
        standing = draw < upright
        floor = ~standing & (draw < upright + lying)
        own = ~(standing | floor)
        if own.any():
            self.start(ids[own], rng)
        if standing.any():
            self._start_near(ids[standing], rng, tilt=0.1, joints=0.1, speed=0.1, clearance=0.15)
        if floor.any():
            self._start_near(ids[floor], rng, tilt=np.pi, joints=0.5, speed=0.3, clearance=0.15)
        return np.where(own, 200, 50)

    def simulate(self, actions: NDArray[Any]) -> None:
        """Bring positions and sensors up to date after the step, which the package reads then."""
        self._control[:] = actions
        self._batch.step(nstep=SUBSTEPS, stage=self._mujoco.mjtStage.mjSTAGE_VEL.value)

    def step(self, actions: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Features: stand, and 100 · stand · displacement."""
        before = self.qpos[:, :2].copy()
        self.simulate(actions)
        stand = self._stand()[:, None]
        self.moved = self.qpos[:, :2] - before
        return np.concatenate([stand, 100.0 * stand * self.moved], axis=1), np.zeros(
            self.size, bool
        )

    def observations(self) -> Floats:
        """Joints, head height, extremities, torso vertical, velocities, direction."""
        state = (self.qpos, self.qvel, self._xpos, self._xmat, self._sensors)
        return np.concatenate([humanoid_body(*state), self.commands], axis=1)

    def standing(self) -> NDArray[np.bool_]:
        """Tell whose head is above 1.2."""
        return self._xpos[:, _HEAD, 2] > _STANDING

    def fallen(self) -> NDArray[np.bool_]:
        """Tell whose head is below 0.8."""
        return self._xpos[:, _HEAD, 2] < _FALLEN

    @staticmethod
    def inputs(observations: Any, xp: Any = np) -> Any:
        """Without the direction, and with both world velocities turned into it (67 numbers)."""
        commands = observations[:, -2:]
        return xp.concatenate(
            [
                observations[:, :37],
                turn(observations[:, 37:40], commands, xp),
                turn(observations[:, 40:43], commands, xp),
                observations[:, 43:67],
            ],
            axis=1,
        )

    def _stand(self) -> Floats:
        """The package's stand reward: head above 1.4, torso upright."""
        head = self._xpos[:, _HEAD, 2]
        short = np.maximum(1.4 - head, 0.0) / (1.4 / 4)
        upright = self._xmat[:, _TORSO].reshape(self.size, 9)[:, 8]
        tilted = np.maximum(0.9 - upright, 0.0) / 1.9
        standing: Floats = np.exp(-0.5 * (short * np.sqrt(-2 * np.log(0.1))) ** 2)
        return standing * np.where(tilted < 1, 1 - tilted, 0.0)

    def _start_near(
        self,
        ids: Ids,
        rng: np.random.Generator,
        tilt: float,
        joints: float,
        speed: float,
        clearance: float,
    ) -> None:
        """Begin near the default pose, tilted about a random axis, low above the ground."""
        count = len(ids)
        angle, axis, yaw = rng.uniform([0, 0, 0], [tilt, 2 * np.pi, 2 * np.pi], (count, 3)).T
        qpos = np.tile(self._default_qpos, (count, 1))
        # A turn by yaw about the vertical after a tilt about a horizontal axis.
        tilted = np.sin(angle / 2)
        qpos[:, 3] = np.cos(yaw / 2) * np.cos(angle / 2)
        qpos[:, 4] = tilted * np.cos(axis + yaw / 2)
        qpos[:, 5] = tilted * np.sin(axis + yaw / 2)
        qpos[:, 6] = np.sin(yaw / 2) * np.cos(angle / 2)
        low, high = self._ranges.T
        noise = rng.uniform(-joints, joints, (count, len(low)))
        qpos[:, 7:] = np.clip(qpos[:, 7:] + noise, low, high)
        qvel = speed * rng.standard_normal((count, self.qvel.shape[1]))
        self.reset(ids, qpos, qvel)
        qpos[:, 2] += clearance - self._xpos[ids, 1:, 2].min(axis=1)
        self.reset(ids, qpos, qvel)
        self.new_commands(ids, rng)
