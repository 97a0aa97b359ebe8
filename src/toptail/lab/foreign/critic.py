"""What a critic made elsewhere comes down to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from toptail.lab.foreign.networks import Rows

Score: TypeAlias = Callable[[Rows, Rows, Rows], Rows]
"""(states [n, s], actions [n, a], goals [n, g]) -> scores [n]; larger is better."""


@dataclass(frozen=True, eq=False)
class ForeignCritic:
    """A critic that another library trained."""

    score: Score
    """Its scores, one a row."""
    agent: str
    """What it calls itself: ``crl``, ``gciql``, ``cql``, ..."""
    seed: int | None = None
    """Its training seed, where the files say it."""
    step_reward: float = 0.0
    """Reward of a step that misses the goal, in the scale of the score."""
