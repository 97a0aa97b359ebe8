"""What the semantics study left in its folder, as its figures and tables want to see it.

Reads ``config.json``, ``record.json``, ``tables/*.json``, ``curves.json`` and ``claims.json``, and
nothing else: no scores, no networks. A part that a run did not make is empty, and what would be
drawn from it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.studies.controlled.results import MAIN
from toptail.lab.studies.folder import read_stored
from toptail.lab.studies.strokes import look
from toptail.report.palette import LIGHT, NEUTRAL

Floats = NDArray[np.float64]

NAMES: Final[Mapping[str, str]] = {
    "tdq": "TD-Q",
    "raw": "Raw bilinear",
    "cosine": "Cosine",
    "hybrid": "Hybrid",
    "two_head_separate": "Two heads, separate: q_td",
    "two_head_joint": "Two heads, joint: q_td",
    "two_head_separate.f_cos": "Two heads, separate: f_cos",
    "two_head_joint.f_cos": "Two heads, joint: f_cos",
    "td_bilinear": "TD, bilinear network",
    "nce_mlp": "Contrastive, MLP network",
    "tdq_ref": "TD-Q, for reference",
    "cosine_ref": "Cosine, for reference",
    "separate": "Two heads, separate networks",
    "joint": "Two heads, one network",
    "oracle": "Independent value",
    "geodesic": "Shortest way through the maze",
}
"""How scorers and readouts are called in figures and tables; a user's keeps its own name."""

CONTROLS: Final = ("td_bilinear", "nce_mlp")
"""Trainings and networks exchanged: TD in the contrastive network, and the reverse."""

_OTHERS: Final = tuple(LIGHT[hue] for hue in (2, 5, 4, 1))
_MARKERS: Final = ("P", "X", "v", "p", "*", "h", "<", ">")
"""Colours and markers of scorers beyond the paper's four; the pairs repeat after eight."""


def scorer_name(scorer: str) -> str:
    """Name of a scorer, or of a ``TRAINING_trained/READOUT``, as a reader sees it."""
    training, is_readout, readout = scorer.partition("_trained/")
    if is_readout:
        words = "‖φ‖ alone" if readout == "phi_norm" else f"{readout} readout"
        return f"{training.capitalize()}-trained, {words}"
    return NAMES.get(scorer, scorer)


def in_order(scorers: Iterable[str]) -> list[str]:
    """The paper's four critics first, the others in their order.

    Readouts stand in the order of their trainings, ‖φ‖ alone as each training's last.
    """

    def place(scorer: str) -> tuple[int, bool]:
        training, _, readout = scorer.partition("_trained/")
        return (MAIN.index(training) if training in MAIN else len(MAIN)), readout == "phi_norm"

    return sorted(dict.fromkeys(scorers), key=place)


def is_control(scorer: str) -> bool:
    """Whether a scorer is this project's own control, not one of the paper's four or a user's."""
    return scorer in CONTROLS or scorer.startswith("two_head")


def drawn(scorers: Iterable[str]) -> list[str]:
    """Which scorers a figure shows: all but the two-head variants, which have their own table."""
    found = in_order(scorers)
    return [s for s in found if not s.startswith("two_head")] or found


def looks(scorers: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every scorer; the paper's critics look the same in every figure."""
    own = [s for s in scorers if look(s)[0] == NEUTRAL]
    return {s: look(s) for s in scorers} | {
        s: (_OTHERS[i % len(_OTHERS)], _MARKERS[i % len(_MARKERS)]) for i, s in enumerate(own)
    }


@dataclass(frozen=True)
class Band:
    """A curve over seeds."""

    mean: Floats
    """[n] mean over seeds; NaN where it is not computable."""
    std: Floats
    """[n] standard deviation over seeds; 0 for one seed."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Band:
        """From ``{"mean": [...], "std": [...] or null, ...}``."""
        mean = np.array(stored["mean"], dtype=float)
        std = stored.get("std")
        spread = np.zeros_like(mean) if std is None else np.array(std, dtype=float)
        return cls(mean, np.nan_to_num(spread))


@dataclass(frozen=True)
class Semantics:
    """Everything a run folder holds for a reader."""

    folder: Path
    """Where it was read from."""
    config: Mapping[str, Any]
    """The study's configuration."""
    record: Mapping[str, Any]
    """Command, versions, commit, seconds."""
    tables: Mapping[str, Mapping[str, Any]]
    """``tables/*.json`` by name."""
    curves: Mapping[str, Any]
    """``curves.json``; empty where there is none."""
    claims: Sequence[Mapping[str, Any]]
    """``claims.json``."""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Rows of a table: task → scorer → metric → cell; empty where there is no such table."""
        rows: Mapping[str, Any] = self.tables.get(table, {}).get("rows", {})
        return rows

    @property
    def k(self) -> tuple[int, ...]:
        """Candidate counts of the best-of-K curves."""
        return tuple(self.curves.get("k", ()))

    def curve(self, name: str) -> dict[str, dict[str, Any]]:
        """One kind of curve: task → scorer → what is stored, where there is anything."""
        found: dict[str, dict[str, Any]] = {}
        for task, scorers in self.curves.get("tasks", {}).items():
            kept = {s: parts[name] for s, parts in scorers.items() if parts.get(name) is not None}
            if kept:
                found[task] = kept
        return found


def read_semantics(folder: str | Path) -> Semantics:
    """Read a run folder of the semantics study.

    Raises
    ------
    InputError
        If the folder holds no run, or a file in it cannot be read.
    """
    path = Path(folder)
    config = read_stored(path / "config.json")
    if config is None:
        raise InputError(
            f"{path} holds no study (config.json is missing); run 'toptail study semantics "
            f"--out {path}' first."
        )
    return Semantics(
        folder=path,
        config=config["config"],
        record=read_stored(path / "record.json") or {},
        tables={p.stem: read_stored(p) for p in sorted((path / "tables").glob("*.json"))},
        curves=read_stored(path / "curves.json") or {},
        claims=read_stored(path / "claims.json") or [],
    )
