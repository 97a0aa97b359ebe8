"""Every critic by name: its title, its readouts, and what each of them is trained by.

Importable without JAX: pages are redrawn from stored files where critics cannot be trained.
"""

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
    """How figures and tables call it."""
    trained_by: Literal["bellman", "contrastive", "both"]
    """The loss behind it."""
    value: bool
    """Whether it is a value, so that r + γ·next means something."""


@dataclass(frozen=True)
class Entry:
    """One critic."""

    name: str
    """Its name in commands, columns and folders."""
    title: str
    """How figures and tables call it."""
    place: int
    """Where it stands among the others."""
    group: Group
    """The paper's four, two heads on one network, or a control of this project."""
    network: Literal["mlp", "bilinear"]
    """What the score is a function of."""
    readouts: tuple[Readout, ...]
    """The deployed score first."""


def _entry(
    place: int,
    name: str,
    title: str,
    group: Group,
    network: Literal["mlp", "bilinear"],
    trained_by: Literal["bellman", "contrastive", "both"],
    *more: Readout,
) -> Entry:
    deployed = Readout("score", title, trained_by, trained_by == "bellman")
    return Entry(name, title, place, group, network, (deployed, *more))


def _cosine_head(kind: str) -> Readout:
    return Readout("f_cos", f"Two heads, {kind}: f_cos", "contrastive", value=False)


_TWO = "Two heads, separate: q_td", "Two heads, joint: q_td"
CRITICS: Mapping[str, Entry] = {
    entry.name: entry
    for entry in (
        _entry(0, "tdq", "TD-Q", "main", "mlp", "bellman"),
        _entry(1, "raw", "Raw bilinear", "main", "bilinear", "contrastive"),
        _entry(2, "cosine", "Cosine", "main", "bilinear", "contrastive"),
        _entry(3, "hybrid", "Hybrid", "main", "bilinear", "contrastive"),
        _entry(
            4, "two_head_separate", _TWO[0], "two_head", "mlp", "bellman", _cosine_head("separate")
        ),
        _entry(
            5, "two_head_joint", _TWO[1], "two_head", "bilinear", "bellman", _cosine_head("joint")
        ),
        _entry(6, "td_bilinear", "TD, bilinear network", "control", "bilinear", "bellman"),
        _entry(7, "nce_mlp", "Contrastive, MLP network", "control", "mlp", "contrastive"),
    )
}
"""Every critic, by place."""


def names(group: str | None = None) -> tuple[str, ...]:
    """The critics of a group, or all, in their order."""
    return tuple(name for name, entry in CRITICS.items() if group in (None, entry.group))


MAIN: tuple[str, ...] = names("main")
"""The paper's four critics, in its order."""


def critic_of(scorer: str) -> Entry | None:
    """The critic that a scorer reads; None for a user's."""
    return CRITICS.get(scorer.partition(".")[0])


def readout(scorer: str) -> Readout | None:
    """The readout behind a scorer as it stands in columns; None for a user's."""
    name, _, scalar = scorer.partition(".")
    entry = CRITICS.get(name)
    readouts = () if entry is None else entry.readouts
    return next((each for each in readouts if each.name == (scalar or "score")), None)


def title(scorer: str) -> str:
    """How a reader sees a scorer; a user's keeps its own name."""
    found = readout(scorer)
    return scorer if found is None else found.title
