"""What the three bodies share: a batch of simulations, commands, and rewards for any command."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.simulator import load_module

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
            "This needs the model files of the package 'ogbench': pip install 'toptail[sim]'."
        )
    return Path(spec.submodule_search_locations[0]) / "online_locomotion" / "assets" / name


class Body(ABC):
    """``size`` simulations of one body, as the package's online environment simulates it.

    An observation ends with a *command* of two numbers: the direction to walk in, or the way from
    the ball to the goal. A step leaves *features* from which the reward follows for any command, so
    that a stored step can be used again under another one.
    """

    name: ClassVar[str]
    observation_size: ClassVar[int]
    action_size: ClassVar[int]
    seconds: ClassVar[float]
    """Duration of one environment step."""
    episode_steps: ClassVar[int]
    """Steps after which the package's environment truncates an episode."""
    command_steps: ClassVar[int | None] = None
    """Steps after which a new direction is drawn; None where the command lasts."""
    truncation_ends: ClassVar[bool] = False
    """Whether nothing is expected after a truncation, as the official training had it."""

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
        """Number of simulations."""
        return len(self.qpos)

    def reset(self, ids: Ids, qpos: Floats, qvel: Floats) -> None:
        """Put the simulations ``ids``, ascending, into states; nothing of before is left."""
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
        """Return the last step's way ``[size]`` along the directions that were commanded."""
        way: Floats = (self.moved * commands).sum(axis=1)
        return way

    def succeeded(self) -> NDArray[np.bool_]:
        """Tell whose goal is reached now, ``[size]``; False where there is none."""
        return np.zeros(self.size, bool)

    def make_model(self, mujoco: Any) -> Any:
        """Load the package's model."""
        return mujoco.MjModel.from_xml_path(str(asset(f"{self.name}.xml")))

    @abstractmethod
    def start(self, ids: Ids, rng: np.random.Generator) -> None:
        """Begin episodes of the simulations ``ids``, ascending, as the package does."""

    @abstractmethod
    def step(self, actions: NDArray[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        """Take one environment step; return features ``[size, 3]`` and who is ended ``[size]``."""

    @abstractmethod
    def observations(self) -> Floats:
        """Return what the package's environment shows, ``[size, observation]``."""

    @abstractmethod
    def standing(self) -> NDArray[np.bool_]:
        """Tell who is surely upright, ``[size]``."""

    @abstractmethod
    def fallen(self) -> NDArray[np.bool_]:
        """Tell who has surely fallen, ``[size]``; between the two a body is neither."""

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
        """Return what the networks see of observations ``[n, observation]``; NumPy or JAX.

        The world is turned about the vertical so that the command points along +x: physics does
        not know the difference, and there is less to learn.
        """


def turn(vectors: Any, commands: Any, xp: Any) -> Any:
    """Turn the first two of the columns ``[n, 2 or 3]`` so that commands point along +x."""
    length = xp.sqrt((commands**2).sum(axis=1) + 1e-12)
    cosine, sine = commands[:, 0] / length, commands[:, 1] / length
    x, y = vectors[:, 0], vectors[:, 1]
    turned = xp.stack([cosine * x + sine * y, cosine * y - sine * x], axis=1)
    return xp.concatenate([turned, vectors[:, 2:]], axis=1)


def axes(quaternions: Any, xp: Any) -> list[Any]:
    """Return the body's three axes in the world, each ``[n, 3]``; the length does not matter."""
    w, x, y, z = (quaternions / xp.sqrt((quaternions**2).sum(axis=1, keepdims=True))).T
    return [
        xp.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1),
        xp.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)], axis=1),
        xp.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1),
    ]
