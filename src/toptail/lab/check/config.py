"""Sizes of a check, and the reasons for the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toptail.errors import InputError, check_whole, option

NEAREST, UNIFORM, BEHAVIOUR, ASCENT = "nearest", "uniform", "behaviour", "ascent"
SOURCES: Final = (NEAREST, UNIFORM, BEHAVIOUR, ASCENT)
"""Sources of candidates, besides a file."""

EXACT, ROLLOUTS, REFERENCE, NO_JUDGE = "exact", "rollouts", "reference", "none"
JUDGES: Final = (EXACT, ROLLOUTS, REFERENCE, NO_JUDGE)
"""Judges, besides a file."""

MOST: Final = 10_000
"""Candidates of a query, at most."""
WHOLE: Final = 256
"""Candidates of a query that rollouts judge all; of more, they judge the picks alone."""


@dataclass(frozen=True)
class CheckConfig:
    """How much a check looks at.

    A judge by rollouts simulates every candidate to the horizon, so that it gets fewer queries and
    smaller pools by default.
    """

    per_group: int | None = None
    """Queries of each distance group; 200, or 60 if rollouts judge. Without goals there are no
    groups, and three times as many queries."""

    pool_size: int | None = None
    """Candidates of each query, up to 10,000; 64, or 16 if rollouts judge, which of more than 256
    judge the picks of best of K alone."""

    near: int = 200
    """Near states of the data whose actions are candidates."""

    starts: int = 80
    """Episodes of each distance group in which the critic is followed at every step; without goals
    three times as many."""

    follow_k: tuple[int, ...] = (1, 8, 64)
    """Candidates among which the critic chooses at every step; the others are compared with 1."""

    follow_ascent: bool = False
    """Follow the critic's maximizer at every step, too, for the candidates 'ascent': about 2,000
    scores a step."""

    horizon: int = 200
    """Steps of a rollout and of an episode."""

    gamma: float = 0.99
    """Discount of the judges."""

    repeats: int | None = None
    """Rollouts of each candidate, independent replicates of one noisy judge: 2 where a behaviour
    model continues, 1 where the continuation is deterministic."""

    resamples: int = 10_000
    """Bootstrap resamples of the audits."""

    seed: int = 0
    """Seed of queries, candidates and resamples."""

    def __post_init__(self) -> None:
        for name in ("near", "starts", "horizon"):
            check_whole(name, getattr(self, name), 1)
        check_whole("seed", self.seed, 0)
        check_whole("resamples", self.resamples, 100)
        for name, least in (("per_group", 1), ("pool_size", 2), ("repeats", 1)):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), least)
        if max(self.pool_size or 2, *self.follow_k) > MOST:
            raise InputError(
                f"{option('pool_size')} and {option('follow_k')} go up to {MOST:,} candidates."
            )
        ks = self.follow_k
        if len(ks) < 2 or ks[0] != 1 or list(ks) != sorted(set(ks)):
            raise InputError(f"The sizes K of the closed loop must rise from 1, not {ks}.")
        if not 0 < self.gamma <= 1:
            raise InputError(f"gamma is {self.gamma:g}: expected a number above 0, at most 1.")

    def picked_k(self, source: str, judge: str) -> tuple[int, ...]:
        """Sizes K whose picks alone are judged, from 1; empty where all candidates are judged."""
        size = self.size(judge)
        if source == ASCENT:
            return (1, size)
        if judge != ROLLOUTS or size <= WHOLE:
            return ()
        return (*(4**i for i in range(size.bit_length()) if 4**i < size), size)

    def queries(self, judge: str) -> int:
        """Queries of each group under a judge."""
        return self.per_group or (60 if judge == ROLLOUTS else 200)

    def size(self, judge: str) -> int:
        """Candidates of a query under a judge."""
        return self.pool_size or (16 if judge == ROLLOUTS else 64)
