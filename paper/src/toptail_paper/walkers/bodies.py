"""The bodies of walkers, simulated in batches as OGBench's online environments do."""

from __future__ import annotations

import importlib.util
import xml.etree.ElementTree as ET
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, how_to_install
from toptail.lab.tasks.simulator import humanoid_body, load_module
from toptail.lab.walkers.walker import ant_inputs, antball_inputs, axes, humanoid_inputs

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

SUBSTEPS = 5
"""Simulator steps per environment step."""
NOISE = 0.2
"""Deviation of the noise on an expert's mode, in evaluation as in collection."""


def asset(name: str) -> Path:
    """Find a model file of the package's online environments, without importing the package."""
    spec = importlib.util.find_spec("ogbench")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            f"This needs the model files of the package 'ogbench': {how_to_install('sim')}."
        )
    return Path(spec.submodule_search_locations[0]) / "online_locomotion" / "assets" / name


class Body(ABC):
    """``size`` simulations of one body, as the package's online environment simulates it.

    An observation ends with a *command* of two numbers: the direction to walk in, or the vector
    from the ball to the goal. A step returns *features*, from which the reward of any command
    follows, so that a stored step can be reused with another command.
    """

    name: ClassVar[str]
    observation_size: ClassVar[int]
    action_size: ClassVar[int]
    seconds: ClassVar[float]
    """Duration of one environment step."""
    episode_steps: ClassVar[int]
    """Steps after which the package's environment truncates an episode."""
    command_steps: ClassVar[int | None] = None
    """Steps after which a new direction is drawn; None if the command does not change."""
    truncation_ends: ClassVar[bool] = False
    """Whether a truncation counts as an end, as in the official training."""

    def __init__(self, size: int, threads: int = 1) -> None:
        self._mujoco = load_module("mujoco")
        model = self.make_model(self._mujoco)
        self._batch = load_module("mujoco.batch").Batch(model, size, threads)
        self.qpos: Floats = self._batch.bind("qpos")
        self.qvel: Floats = self._batch.bind("qvel")
        self._control: Floats = self._batch.bind("ctrl")
        self._default_qpos: Floats = model.qpos0.copy()
        self.commands: Floats = np.zeros((size, 2))
        """Every simulation's command, ``[size, 2]``."""
        self.moved: Floats = np.zeros((size, 2))
        """Displacement in the last step, ``[size, 2]``: the walker's, or the ball's."""
        self.reset(np.arange(size), self.qpos.copy(), self.qvel.copy())

    @property
    def size(self) -> int:
        return len(self.qpos)

    def reset(self, ids: Ids, qpos: Floats, qvel: Floats) -> None:
        """Put the simulations ``ids``, ascending, into states, without their earlier state."""
        self._batch.reset(ids=ids, stage=self._mujoco.mjtStage.mjSTAGE_NONE.value)
        self.qpos[ids] = qpos
        self.qvel[ids] = qvel
        self._batch.forward(ids=ids)

    def new_commands(self, ids: Ids, rng: np.random.Generator) -> None:
        """Draw new directions for the simulations ``ids``."""
        drawn = rng.standard_normal((len(ids), 2))
        self.commands[ids] = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    def training_start(self, ids: Ids, rng: np.random.Generator, env_steps: int) -> Ids:  # noqa: ARG002
        """Begin episodes as training does; return how long each may lie fallen, in steps.

        Unlike the package's own starts these may change with the steps taken so far.
        """
        self.start(ids, rng)
        return np.full(len(ids), 50)

    def simulate(self, actions: NDArray[Any]) -> None:
        """Take one environment step without rewards; actions ``[size, action]``."""
        self._control[:] = actions
        self._batch.step(nstep=SUBSTEPS)

    def progress(self, commands: Floats) -> Floats:
        """Displacement of the last step ``[size]`` along the commanded directions."""
        way: Floats = (self.moved * commands).sum(axis=1)
        return way

    def succeeded(self) -> NDArray[np.bool_]:
        """Whether each goal is reached, ``[size]``; False for bodies without goals."""
        return np.zeros(self.size, bool)

    def make_model(self, mujoco: Any) -> Any:
        return mujoco.MjModel.from_xml_path(str(asset(f"{self.name}.xml")))

    @abstractmethod
    def start(self, ids: Ids, rng: np.random.Generator) -> None:
        """Begin episodes of the simulations ``ids``, ascending, as the package does."""

    @abstractmethod
    def step(self, actions: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Take one environment step; returns features ``[size, 3]`` and ends ``[size]``."""

    @abstractmethod
    def observations(self) -> Floats:
        """The observations of the package's environment, ``[size, observation]``."""

    @abstractmethod
    def standing(self) -> NDArray[np.bool_]:
        """Which bodies are certainly upright, ``[size]``."""

    @abstractmethod
    def fallen(self) -> NDArray[np.bool_]:
        """Which bodies have certainly fallen, ``[size]``; some are neither."""

    @staticmethod
    def reward(features: Any, commands: Any, xp: Any = np) -> Any:  # noqa: ARG004
        """Return the package's reward ``[n]`` of steps under commands; NumPy or JAX arrays."""
        return features[:, 0] + features[:, 1] * commands[:, 0] + features[:, 2] * commands[:, 1]

    @staticmethod
    def advance(commands: Any, features: Any) -> Any:  # noqa: ARG004
        """Return the commands ``[n, 2]`` after steps; a direction stays."""
        return commands

    @staticmethod
    @abstractmethod
    def inputs(observations: Any, xp: Any = np) -> Any:
        """The networks' inputs from observations ``[n, observation]``; NumPy or JAX."""


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
        """Which torsos are within 60 degrees of upright."""
        return self._uprightness() > 0.5

    def fallen(self) -> NDArray[np.bool_]:
        """Which torsos point down."""
        return self._uprightness() < 0.0

    inputs = staticmethod(ant_inputs)

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


REACH = 0.5
"""Distance between ball and goal within which the package counts a success."""


class AntBall(Ant):
    """The reward is 10 · (2.5 · decrease of ball–goal distance + decrease of agent–ball distance).

    The command is the way from the ball to the goal; it shrinks as the ball moves.
    """

    name = "antball"
    observation_size = 42
    episode_steps = 200
    command_steps = None
    truncation_ends = True

    def make_model(self, mujoco: Any) -> Any:
        """Add the ball to the ant's model, as the package does."""
        tree = ET.parse(asset("ant.xml"))
        world = tree.find(".//worldbody")
        assert world is not None
        ball = ET.SubElement(world, "body", name="ball", pos="0 0 3")
        ET.SubElement(ball, "freejoint", name="ball_root")
        shape = {"name": "ball", "size": ".25", "priority": "1", "conaffinity": "1", "condim": "6"}
        ET.SubElement(ball, "geom", shape)
        return mujoco.MjModel.from_xml_string(ET.tostring(tree.getroot(), encoding="unicode"))

    def start(self, ids: Ids, rng: np.random.Generator) -> None:
        """Begin near the origin with the ball falling nearby and the goal somewhere around."""
        qpos, qvel = self._noisy_states(ids, rng)
        places = np.concatenate([rng.uniform(-side, side, (len(ids), 2)) for side in (1, 2, 12)], 1)
        qpos[:, :2] = places[:, :2]
        qpos[:, -7:-5] = places[:, 2:4]
        self.reset(ids, qpos, qvel)
        self.commands[ids] = places[:, 4:] - places[:, 2:4]

    def step(self, actions: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Features: 10 · decrease of agent–ball distance, and the ball's displacement."""
        agent, ball = self.qpos[:, :2].copy(), self.qpos[:, -7:-5].copy()
        self.simulate(actions)
        self.moved = self.qpos[:, -7:-5] - ball
        after = np.linalg.norm(self.qpos[:, :2] - self.qpos[:, -7:-5], axis=1)
        closer = np.linalg.norm(agent - ball, axis=1) - after
        self.commands -= self.moved
        return np.concatenate([10.0 * closer[:, None], self.moved], axis=1), self._unhealthy()

    def observations(self) -> Floats:
        """Ant and ball without their places, velocities, agent to ball, ball to goal."""
        qpos = self.qpos
        return np.concatenate(
            [qpos[:, 2:-7], qpos[:, -5:], self.qvel, qpos[:, -7:-5] - qpos[:, :2], self.commands],
            axis=1,
        )

    def progress(self, commands: Floats) -> Floats:
        """Return by how much the balls came closer to their goals."""
        after = np.linalg.norm(commands - self.moved, axis=1)
        closer: Floats = np.linalg.norm(commands, axis=1) - after
        return closer

    def succeeded(self) -> NDArray[np.bool_]:
        """Tell whose ball is within reach of its goal."""
        reached: NDArray[np.bool_] = np.linalg.norm(self.commands, axis=1) <= REACH
        return reached

    @staticmethod
    def reward(features: Any, commands: Any, xp: Any = np) -> Any:
        """Return the reward; the commands are those before the step."""
        before = xp.sqrt((commands**2).sum(axis=1))
        after = xp.sqrt(((commands - features[:, 1:]) ** 2).sum(axis=1))
        return features[:, 0] + 25.0 * (before - after)

    @staticmethod
    def advance(commands: Any, features: Any) -> Any:
        """The vectors from the ball to the goal after the ball moved."""
        return commands - features[:, 1:]

    inputs = staticmethod(antball_inputs)


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
        """Which heads are above 1.2."""
        return self._xpos[:, _HEAD, 2] > _STANDING

    def fallen(self) -> NDArray[np.bool_]:
        """Which heads are below 0.8."""
        return self._xpos[:, _HEAD, 2] < _FALLEN

    inputs = staticmethod(humanoid_inputs)

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


BODIES: dict[str, type[Body]] = {body.name: body for body in (Ant, AntBall, Humanoid)}


def body_named(name: str) -> type[Body]:
    if name not in BODIES:
        raise InputError(f"There is no body '{name}': expected one of {', '.join(BODIES)}.")
    return BODIES[name]
