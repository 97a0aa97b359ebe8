"""Acceptance of a walker: the package's starts, mode + noise, whole episodes.

python -m toptail_paper.walkers.evaluate humanoid DIR --episodes 128
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.experts.actor import Walker
from toptail.lab.experts.bodies import NOISE, Body, body_named
from toptail.lab.tasks.simulator import available_cores
from toptail.progress import Tick, no_tick

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
    body = kind(len(actors) * episodes, threads or available_cores())
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
