"""The ant that brings a ball to a goal: the package's online-antball-v0."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.experts.ant import Ant
from toptail.lab.experts.body import Floats, Ids, asset, axes, turn

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
        """Return the ways that are left after the ball moved."""
        return commands - features[:, 1:]

    @staticmethod
    def inputs(observations: Any, xp: Any = np) -> Any:
        """As the ant's, then the ball's height, velocity and spin, its place, the goal's distance.

        A ball looks the same from all sides: its orientation only serves to turn the spin into the
        world (42 numbers in all).
        """
        commands = observations[:, -2:]
        ant = xp.concatenate([observations[:, :13], observations[:, 18:32], commands], axis=1)
        spin = observations[:, 35:38]
        in_world = sum(
            axis * spin[:, i : i + 1] for i, axis in enumerate(axes(observations[:, 14:18], xp))
        )
        return xp.concatenate(
            [
                Ant.inputs(ant, xp),
                observations[:, 13:14],
                turn(observations[:, 32:35], commands, xp),
                turn(in_world, commands, xp),
                turn(observations[:, 38:40], commands, xp),
                xp.sqrt((commands**2).sum(axis=1, keepdims=True)),
            ],
            axis=1,
        )
