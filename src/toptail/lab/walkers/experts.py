"""Experts that collect data with trained walkers: walking through mazes, and soccer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import sha256
from toptail.lab.tasks.episodes import Expert, Situation
from toptail.lab.tasks.maze import Positions
from toptail.lab.tasks.names import TaskName
from toptail.lab.walkers.walker import Walker, shipped_path

CLOSE = 2.0
"""Nearer than this to the ball, the player dribbles."""
FAR = 10.0
"""In the arena a goal farther from the ball than this is replaced by a nearer one."""
STUCK_STEPS, STUCK_RADIUS = 150, 2.0
"""A player that stayed within the radius for so many steps is stuck; it walks to a random cell."""
FREED = 0.5
"""Distance to that cell at which the player is free again."""

_BODY = slice(2, 15)
_BALL = slice(15, 17)
_BALL_POSE = slice(17, 22)
_BODY_SPEED = slice(22, 36)
_SPEEDS = slice(22, 42)


@dataclass(frozen=True, eq=False)
class Decision:
    """What each player does next."""

    dribbling: NDArray[np.bool_]
    """Whether the ball is to be moved, ``[episodes]``; else the player walks."""
    targets: Positions
    """Where the ball, or the player, is to go next, ``[episodes, 2]``."""


class SoccerStrategy:
    """Decides for each player whether to walk or to dribble, and where to."""

    def __init__(self, arena: bool, stitch: bool) -> None:
        self._arena, self._stitch = arena, stitch
        self._rngs: Sequence[np.random.Generator] = ()
        self._visited: list[Positions] = []
        self._dribblers: NDArray[np.bool_] = np.zeros(0, bool)
        self._detours: Positions = np.zeros((0, 2))

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        self._rngs, self._visited = rngs, []
        self._detours = np.full((len(rngs), 2), np.nan)  # no detour

    def decide(self, situation: Situation) -> Decision:
        """Decide for every episode; called once a step."""
        if self._stitch:
            return self._decide_for_stitch(situation, situation.observations[:, _BALL])
        self._update_detours(situation)
        return self.decide_with(situation, self._detours)

    def decide_with(self, situation: Situation, detours: Positions) -> Decision:
        """Decide without a memory of the episode: on a detour, to the ball, or with it."""
        balls = situation.observations[:, _BALL]
        busy = ~np.isnan(detours[:, 0])
        near = np.linalg.norm(situation.positions - balls, axis=1) <= CLOSE
        aims = np.where(busy[:, None], detours, balls)
        walk = self._next_target(situation, situation.positions, aims)
        dribble = self._next_target(situation, balls, situation.goals, FAR)
        dribbling = near & ~busy
        return Decision(dribbling, np.where(dribbling[:, None], dribble, walk))

    def _decide_for_stitch(self, situation: Situation, balls: Positions) -> Decision:
        """Dribble if the ball was in the player's cell at first, else walk to the goal."""
        if not self._visited:
            cells = (situation.maze.cell(places) for places in (situation.positions, balls))
            self._dribblers = np.equal(*cells)
            self._visited.append(situation.positions)
        walk = self._next_target(situation, situation.positions, situation.goals)
        dribble = self._next_target(situation, balls, situation.goals, FAR)
        return Decision(self._dribblers, np.where(self._dribblers[:, None], dribble, walk))

    def _update_detours(self, situation: Situation) -> None:
        """End finished detours, and send players that are stuck on one.

        As in the package, earlier positions are compared with this one from the 152nd step on.
        """
        here, detours = situation.positions, self._detours
        detours[np.linalg.norm(detours - here, axis=1) <= FREED] = np.nan
        if len(self._visited) > STUCK_STEPS + 1:
            before = np.stack(self._visited[-STUCK_STEPS - 1 : -1])
            stayed = np.linalg.norm(before - here, axis=2).max(axis=0) <= STUCK_RADIUS
            maze = situation.maze
            for i in np.flatnonzero(stayed & np.isnan(detours[:, 0])).tolist():
                detours[i] = maze.centre(self._rngs[i].choice(maze.free))
        self._visited.append(here)

    def _next_target(
        self, situation: Situation, places: Positions, aims: Positions, most: float = np.inf
    ) -> Positions:
        """The next point of the path: in the arena at most ``most`` away, else the next cell."""
        if not self._arena:
            return situation.maze.subgoal(places, aims)
        offset = aims - places
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        shorter = np.minimum(1.0, most / np.maximum(length, 1e-12))
        return np.where(length > most, places + shorter * offset, aims)


def walking_inputs(situation: Situation, targets: Positions) -> NDArray[Any]:
    """Inputs of the ant that walks: its body, its speeds, the direction."""
    offset = targets - situation.positions
    direction = offset / (np.linalg.norm(offset, axis=1, keepdims=True) + 1e-6)
    rows = situation.observations
    return np.concatenate([rows[:, _BODY], rows[:, _BODY_SPEED], direction], axis=1)


def dribbling_inputs(situation: Situation, targets: Positions) -> NDArray[Any]:
    """Inputs of the ant that dribbles; the targets are the ball's."""
    rows = situation.observations
    balls = rows[:, _BALL]
    return np.concatenate(
        [
            rows[:, _BODY],
            rows[:, _BALL_POSE],
            rows[:, _SPEEDS],
            balls - situation.positions,
            targets - balls,
        ],
        axis=1,
    )


_BODIES = {"antmaze": "ant", "humanoidmaze": "humanoid"}


def expert_for(task: TaskName, walkers: Path | None = None) -> Expert | None:
    """The expert that collects a task's data with trained walkers; None for other tasks.

    The walkers are the package's own, or ``walkers/BODY/actor.safetensors``.
    """
    if task.family in _BODIES:
        return WalkingExpert(_walker_file(_BODIES[task.family], walkers))
    if task.family == "antsoccer":
        ant, antball = (_walker_file(body, walkers) for body in ("ant", "antball"))
        return SoccerExpert(
            ant, antball, arena=task.variant == "arena", stitch=task.kind == "stitch"
        )
    return None


def _walker_file(body: str, walkers: Path | None) -> Path:
    path = shipped_path(body) if walkers is None else walkers / body / "actor.safetensors"
    if not path.is_file():
        raise InputError(
            f"{path} does not exist: train the walker with `toptail-paper train-walker {body} "
            f"--out {path.parent}`, or leave it out to use the package's own."
        )
    return path


@cache
def _loaded(path: Path) -> Walker:
    return Walker.load(path)


def _named(path: Path) -> str:
    return f"{_loaded(path).body} {sha256(path)[:16]}"


@dataclass(frozen=True)
class WalkingExpert:
    """A walker that gets a direction at every step."""

    path: Path
    """The stored walker; it is loaded on first use, in each process."""

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Do nothing: this expert has no state."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        """The walker's actions for its body without its position, and the direction."""
        body = situation.observations[:, 2:]
        return _loaded(self.path)(np.concatenate([body, situation.directions], axis=1))

    def describe(self) -> str:
        """The body and the hash of its file."""
        return _named(self.path)


@dataclass(frozen=True)
class SoccerExpert:
    """Walks to the ball, dribbles it to the goal, and walks elsewhere when it is stuck."""

    ant: Path
    """The stored walker that goes in a direction."""
    antball: Path
    """The stored walker that brings the ball somewhere."""
    arena: bool
    """Whether the maze is the arena, without walls."""
    stitch: bool
    """Whether an episode only walks or only dribbles."""
    memory: bool = True
    """Whether it knows the episode: without, it plays on from any state, never goes elsewhere when
    it is stuck, and both walks and dribbles."""

    @cached_property
    def _strategy(self) -> SoccerStrategy:
        return SoccerStrategy(self.arena, self.stitch)

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        self._strategy.start(rngs)

    def actions(self, situation: Situation) -> NDArray[Any]:
        if self.memory:
            decision = self._strategy.decide(situation)
        else:
            no_detours = np.full_like(situation.positions, np.nan)
            decision = self._strategy.decide_with(situation, no_detours)
        walking = _loaded(self.ant)(walking_inputs(situation, decision.targets))
        dribbling = _loaded(self.antball)(dribbling_inputs(situation, decision.targets))
        return np.where(decision.dribbling[:, None], dribbling, walking)

    def describe(self) -> str:
        """Both bodies and the hashes of their files."""
        return f"{_named(self.ant)}, {_named(self.antball)}"
