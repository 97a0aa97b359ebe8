"""Walkers as experts of a maze: what leads a trained body to its goal while data is collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.experts.actor import Walker, shipped_path
from toptail.lab.experts.soccer import SoccerMind, dribbling_inputs, walking_inputs
from toptail.lab.tasks.expert import Expert, Situation
from toptail.lab.tasks.names import TaskName
from toptail.pools.files import sha256

_BODIES = {"antmaze": "ant", "humanoidmaze": "humanoid"}


def guide_of(task: TaskName, walkers: Path | None = None) -> Expert | None:
    """The expert that collects a task's data with trained walkers; None where none is needed.

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
    """A walker's body and the hash of its file."""
    return f"{_loaded(path).body} {sha256(path)[:16]}"


@dataclass(frozen=True)
class WalkingExpert:
    """A walker that is told the direction at every step."""

    path: Path
    """The stored walker; it is loaded on first use, in each process."""

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Do nothing: the direction is all there is."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        """Show the walker what it was trained on: its body without its place, and the direction."""
        body = situation.observations[:, 2:]
        return _loaded(self.path)(np.concatenate([body, situation.directions], axis=1))

    def describe(self) -> str:
        """Return the body and the hash of its file."""
        return _named(self.path)


@dataclass(frozen=True)
class SoccerExpert:
    """Walks to the ball, dribbles it to the goal, and walks elsewhere when it is stuck."""

    ant: Path
    """The stored walker that goes in a direction."""
    antball: Path
    """The stored walker that brings the ball somewhere."""
    arena: bool
    """Whether there are no walls to walk around."""
    stitch: bool
    """Whether an episode does one thing only: it walks, or it dribbles."""

    @cached_property
    def _mind(self) -> SoccerMind:
        return SoccerMind(self.arena, self.stitch)

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Forget the episodes before."""
        self._mind.start(rngs)

    def actions(self, situation: Situation) -> NDArray[Any]:
        """Let each episode's walker act."""
        meant = self._mind.intend(situation)
        walking = _loaded(self.ant)(walking_inputs(situation, meant.targets))
        dribbling = _loaded(self.antball)(dribbling_inputs(situation, meant.targets))
        return np.where(meant.dribbling[:, None], dribbling, walking)

    def describe(self) -> str:
        """Return both bodies and the hashes of their files."""
        return f"{_named(self.ant)}, {_named(self.antball)}"
