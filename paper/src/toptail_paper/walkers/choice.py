"""Which walker is kept: a rule that is written down, and the few candidates it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from toptail.lab.experts.actor import Walker
from toptail_paper.walkers.evaluate import Numbers

_KEPT = 3
_ENOUGH = 0.8


@dataclass(frozen=True, eq=False)
class Candidate:
    """A walker and what was seen of it during training."""

    numbers: Numbers
    """A point of the learning curve."""
    actor: Walker
    """The walker at its end."""


def ranking(entries: Sequence[Numbers], by_success: bool) -> list[int]:
    """Order walkers, best first.

    Falls before return: the fewest falls among those whose return is at least 80 % of the best,
    the higher return where falls are equal, then the others by return. With goals: by success,
    then by return.
    """

    def place(i: int) -> tuple[float, ...]:
        entry = entries[i]
        if by_success:
            return (-entry["success"], -entry["return"])
        enough = entry["return"] >= best - (1 - _ENOUGH) * abs(best)
        return (0, entry["falls"], -entry["return"]) if enough else (1, -entry["return"])

    best = max(entry["return"] for entry in entries)
    return sorted(range(len(entries)), key=place)


@dataclass
class Candidates:
    """The few walkers that training keeps for the final evaluation."""

    by_success: bool
    """Whether reaching goals decides."""
    kept: list[Candidate] = field(default_factory=list)
    """The best by the rule, and the one with the best return, which the rule measures by."""

    @property
    def rule(self) -> str:
        """The rule in words, for the record."""
        if self.by_success:
            return "success, then return"
        return "fewest falls, then return, among those with at least 80 % of the best return"

    def add(self, candidate: Candidate) -> None:
        """Take one more, and let go of what the rule no longer asks for."""
        everyone = [*self.kept, candidate]
        order = ranking([c.numbers for c in everyone], self.by_success)
        highest = max(range(len(everyone)), key=lambda i: everyone[i].numbers["return"])
        chosen = dict.fromkeys([*order[:_KEPT], highest])
        self.kept = [everyone[i] for i in chosen]
