"""Scorers, the columns of a score table: calls that score many rows, and ascent on a score.

This module needs NumPy alone: trained runs are in `toptail.lab.scorers.runs`, functions and
checkpoints of users in `toptail.lab.scorers.user`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.lab.proposals.untrained import generators
from toptail.lab.tasks.trajectories import IntArray

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic

Rows: TypeAlias = NDArray[np.float32]

Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better.

A score may have two further methods, which are found by their names. ``towards(goals)`` embeds
goals once and returns a function that scores pairs towards them, or None (see `RunScore.towards`).
``ascend(states, actions, goals, steps, rate)`` climbs the score by its gradient (see `Ascent`).
"""

Towards: TypeAlias = Callable[[Rows, Rows, IntArray], Rows]
"""(states [n, s], actions [n, a], numbers of goals [n]) -> scores [n]."""

MOST_ROWS = 65_536
"""Rows of one call of a critic where there are many candidates."""
SOME_ROWS = 2_048
"""Rows of one call of a trained run that embeds goals once: few sizes are compiled."""


@dataclass(frozen=True, eq=False)
class Scorer:
    """One column of scores: its function, and where that comes from."""

    column: str
    """``NAME@SEED``, or ``NAME`` where there is no training seed."""

    score: Score
    """The score that is maximized in use."""

    origin: Mapping[str, Any]
    """Where it comes from, ready for JSON; equal origins give equal scores, unless `opaque`."""

    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""

    readouts: Mapping[str, Score] = field(default_factory=dict)
    """Further scores of the same network."""

    opaque: bool = False
    """Whether the origin does not decide the scores, as a user's function may read other files."""


def score_shared(
    score: Score, states: Rows, actions: Rows, goals: Rows, asked: IntArray, block: int
) -> Iterator[tuple[slice, Rows]]:
    """Score pairs (s, a) towards goals, many of which share a pair or a goal.

    A score with ``towards`` embeds each goal once and each pair once per block; any other one gets
    every row. ``asked`` [n, 2] has the number of a pair and that of a goal. Yields which of the n
    rows, at most ``block`` of them, and their scores.
    """
    towards = _embedded(score, goals)
    for start in range(0, len(asked), block):
        at = slice(start, min(start + block, len(asked)))
        pair, goal = asked[at].T
        if towards is None:
            yield at, score(states[pair], actions[pair], goals[goal])
        else:
            own, place = np.unique(pair, return_inverse=True)
            yield at, towards(states[own], actions[own], np.stack([place, goal], axis=1))


def _embedded(score: Score, goals: Rows) -> Towards | None:
    embed = getattr(score, "towards", None)
    return None if embed is None else embed(goals)


def score_each(towards: Towards, states: Rows, candidates: Rows, goal: IntArray) -> Rows:
    """Scores ``[n, k]`` of k candidates ``[n, k, a]`` for each state and number of a goal.

    One call has at most `MOST_ROWS` rows, so that memory does not grow with the pools.
    """
    (count, k, width), scores = candidates.shape, []
    block = max(1, MOST_ROWS // k)
    for at in (slice(first, first + block) for first in range(0, count, block)):
        rows, number = np.repeat(states[at], k, axis=0), np.repeat(goal[at], k)
        scores.append(towards(rows, candidates[at].reshape(-1, width), number).reshape(-1, k))
    return np.concatenate(scores)


def score_towards(score: Score, goals: Rows) -> Towards:
    """A function that scores rows towards these goals, for many calls.

    A score with ``towards`` embeds each goal once for all calls, and gets at most `SOME_ROWS` rows
    at a time.

    Returns
    -------
    (states [n, s], actions [n, a], numbers of goals [n]) -> scores [n].
    """
    if not hasattr(score, "towards"):
        return lambda states, actions, goal: score(states, actions, goals[goal])
    towards = _embedded(score, goals)

    def some(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        if towards is None:
            return score(states, actions, goals[goal])
        return towards(states, actions, np.stack([np.arange(len(goal)), goal], axis=1))

    def scores(states: Rows, actions: Rows, goal: IntArray) -> Rows:
        parts = [slice(i, i + SOME_ROWS) for i in range(0, len(goal), SOME_ROWS)]
        return np.concatenate([some(states[at], actions[at], goal[at]) for at in parts])

    return scores


FIRST: Final = 1_024
ROUNDS: Final = 4
ROUND: Final = 256
ELITES: Final = 64
SPREAD: Final = 0.01
"""Standard deviation of the drawn actions, at least."""
STARTS: Final = 16
STEPS: Final = 50
RATE: Final = 0.05
"""Length of a step of gradient ascent, whatever the length of the gradient."""
_BLOCK: Final = 128
"""Rows that are searched together."""


class Ascent:
    """Maximizes a score over the action box [-1, 1]^a: a stronger search than best of K.

    The search begins with the candidates of best of K, so that it finds no lower score, and `FIRST`
    more actions, half of them uniform in the box and half on its faces and corners. A score that
    can be climbed (a method ``ascend``, which trained runs have) is then climbed by projected
    gradient ascent from the `STARTS` best of them; any other one is searched by the cross-entropy
    method: `ROUNDS` times, `ROUND` actions are drawn from a Gaussian that is fitted to the best
    `ELITES` actions so far, and clipped to the box. The best action of all is taken.

    The random numbers of a row depend on the seed and on its own key alone, so that a pick does not
    depend on the rows that are searched beside it.
    """

    def __init__(self, score: Score, goals: Rows, width: int, seed: int) -> None:
        self._score, self._goals, self._width, self._seed = score, goals, width, seed
        self._towards = score_towards(score, goals)

    def best(self, keys: IntArray, states: Rows, goal: IntArray, candidates: Rows) -> Rows:
        """One action ``[n, a]`` for each state ``[n, s]`` and number of a goal ``[n]``.

        ``keys [n, ...]`` are whole numbers; equal keys see the same random numbers. The first of
        the ``candidates [n, k, a]`` is taken where no action has a higher score.
        """
        parts = (slice(i, i + _BLOCK) for i in range(0, len(states), _BLOCK))
        found = [self._best(keys[at], states[at], goal[at], candidates[at]) for at in parts]
        return np.concatenate(found)

    def _best(self, keys: IntArray, states: Rows, goal: IntArray, candidates: Rows) -> Rows:
        first, noise = self._drawn(keys)
        actions = np.concatenate([candidates, first], axis=1)
        scores = score_each(self._towards, states, actions, goal)
        ascend = getattr(self._score, "ascend", None)
        if ascend is not None:
            starts, at_starts = _highest(actions, scores, STARTS)
            ends, at_ends = ascend(states, starts, self._goals[goal], STEPS, RATE)
            actions = np.concatenate([starts, ends], axis=1)
            scores = np.concatenate([at_starts, at_ends], axis=1)
            return _highest(actions, scores, 1)[0][:, 0]
        for i in range(ROUNDS):
            elites, at_elites = _highest(actions, scores, ELITES)
            spread = np.maximum(elites.std(axis=1, keepdims=True), np.float32(SPREAD))
            drawn = elites.mean(axis=1, keepdims=True) + spread * noise[:, i]
            drawn = np.clip(drawn, -1.0, 1.0).astype(np.float32)
            actions = np.concatenate([elites, drawn], axis=1)
            at_drawn = score_each(self._towards, states, drawn, goal)
            scores = np.concatenate([at_elites, at_drawn], axis=1)
        return _highest(actions, scores, 1)[0][:, 0]

    def _drawn(self, keys: IntArray) -> tuple[Rows, Rows]:
        """The first actions ``[n, FIRST, a]``, and the noise of all rounds."""
        first, noise = [], []
        for rng in generators(self._seed, keys):
            wide = rng.uniform(-1.0, 1.0, (FIRST, self._width))
            wide[1::2] *= 2  # clipped: each coordinate is at an end with probability 1/2
            first.append(np.clip(wide, -1.0, 1.0))
            noise.append(rng.normal(size=(ROUNDS, ROUND, self._width)))
        return np.stack(first).astype(np.float32), np.stack(noise).astype(np.float32)


def _highest(actions: Rows, scores: Rows, count: int) -> tuple[Rows, Rows]:
    """The ``count`` actions of each row with the highest scores, best first; of ties the first."""
    at = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    best = np.take_along_axis(actions, at[..., None], axis=1)
    return best, np.take_along_axis(scores, at, axis=1)


def climb(
    score: Score, gradient: Score, states: Rows, actions: Rows, goals: Rows, steps: int, rate: float
) -> tuple[Rows, Rows]:
    """Projected gradient ascent with NumPy, from actions ``[n, starts, a]``.

    ``gradient`` maps rows of states, actions and goals to d score / d action ``[rows, a]``. Returns
    where the ascent ends, ``[n, starts, a]``, and the scores there, ``[n, starts]``.
    """
    n, starts, width = actions.shape
    states, goals = (np.repeat(rows, starts, axis=0) for rows in (states, goals))
    at = actions.reshape(-1, width)
    for _ in range(steps):
        up = gradient(states, at, goals)
        length = np.linalg.norm(up, axis=-1, keepdims=True) + np.float32(1e-12)
        at = np.clip(at + np.float32(rate) * up / length, -1.0, 1.0)
    return at.reshape(actions.shape), score(states, at, goals).reshape(n, starts)


@lru_cache(maxsize=8)
def climber(critic: Critic, readout: str, steps: int, rate: float) -> Any:
    """`climb` of a readout as one compiled program of JAX.

    Returns
    -------
    (params, states, actions, goals) -> (ends, scores); leading axes broadcast.
    """
    import jax
    import jax.numpy as jnp

    read = critic.readouts()[readout]

    def climbed(params: Any, states: Any, actions: Any, goals: Any) -> tuple[Any, Any]:
        slope = jax.grad(lambda a: jnp.sum(read(params, states, a, goals)))

        def step(_: int, a: jax.Array) -> jax.Array:
            up = slope(a)
            length = jnp.linalg.norm(up, axis=-1, keepdims=True) + 1e-12
            return jnp.clip(a + rate * up / length, -1.0, 1.0)

        ends = jax.lax.fori_loop(0, steps, step, jnp.asarray(actions))
        return ends, read(params, states, ends, goals)

    return jax.jit(climbed)
