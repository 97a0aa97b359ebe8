"""Episodes of many simulations: commands that change, ends, new starts, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.lab.experts.bodies import Body, Ids


@dataclass
class Tally:
    """What happened in the simulations that are watched, since it was begun."""

    steps: int = 0
    """Environment steps."""
    distance: float = 0.0
    """Way along the commanded direction; for the ball, towards the goal."""
    falls: int = 0
    """How often a body that stood fell, or the package ended its episode."""
    returns: list[float] = field(default_factory=list)
    """Returns of the episodes that ended."""
    successes: list[bool] = field(default_factory=list)
    """Whether these episodes' goals were reached at any time."""

    def numbers(self, seconds: float) -> dict[str, float | None]:
        """Summarise; None where nothing was seen. ``seconds`` is a step's duration."""
        steps = max(self.steps, 1)
        return {
            "episodes": len(self.returns),
            "return": float(np.mean(self.returns)) if self.returns else None,
            "speed": self.distance / (steps * seconds),
            "falls": 1000.0 * self.falls / steps,
            "success": float(np.mean(self.successes)) if self.successes else None,
        }


class RunningEpisodes:
    """Run a body's simulations from episode to episode.

    The first ``watched`` simulations start as the package does and are never cut; they fill
    ``tally``. The others start as training does, and are cut when they lie fallen for long.

    Parameters
    ----------
    body
        The simulations.
    rng
        Where all starts and commands are drawn from.
    watched
        Number of simulations that are evaluated.
    stagger
        Whether the first episodes begin at a random time, so that they do not all end together;
        these are not tallied.
    env_steps
        Environment steps taken before, which training starts may depend on.
    """

    def __init__(
        self,
        body: Body,
        rng: np.random.Generator,
        watched: int,
        stagger: bool = True,
        env_steps: int = 0,
    ) -> None:
        self.body, self.rng, self.watched, self.env_steps = body, rng, watched, env_steps
        self.tally = Tally()
        size = body.size
        self.age: Ids = np.zeros(size, np.int64)
        """Steps of each running episode."""
        self._fallen_for: Ids = np.zeros(size, np.int64)
        self._patience: Ids = np.zeros(size, np.int64)
        self._stood = np.zeros(size, bool)
        self._return = np.zeros(size)
        self._succeeded = np.zeros(size, bool)
        self._begin(np.arange(size))
        if stagger:
            self.age = rng.integers(0, body.episode_steps, size)
        self._whole = self.age == 0
        self.observations = body.observations().astype(np.float32)
        """What every simulation shows now, ``[size, observation]``."""

    def step(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        """Take one step in every simulation, and start anew where an episode is over.

        Returns next observations (before a new start), features, ended and cut,
        ``[size, observation + 5]``.
        """
        body = self.body
        commands = body.commands.copy()
        features, ended = body.step(actions)
        self.age += 1
        self.env_steps += body.size
        self._watch(features, commands, ended)
        after = body.observations()
        due = self.age >= body.episode_steps
        lost = self._fallen_for > self._patience
        lost[: self.watched] = False
        over = ended | due | lost
        final = ended | due if body.truncation_ends else ended
        outcome = np.concatenate(
            [after, features, final[:, None], (over & ~final)[:, None]], axis=1
        ).astype(np.float32)
        self._change_commands(over)
        if over.any():
            self._finish(over)
            self._begin(np.flatnonzero(over))
        self.observations = body.observations().astype(np.float32)
        return outcome

    def _change_commands(self, over: NDArray[np.bool_]) -> None:
        every = self.body.command_steps
        if every is not None:
            changing = np.flatnonzero((self.age % every == 0) & ~over)
            self.body.new_commands(changing, self.rng)

    def _watch(
        self, features: NDArray[Any], commands: NDArray[Any], ended: NDArray[np.bool_]
    ) -> None:
        """Count what the step did."""
        body, n = self.body, self.watched
        standing, fallen = body.standing(), body.fallen()
        fell = self._stood & (fallen | ended)
        self._stood = (self._stood | standing) & ~fallen
        self._fallen_for = np.where(standing, 0, self._fallen_for + fallen)
        self._return += body.reward(features, commands)
        self._succeeded |= body.succeeded()
        self.tally.steps += n
        self.tally.falls += int(fell[:n].sum())
        self.tally.distance += float(body.progress(commands)[:n].sum())

    def _finish(self, over: NDArray[np.bool_]) -> None:
        """Note the watched episodes that are over, except those begun in the middle."""
        done = np.flatnonzero((over & self._whole)[: self.watched])
        self.tally.returns += self._return[done].tolist()
        self.tally.successes += self._succeeded[done].tolist()
        self._whole |= over

    def _begin(self, ids: Ids) -> None:
        """Start episodes of the simulations ``ids``."""
        watched, training = ids[ids < self.watched], ids[ids >= self.watched]
        if len(watched):
            self.body.start(watched, self.rng)
        if len(training):
            patience = self.body.training_start(training, self.rng, self.env_steps)
            self._patience[training] = patience
        self.age[ids] = self._fallen_for[ids] = 0
        self._return[ids] = 0.0
        self._stood[ids] = self._succeeded[ids] = False
