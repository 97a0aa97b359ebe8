"""Many copies of one maze environment, stepped together on MuJoCo's own threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.maze import POINT_REACH, Maze, Positions
from toptail.lab.tasks.names import MAZES
from toptail.lab.tasks.simulator import load_module, make_env

FloatArray = NDArray[np.float64]

_SUBSTEPS = 5
# The humanoid's bodies, as its observation lists them: hands and feet.
_TORSO, _HEAD = 1, 2
_LIMBS = (16, 10, 13, 7)


class MazeBatch:
    """``size`` simulations of one maze environment.

    Stepping gives bit for bit what the environments' own ``step`` gives, one by one, whatever
    the number of threads, which include the caller's (0 takes every core). Rewards and episode
    ends are the caller's business. ``environment`` is a gymnasium id such as
    ``pointmaze-medium-v0``: a maze or the soccer arena, without teleports.
    """

    def __init__(self, environment: str, size: int, threads: int = 1) -> None:
        self.family, variant = environment.split("-")[:2]
        if self.family not in MAZES or variant == "teleport":
            raise InputError(
                f"'{environment}' cannot be stepped in batches: expected one of "
                f"{', '.join(MAZES)} without teleports."
            )
        self._mujoco = load_module("mujoco")
        self.env = make_env(environment, terminate_at_goal=False)
        self.maze = Maze.of(self.env)
        self.goal_tolerance = float(self.env.unwrapped._goal_tol)
        """Distance within which the environment counts a goal as reached."""
        self._batch = load_module("mujoco.batch").Batch(self.env.unwrapped.model, size, threads)
        self.qpos: FloatArray = self._batch.bind("qpos")
        self.qvel: FloatArray = self._batch.bind("qvel")
        self._control: FloatArray = self._batch.bind("ctrl")
        self._warmstart: FloatArray = self._batch.bind("qacc_warmstart")
        if self.family == "humanoidmaze":
            self._xpos: FloatArray = self._batch.bind("xpos")
            self._xmat: FloatArray = self._batch.bind("xmat")
            self._sensors: FloatArray = self._batch.bind("sensordata")

    @property
    def size(self) -> int:
        """Number of simulations."""
        return len(self.qpos)

    @property
    def action_size(self) -> int:
        """Columns of an action."""
        return int(self._control.shape[1])

    def restore(
        self, qpos: NDArray[Any], qvel: NDArray[Any], ids: NDArray[np.int64] | None = None
    ) -> None:
        """Put simulations into states, ``[n, nq]`` and ``[n, nv]``.

        These are the simulations ``ids [n]``, ascending, while the others go on; all unless given.
        Nothing of what they did before is left, so that the same state gives the same rollout
        to the last bit.
        """
        self._batch.reset(ids=ids, stage=self._mujoco.mjtStage.mjSTAGE_NONE.value)
        at = slice(None) if ids is None else ids
        self.qpos[at] = qpos
        self.qvel[at] = qvel
        self._batch.forward(ids=ids)

    def step(self, actions: NDArray[Any], ids: NDArray[np.int64] | None = None) -> None:
        """Take one environment step with actions ``[size, action]``.

        Only the simulations ``ids``, ascending, need to be stepped, where given: the others may
        or may not move, and must be restored before they are of use again.
        """
        if self.family == "pointmaze":
            self._step_points(actions)
        elif self.family == "humanoidmaze":
            # The package reads positions and sensors after the step: bring them up to date.
            self._control[:] = actions
            stage = self._mujoco.mjtStage.mjSTAGE_VEL.value
            self._batch.step(ids=ids, nstep=_SUBSTEPS, stage=stage)
        else:
            self._control[:] = actions
            self._batch.step(ids=ids, nstep=_SUBSTEPS)

    def observations(self) -> FloatArray:
        """Return the observation of every simulation, ``[size, observation]``."""
        if self.family == "pointmaze":
            return self.qpos.copy()
        if self.family == "humanoidmaze":
            state = (self.qpos, self.qvel, self._xpos, self._xmat, self._sensors)
            return np.concatenate([self.qpos[:, :2], humanoid_body(*state)], axis=1)
        return np.concatenate([self.qpos, self.qvel], axis=1)

    def positions(self) -> Positions:
        """Return the agents' positions, ``[size, 2]``."""
        return self.qpos[:, :2].copy()

    def goal_seekers(self) -> Positions:
        """Return the positions of what must reach the goal: the ball in soccer, else the agent."""
        return self.qpos[:, -7:-5].copy() if self.family == "antsoccer" else self.positions()

    def _step_points(self, actions: NDArray[Any]) -> None:
        """Move the points, and simulate those that may touch a wall.

        The package adds 0.2 · action to the position, clears the velocity and lets MuJoCo push
        the point out of the walls. Away from walls no force acts on it, so MuJoCo would leave
        it exactly where it is: that is most of the steps, and they cost nothing here.
        """
        self.qpos += 0.2 * actions
        self.qvel[:] = 0.0
        clear = self.maze.clear_of_walls(self.qpos, POINT_REACH)
        self._warmstart[clear] = 0.0
        if not clear.all():
            self._batch.step(ids=~clear, nstep=_SUBSTEPS)


def humanoid_body(
    qpos: FloatArray, qvel: FloatArray, xpos: FloatArray, xmat: FloatArray, sensors: FloatArray
) -> FloatArray:
    """The humanoid's observation without its place, ``[n, 67]``, of what MuJoCo computed.

    Joints, head height, hands and feet as the torso sees them, the torso's vertical, the centre of
    mass's velocity, all velocities.
    """
    rotation = xmat.reshape(len(qpos), -1, 3, 3)[:, _TORSO]
    limbs = xpos[:, _LIMBS] - xpos[:, [_TORSO]]
    parts = [
        qpos[:, 7:],
        xpos[:, _HEAD, 2:],
        (limbs @ rotation).reshape(len(qpos), -1),
        rotation[:, 2],
        sensors[:, :3],
        qvel,
    ]
    return np.concatenate(parts, axis=1)
