"""Every critic: what it is called, what it is trained by, and what can be read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal, TypeAlias

from toptail.errors import InputError

Group: TypeAlias = Literal["main", "two_head", "control"]
"""The paper's four critics; two heads in one checkpoint; objective and network exchanged."""

Objective: TypeAlias = Literal["bellman", "contrastive", "both"]
"""Whose gradient reaches the parameters that a readout is read from."""

Network: TypeAlias = Literal["mlp", "bilinear", "cosine", "head"]
"""What computes the deployed scalar: an MLP of (s, a, g), phi . psi, the cosine of the two, or a
network of both embeddings."""


@dataclass(frozen=True)
class Readout:
    """One scalar of a critic."""

    name: str
    """What the critic calls it."""

    trained_by: Objective
    """What it is trained by."""

    value: bool = False
    """Whether it is fitted to Bellman targets, so that r + gamma next means something. A judge
    that was trained on such targets judges it partly by itself."""

    title: str = ""
    """How a reader sees it; unless given, the critic's title, and its name if not deployed."""

    scorer: bool = False
    """Whether it is a scorer of its own, ``CRITIC.NAME``; the deployed one always is one."""

    beside: str = ""
    """Under which name the studies store it beside the deployed one; empty if they do not. For
    the deployed one, what a table of readouts calls it."""

    def step_reward(self, reward: str) -> float:
        """Reward of a step that misses the goal, in the scale of this scalar."""
        return -1.0 if self.value and reward == "-1/0" else 0.0


@dataclass(frozen=True)
class Entry:
    """One critic."""

    name: str
    """Its name in files, columns and flags."""

    title: str
    """How a reader sees it."""

    place: int
    """Where it stands in a list of critics."""

    group: Group
    """Why it is there."""

    network: Network
    """What computes the deployed scalar."""

    deployed: str
    """Name of the readout that selection maximizes."""

    readouts: tuple[Readout, ...]
    """Everything that can be read from its parameters."""

    one_step: str | None = None
    """What it is called in the controlled world, whose episodes have one step; None if it is not
    there."""

    def __post_init__(self) -> None:
        def titled(each: Readout) -> Readout:
            own = self.title if each.name == self.deployed else f"{self.title}: {each.name}"
            return replace(each, title=each.title or own)

        object.__setattr__(self, "readouts", tuple(titled(each) for each in self.readouts))

    @property
    def scorers(self) -> dict[str, Readout]:
        """Its scorers by name, as columns have them: the deployed readout first."""
        own = sorted(self.readouts, key=lambda each: each.name != self.deployed)
        return {
            self.name if each.name == self.deployed else f"{self.name}.{each.name}": each
            for each in own
            if each.scorer or each.name == self.deployed
        }

    @property
    def beside(self) -> dict[str, str]:
        """What is stored beside the deployed readout: the studies' name to the critic's."""
        others = [each for each in self.readouts if each.name != self.deployed]
        return {each.beside: each.name for each in others if each.beside}

    @property
    def trained_by(self) -> Objective:
        """What the deployed readout is trained by."""
        return self.scorers[self.name].trained_by


_ENTRIES = (
    Entry(
        name="tdq",
        title="TD-Q",
        place=1,
        group="main",
        network="mlp",
        deployed="q",
        readouts=(
            Readout("q", "bellman", value=True),
            Readout("q_min", "bellman", value=True),
            Readout("q_lcb", "bellman", value=True),
            Readout("feature_norm", "bellman"),
        ),
        one_step="tdq",
    ),
    Entry(
        name="raw",
        title="Raw bilinear",
        place=2,
        group="main",
        network="bilinear",
        deployed="f_raw",
        readouts=(
            Readout("f_raw", "contrastive", beside="raw"),
            Readout("f_cos", "contrastive", beside="cosine"),
            Readout("phi_norm", "contrastive", beside="norm"),
        ),
        one_step="raw",
    ),
    Entry(
        name="cosine",
        title="Cosine",
        place=3,
        group="main",
        network="cosine",
        deployed="f_cos",
        readouts=(
            Readout("f_raw", "contrastive", beside="raw"),
            Readout("f_cos", "contrastive", beside="cosine"),
            Readout("phi_norm", "contrastive", beside="norm"),
        ),
        one_step="cosine",
    ),
    Entry(
        name="hybrid",
        title="Hybrid",
        place=4,
        group="main",
        network="cosine",
        deployed="f_cos",
        readouts=(
            Readout("f_raw", "both"),
            Readout("f_cos", "both", beside="cosine"),
            Readout("phi_norm", "both"),
            Readout("q_td", "both", beside="q_td"),
            Readout("q_hybrid", "both", value=True, beside="q_hybrid"),
        ),
        one_step="hybrid",
    ),
    Entry(
        name="two_head_separate",
        title="Two heads, separate",
        place=5,
        group="two_head",
        network="mlp",
        deployed="q_td",
        readouts=(
            Readout("f_raw", "contrastive"),
            Readout("f_cos", "contrastive", scorer=True),
            Readout("phi_norm", "contrastive"),
            Readout("q_td", "bellman", value=True, title="Two heads, separate: q_td"),
            Readout("q_td_min", "bellman", value=True),
            Readout("q_td_lcb", "bellman", value=True),
        ),
    ),
    Entry(
        name="two_head_joint",
        title="Two heads, joint",
        place=6,
        group="two_head",
        network="head",
        deployed="q_td",
        readouts=(
            Readout("f_raw", "both"),
            Readout("f_cos", "both", scorer=True),
            Readout("phi_norm", "both"),
            Readout("q_td", "both", value=True, title="Two heads, joint: q_td"),
            Readout("q_hybrid", "both"),
        ),
        one_step="two_head",
    ),
    Entry(
        name="td_bilinear",
        title="TD, bilinear network",
        place=7,
        group="control",
        network="bilinear",
        deployed="q",
        readouts=(
            Readout("f_raw", "bellman"),
            Readout("f_cos", "bellman"),
            Readout("phi_norm", "bellman"),
            Readout("q", "bellman", value=True),
            Readout("q_min", "bellman", value=True),
            Readout("q_lcb", "bellman", value=True),
        ),
    ),
    Entry(
        name="nce_mlp",
        title="Contrastive, MLP network",
        place=8,
        group="control",
        network="mlp",
        deployed="logit",
        readouts=(
            Readout("logit", "contrastive"),
            Readout("logit_min", "contrastive"),
            Readout("logit_lcb", "contrastive"),
        ),
    ),
)

CRITICS: Final[Mapping[str, Entry]] = {each.name: each for each in _ENTRIES}
"""Every critic, by its place."""


def names(group: Group | None = None) -> tuple[str, ...]:
    """Names of all critics, or of a group's."""
    return tuple(e.name for e in CRITICS.values() if group is None or e.group == group)


MAIN: Final = names("main")
"""The paper's four critics, in its order."""


@cache
def _by_scorer() -> dict[str, tuple[Entry, Readout]]:
    return {scorer: (e, read) for e in CRITICS.values() for scorer, read in e.scorers.items()}


def readout(scorer: str) -> Readout | None:
    """What a scorer reads, by its name in columns (``raw``); None for a user's scorer."""
    found = _by_scorer().get(scorer)
    return None if found is None else found[1]


def critic_of(scorer: str) -> Entry | None:
    """The critic that a scorer is read from; None for a user's scorer."""
    found = _by_scorer().get(scorer)
    return None if found is None else found[0]


def entry(name: str) -> Entry:
    """The critic of that name."""
    if name not in CRITICS:
        raise InputError(f"There is no critic '{name}'; the critics are {', '.join(CRITICS)}.")
    return CRITICS[name]
