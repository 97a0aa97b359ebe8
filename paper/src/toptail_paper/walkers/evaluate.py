"""Acceptance of a walker: the package's starts, mode + noise, whole episodes.

python -m toptail_paper.walkers.evaluate humanoid DIR --episodes 128
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.walkers.walker import Walker
from toptail.progress import Tick, no_tick
from toptail.stats.resample import available_threads
from toptail_paper.walkers.bodies import NOISE, Body, Ids, body_named


@dataclass
class Tally:
    """What happened in the simulations that are watched, since it was begun."""

    steps: int = 0
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
        watched, training = ids[ids < self.watched], ids[ids >= self.watched]
        if len(watched):
            self.body.start(watched, self.rng)
        if len(training):
            patience = self.body.training_start(training, self.rng, self.env_steps)
            self._patience[training] = patience
        self.age[ids] = self._fallen_for[ids] = 0
        self._return[ids] = 0.0
        self._stood[ids] = self._succeeded[ids] = False


Numbers = dict[str, Any]
"""What was counted, by name."""
_EARLY = 200
"""Step by which a body should stand."""


def evaluate(
    actors: Sequence[Walker],
    episodes: int = 128,
    seed: int = 0,
    threads: int = 0,
    steps: int | None = None,
    tick: Tick = no_tick,
) -> list[Numbers]:
    """Run every actor for one episode each in ``episodes`` simulations, all side by side.

    All actors meet the same starts, commands and noise. An episode that the package ends is not
    followed further.

    Parameters
    ----------
    actors
        Walkers of one body.
    episodes
        Episodes per walker.
    seed
        Seed of starts, commands and noise.
    threads
        Threads that simulate; 0 takes every core.
    steps
        Steps per episode, the package's own number unless given.
    tick
        Told how far it is.

    Returns
    -------
    One entry per actor: return, speed along the direction (of the ball towards its goal), falls per
    1,000 steps, share of episodes without a fall, share that stands at step 200, success.
    """
    kind = body_named(actors[0].body)
    body = kind(len(actors) * episodes, threads or available_threads())
    for i in range(len(actors)):
        # A generator each, so that actor i meets the starts that it would meet alone.
        body.start(np.arange(i * episodes, (i + 1) * episodes), np.random.default_rng(seed))
    counts = _Counts(body, steps or kind.episode_steps)
    noise = np.random.default_rng([seed, 1])
    for t in range(counts.steps):
        seen = body.observations().reshape(len(actors), episodes, -1)
        modes = np.stack([actor(part) for actor, part in zip(actors, seen, strict=True)])
        modes += NOISE * noise.standard_normal(modes.shape[1:])
        counts.step(np.clip(modes, -1, 1).reshape(body.size, -1), t)
        if kind.command_steps is not None and (t + 1) % kind.command_steps == 0:
            for i in range(len(actors)):
                ids = np.arange(i * episodes, (i + 1) * episodes)
                body.new_commands(ids, np.random.default_rng([seed, 2, t]))
        tick("evaluating", (t + 1) / counts.steps)
    return [counts.numbers(slice(i * episodes, (i + 1) * episodes)) for i in range(len(actors))]


class _Counts:
    """What is counted on the way, ``[size]`` each."""

    def __init__(self, body: Body, steps: int) -> None:
        self.body, self.steps = body, steps
        self.alive = np.ones(body.size, bool)
        self.lived = np.zeros(body.size)
        self.distance = np.zeros(body.size)
        self.total = np.zeros(body.size)
        self.falls = np.zeros(body.size)
        self.stood = np.zeros(body.size, bool)
        self.early = np.zeros(body.size, bool)
        self.success = np.zeros(body.size, bool)

    def step(self, actions: NDArray[Any], t: int) -> None:
        body = self.body
        commands = body.commands.copy()
        features, ended = body.step(actions)
        standing, fallen = body.standing(), body.fallen()
        self.lived += self.alive
        self.distance += self.alive * body.progress(commands)
        self.total += self.alive * body.reward(features, commands)
        self.success |= self.alive & body.succeeded()
        self.falls += self.alive & self.stood & (fallen | ended)
        self.stood = (self.stood | standing) & ~fallen
        if t + 1 == min(_EARLY, self.steps):
            self.early = self.alive & standing
        self.alive &= ~ended

    def numbers(self, part: slice) -> Numbers:
        lived = self.lived[part].sum()
        return {
            "episodes": part.stop - part.start,
            "steps": self.steps,
            "return": float(self.total[part].mean()),
            "speed": float(self.distance[part].sum() / (lived * self.body.seconds)),
            "falls": float(1000 * self.falls[part].sum() / lived),
            "without_fall": float((self.falls[part] == 0).mean()),
            "ended_early": float((~self.alive[part]).mean()),
            "standing_at_200": float(self.early[part].mean()),
            "success": float(self.success[part].mean()),
        }


def main(arguments: Sequence[str]) -> None:
    """Evaluate the walker in a folder, and print the numbers as JSON."""
    usage = "usage: python -m toptail_paper.walkers.evaluate BODY DIR [--episodes N] [--seed S]"
    if len(arguments) < 2 or len(arguments) % 2:
        raise InputError(usage)
    options = dict(zip(arguments[2::2], arguments[3::2], strict=True))
    if not options.keys() <= {"--episodes", "--seed"}:
        raise InputError(usage)
    actor = Walker.load(Path(arguments[1]) / "actor.safetensors")
    if actor.body != arguments[0]:
        raise InputError(f"{arguments[1]} holds a walker of {actor.body}, not of {arguments[0]}.")
    episodes, seed = int(options.get("--episodes", 128)), int(options.get("--seed", 0))
    sys.stdout.write(json.dumps(evaluate([actor], episodes, seed)[0], indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
