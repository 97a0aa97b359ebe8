"""What the controlled study left in its folder, as its figures and pages want to see it.

Reads stored files only; see `toptail_paper.controlled` for what they hold. A part that a run
did not make is None or empty, and what would be drawn from it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toptail.io.arrays import read_arrays
from toptail.io.json_files import read_json_if_exists
from toptail.lab.critics.registry import MAIN
from toptail.stats.best_of_k import Floats
from toptail_paper.controlled.config import WITHIN
from toptail_paper.study.compare import reported
from toptail_paper.study.naming import setting_in, title
from toptail_paper.study.results import StudyResults, common_parts

NAMES: Final[Mapping[str, str]] = {
    "f_cos": "Two heads: f_cos",
    "q_td": "Two heads: q_td",
    "q_hybrid": "Two heads: q_td + α f_cos",
    "oracle": "Oracle",
    "tdq_noisy_reward": "TD-Q trained on noisy rewards",
}
"""How rows are called that are readouts of one network, or no critic of the registry."""


def critic_name(critic: str) -> str:
    return NAMES.get(critic) or title(critic)


@dataclass(frozen=True)
class SearchCurves:
    """Best-of-K curves of several critics, over seeds."""

    k: tuple[int, ...]
    oracle: Floats
    """[K] value of the best of K candidates."""
    random: float
    content: Mapping[str, Any]
    """critic → metric → {"seeds": {seed: [K]}}."""
    in_support: Mapping[str, Mapping[str, float]]
    """critic → {"mean", "p99"}: embedding norms of the pools' in-support candidates."""
    critics: tuple[str, ...] = MAIN
    """Which critics are drawn, in this order."""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> SearchCurves:
        oracle, norms = np.array(content["oracle"], dtype=float), content["phi_norm_in_support"]
        return cls(tuple(content["k"]), oracle, content["random"], content["critics"], norms)

    def of(self, critic: str, metric: str) -> Floats:
        """Curves [seeds, K] of one metric."""
        return np.array(list(self.content[critic][metric]["seeds"].values()), dtype=float)


@dataclass(frozen=True)
class Landscape:
    """Score surfaces of one seed, and one pool."""

    arrays: Mapping[str, NDArray[np.generic]]

    def array(self, name: str) -> Floats:
        return np.asarray(self.arrays[name], dtype=float)

    @property
    def critics(self) -> tuple[str, ...]:
        """Critics that have a surface."""
        return tuple(name for name in MAIN if f"score_{name}" in self.arrays)

    @property
    def radius(self) -> float:
        return float(self.array("radius").item())

    @property
    def seed(self) -> int:
        """The seed whose critics were drawn."""
        return int(self.array("seed").item())

    @property
    def off_support(self) -> NDArray[np.bool_]:
        return np.asarray(np.linalg.norm(self.array("candidates"), axis=-1) > self.radius)

    def pick(self, critic: str) -> int:
        return int(self.array(f"pick_{critic}").item())

    def regret(self, critic: str) -> float:
        """Value of the best candidate minus that of the selected one."""
        value = self.array("candidate_value")
        return float(value.max() - value[self.pick(critic)])


class Point(NamedTuple):
    """One setting of a sweep and one metric of one critic there."""

    x: float | str
    """The setting: a number, or a word such as "learned"."""
    seeds: tuple[float, ...]
    paper: float | None
    """What the paper reports, if anything."""


@dataclass(frozen=True)
class SweptTable:
    """One setting changed at a time."""

    name: str
    """Identifier, the name of the figure's file."""
    title: str
    """What is swept, the label of the axis."""
    tasks: Mapping[float | str, str]
    """Setting → task in the table, in order."""
    table: Mapping[str, Any]

    @property
    def critics(self) -> tuple[str, ...]:
        rows = self.table["rows"]
        return tuple(c for c in (*MAIN, *WITHIN) if any(c in rows[t] for t in self.tasks.values()))

    @property
    def default(self) -> float | str | None:
        """The setting that is the study's default."""
        tasks = self.table.get("default", ())
        return next((x for x, task in self.tasks.items() if task in tasks), None)

    def points(self, critic: str, metric: str) -> list[Point]:
        """What one critic's line is drawn through."""
        result = []
        for x, task in self.tasks.items():
            cell = self.table["rows"][task].get(critic, {}).get(metric, {})
            seeds = tuple(v for v in cell.get("seeds", {}).values() if v is not None)
            if seeds:
                result.append(Point(x, seeds, reported(self.table, task, critic, metric)))
        return result


SWEPT: Final = (
    ("r-sweep", "radius", "support radius R"),
    ("sweep-steps", "steps", "training steps"),
    ("sweep-temperature", "temperature", "temperature of the cosine logits"),
    ("sweep-loss", "loss", "contrastive loss"),
    ("sweep-bias", "aligned_share", "share of goal-aligned actions"),
    ("sweep-bias", "aligned_noise", "noise of goal-aligned actions, in units of R"),
    ("sweep-layer_norm", "layer_norm", "LayerNorm and training steps"),
)
"""Table, the figure's name and (but for R) the setting's in the tasks, the label of its axis."""


@dataclass(frozen=True)
class ControlledResults(StudyResults):
    """Everything a run folder holds for a reader."""

    curves: SearchCurves | None
    landscape: Landscape | None
    theory: Mapping[str, Any] | None
    """``theory.json``: {"checks": [...], ...}."""
    audit: Mapping[str, Any] | None
    """``audit/audit.json``."""

    def sweeps(self) -> list[SweptTable]:
        """Every sweep this run made, one per figure."""
        found = []
        for table, name, axis in SWEPT:
            start = f"controlled@{'R' if name == 'radius' else name}="
            tasks: dict[float | str, str] = {
                setting_in(task.removeprefix(start)): task
                for task in self.rows(table)
                if task.startswith(start)
            }
            if len(tasks) > 1:
                found.append(SweptTable(f"sweep_{name}", axis, tasks, self.tables[table]))
        return found


def read_controlled(folder: str | Path) -> ControlledResults:
    """Read a run folder; one that holds no run, or a file that cannot be read, is refused."""
    path = Path(folder)
    parts, curves = common_parts(path, "controlled"), read_json_if_exists(path / "curves.json")
    surfaces = path / "landscape.npz"
    return ControlledResults(
        **parts,
        curves=None if curves is None else SearchCurves.read(curves),
        landscape=Landscape(read_arrays(surfaces)) if surfaces.is_file() else None,
        theory=read_json_if_exists(path / "theory.json"),
        audit=read_json_if_exists(path / "audit" / "audit.json"),
    )
