"""Low-level experts: what turns "go there" into an action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toptail.lab.tasks.maze import Maze, Positions


@dataclass(frozen=True, eq=False)
class Situation:
    """Where the agents of a group of episodes are and where they should go."""

    observations: NDArray[np.float64]
    """``[episodes, observation]``."""
    positions: Positions
    """The agents, ``[episodes, 2]``."""
    goals: Positions
    """The episodes' goals, ``[episodes, 2]``."""
    directions: Positions
    """Unit vectors from the agents towards the next cell on the way, ``[episodes, 2]``."""
    maze: Maze
    """The maze they are in."""


class Expert(Protocol):
    """A low-level controller, one for a whole group of episodes.

    An expert is sent to the worker processes, so it must be picklable; a network is best loaded
    from its file on first use. It may remember what happened in an episode (``start`` tells it
    to forget), and draws only from the generators it is given.
    """

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin a new group of episodes, each with a generator of its own."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        """Return the mode of the action for each episode, ``[episodes, action]``, without noise."""

    def describe(self) -> str:
        """Return one line for the data set's record, such as a file name and its hash."""


@dataclass(frozen=True)
class DirectionExpert:
    """PointMaze's controller: the action is the direction itself."""

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Do nothing: the direction is all there is."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        """Return the directions."""
        return situation.directions

    def describe(self) -> str:
        """Return the expert's name."""
        return "the direction itself"
