"""Every critic: its name, its group, and which of its readouts are scorers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Group = Literal["main", "two_head", "control"]


@dataclass(frozen=True)
class Readout:
    """One scalar of a critic that can be a scorer of its own."""

    name: str
    """``score`` is the deployed one."""
    title: str
    """Name in tables."""
    trained_by: Literal["bellman", "contrastive", "both"]
    """Which loss trains it."""
    value: bool
    """Whether it is a value, so that steps have a reward in its scale."""


@dataclass(frozen=True)
class Entry:
    """One critic."""

    name: str
    """Name in files and flags."""
    title: str
    """Name in tables."""
    group: Group
    """What it is there for."""
    readouts: tuple[Readout, ...]
    """Its scalars."""


def _entry(
    name: str, title: str, group: Group, by: Literal["bellman", "contrastive"], *more: Readout
) -> Entry:
    return Entry(name, title, group, (Readout("score", title, by, by == "bellman"), *more))


def _cosine_head(title: str) -> Readout:
    return Readout("f_cos", f"{title}: f_cos", "contrastive", value=False)


CRITICS: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry("tdq", "TD-Q", "main", "bellman"),
        _entry("raw", "Raw bilinear", "main", "contrastive"),
        _entry("cosine", "Cosine", "main", "contrastive"),
        _entry("hybrid", "Hybrid", "main", "contrastive"),
        _entry(
            *("two_head_separate", "Two heads, separate", "two_head", "bellman"),
            _cosine_head("Two heads, separate"),
        ),
        _entry(
            *("two_head_joint", "Two heads, joint", "two_head", "bellman"),
            _cosine_head("Two heads, joint"),
        ),
        _entry("td_bilinear", "TD bilinear", "control", "bellman"),
        _entry("nce_mlp", "NCE MLP", "control", "contrastive"),
    )
}
"""Every critic by its name."""

MAIN: tuple[str, ...] = tuple(name for name, entry in CRITICS.items() if entry.group == "main")
"""The four deployed critics, in the order of tables."""


def names(group: Group | None = None) -> tuple[str, ...]:
    """The critics of a group, or all of them."""
    return tuple(name for name, entry in CRITICS.items() if group in (None, entry.group))


def critic_of(scorer: str) -> Entry | None:
    """The critic that a scorer is read from; None for a user's scorer."""
    return CRITICS.get(scorer.partition(".")[0])


def readout(scorer: str) -> Readout | None:
    """What a scorer reads, as in ``raw`` or ``two_head_joint.f_cos``; None for a user's."""
    entry, name = critic_of(scorer), scorer.partition(".")[2] or "score"
    return next((r for r in entry.readouts if r.name == name), None) if entry else None
