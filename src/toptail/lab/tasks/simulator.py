"""MuJoCo and OGBench: imported on first use, seeded, and restored to recorded rows."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, how_to_install
from toptail.lab.tasks.maze import POINT_REACH, Maze, Positions
from toptail.lab.tasks.names import MAZES, TaskName
from toptail.lab.tasks.trajectories import Trajectories
from toptail.stats.best_of_k import Floats


@cache
def load_module(name: str) -> Any:
    """Import a module of the ``sim`` extra, or say how to install it."""
    try:
        with quiet():
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"This needs the simulator, and its package '{error.name}' is not installed: "
            f"{how_to_install('sim')}."
        ) from error


def make_env(environment: str, **options: Any) -> Any:
    """Make an OGBench environment by its gymnasium id, without rendering."""
    load_module("ogbench")  # registers the environments
    gymnasium = load_module("gymnasium")
    with quiet():
        return gymnasium.make(environment, disable_env_checker=True, **options)


@contextmanager
def package_randomness(seed: np.random.SeedSequence) -> Iterator[int]:
    """Give the package's own draws a seed, and put NumPy's global generator back afterwards.

    OGBench's resets and plan oracles draw from NumPy's global generator, which nothing else in
    this project uses. The value is the seed to pass to ``env.reset``.
    """
    reset_seed, global_seed = (int(word) for word in seed.generate_state(2))
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(global_seed)  # noqa: NPY002
    try:
        with quiet():
            yield reset_seed
    finally:
        np.random.set_state(state)  # noqa: NPY002


@contextmanager
def quiet() -> Iterator[None]:
    """Ignore warnings about a missing display and about gymnasium's float32 boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*DISPLAY environment variable.*")
        warnings.filterwarnings("ignore", message=".*precision lowered by casting to float32.*")
        yield


MAZE_TOLERANCE = 1e-4
"""Largest error of a maze's next observation after a restore; it comes from float32 storage."""

_GRIPPER_CONTACT = 18


class Simulator:
    """One environment of a task that can be restored to the state of any recorded row.

    A row stores positions, velocities and button states in float32. The rest of the simulator's
    state (the constraint solver's warm start, the clock) starts from zero, so that two restores of
    one row continue with the same bits.
    """

    def __init__(self, task: TaskName) -> None:
        if task.dimensions is None:
            raise InputError(
                f"{task.name} cannot be restored: expected a task whose observations are states."
            )
        self._task = task
        self._mujoco = load_module("mujoco")
        options: dict[str, Any] = {} if task.is_maze else {"mode": "data_collection"}
        self._env = make_env(task.environment, terminate_at_goal=False, **options).unwrapped
        with package_randomness(np.random.SeedSequence(0)) as seed:
            self._env.reset(seed=seed)

    def restore(self, trajectories: Trajectories, row: int) -> Floats:
        """Restore the state before the action of a row; returns the observation."""
        state = trajectories.simulator_state(np.array([row]))
        qpos, qvel = state.qpos[0].astype(np.float64), state.qvel[0].astype(np.float64)
        if (len(qpos), len(qvel)) != (self._env.model.nq, self._env.model.nv):
            raise InputError(
                f"{trajectories.source} has {len(qpos)} positions and {len(qvel)} velocities per "
                f"row, and {self._task.environment} has {self._env.model.nq} and "
                f"{self._env.model.nv}: the file is of another task."
            )
        self._mujoco.mj_resetData(self._env.model, self._env.data)
        if state.button_states is not None:
            self._env.set_state(qpos, qvel, state.button_states[0])
        else:
            self._env.set_state(qpos, qvel)
        if self._task.family == "cube":
            self._turn_kinematics_back()
        env = self._env
        observed = env.get_ob() if self._task.is_maze else env.compute_observation()
        observation = np.asarray(observed, dtype=np.float64)
        if not self._task.is_maze:
            # The force that the gripper feels follows from the last control, which is not stored.
            observation[_GRIPPER_CONTACT] = trajectories.observations[row, _GRIPPER_CONTACT]
        return observation

    def step(self, action: NDArray[Any]) -> Floats:
        """Take one environment step and return the next observation."""
        return np.asarray(self._env.step(action)[0], dtype=np.float64)

    def _turn_kinematics_back(self) -> None:
        """Set the hand of the cube tasks to its position one physics step ago.

        These environments do not recompute kinematics after a step, so that observations and
        controls use the hand's position before the last physics step, which added dt · velocity
        to the positions.
        """
        model, data, mujoco = self._env.model, self._env.data, self._mujoco
        qpos = data.qpos.copy()
        mujoco.mj_integratePos(model, data.qpos, data.qvel, -model.opt.timestep)
        mujoco.mj_kinematics(model, data)
        data.qpos[:] = qpos


_SUBSTEPS = 5
# The humanoid's bodies, as its observation lists them: hands and feet.
_TORSO, _HEAD = 1, 2
_LIMBS = (16, 10, 13, 7)


class MazeBatch:
    """``size`` simulations of one maze environment.

    A step gives the same bits as the environments' own ``step``, for any number of threads (0 is
    one per core). There are no rewards and no ends of episodes. ``environment`` is a gymnasium id
    such as ``pointmaze-medium-v0``: a maze or the soccer arena, without teleports.
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
        self.qpos: Floats = self._batch.bind("qpos")
        self.qvel: Floats = self._batch.bind("qvel")
        self._control: Floats = self._batch.bind("ctrl")
        self._warmstart: Floats = self._batch.bind("qacc_warmstart")
        if self.family == "humanoidmaze":
            self._xpos: Floats = self._batch.bind("xpos")
            self._xmat: Floats = self._batch.bind("xmat")
            self._sensors: Floats = self._batch.bind("sensordata")

    @property
    def size(self) -> int:
        return len(self.qpos)

    @property
    def action_size(self) -> int:
        return int(self._control.shape[1])

    def restore(
        self, qpos: NDArray[Any], qvel: NDArray[Any], ids: NDArray[np.int64] | None = None
    ) -> None:
        """Put simulations into states, ``[n, nq]`` and ``[n, nv]``.

        ``ids [n]``, ascending, are the simulations to restore; by default all. Nothing of their
        earlier state is left, so that equal states give equal rollouts to the last bit.
        """
        self._batch.reset(ids=ids, stage=self._mujoco.mjtStage.mjSTAGE_NONE.value)
        at = slice(None) if ids is None else ids
        self.qpos[at] = qpos
        self.qvel[at] = qvel
        self._batch.forward(ids=ids)

    def step(self, actions: NDArray[Any], ids: NDArray[np.int64] | None = None) -> None:
        """Take one environment step with actions ``[size, action]``.

        With ``ids``, ascending, the other simulations are in no defined state afterwards: restore
        them before they are used again.
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

    def observations(self) -> Floats:
        """The observation of every simulation, ``[size, observation]``."""
        if self.family == "pointmaze":
            return self.qpos.copy()
        if self.family == "humanoidmaze":
            state = (self.qpos, self.qvel, self._xpos, self._xmat, self._sensors)
            return np.concatenate([self.qpos[:, :2], humanoid_body(*state)], axis=1)
        return np.concatenate([self.qpos, self.qvel], axis=1)

    def positions(self) -> Positions:
        """Positions of the agents, ``[size, 2]``."""
        return self.qpos[:, :2].copy()

    def goal_seekers(self) -> Positions:
        """Positions that must reach the goal, ``[size, 2]``: of balls in soccer, else of agents."""
        return self.qpos[:, -7:-5].copy() if self.family == "antsoccer" else self.positions()

    def _step_points(self, actions: NDArray[Any]) -> None:
        """Move the points, and simulate those that may touch a wall.

        The package adds 0.2 · action to the position, clears the velocity and lets MuJoCo push
        the point out of the walls. Away from walls, which is most steps, MuJoCo would not move it:
        these steps are not simulated.
        """
        self.qpos += 0.2 * actions
        self.qvel[:] = 0.0
        clear = self.maze.clear_of_walls(self.qpos, POINT_REACH)
        self._warmstart[clear] = 0.0
        if not clear.all():
            self._batch.step(ids=~clear, nstep=_SUBSTEPS)


def humanoid_body(
    qpos: Floats,
    qvel: Floats,
    xpos: Floats,
    xmat: Floats,
    sensors: Floats,
) -> Floats:
    """The humanoid's observation without its position, ``[n, 67]``, from MuJoCo's arrays.

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
