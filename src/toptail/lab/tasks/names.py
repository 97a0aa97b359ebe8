"""The names of OGBench's data sets, and how OGBench collected each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from toptail.errors import InputError

Split = Literal["train", "val"]

SHORT_NAMES: dict[str, str] = {
    "PointMaze": "pointmaze-medium-navigate-v0",
    "AntMaze": "antmaze-medium-navigate-v0",
    "HumanoidMaze": "humanoidmaze-medium-navigate-v0",
    "AntSoccer": "antsoccer-arena-navigate-v0",
    "Cube-single": "cube-single-play-v0",
    "Cube-double": "cube-double-play-v0",
    "Scene": "scene-play-v0",
    "Puzzle": "puzzle-3x3-play-v0",
}
"""Short names that may be given in place of a data set's name, and that tables show."""

_VARIANTS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("pointmaze", ("medium", "large", "giant", "teleport"), ("navigate", "stitch")),
    ("antmaze", ("medium", "large", "giant", "teleport"), ("navigate", "stitch")),
    ("antmaze", ("medium", "large", "teleport"), ("explore",)),
    ("humanoidmaze", ("medium", "large", "giant"), ("navigate", "stitch")),
    ("antsoccer", ("arena", "medium"), ("navigate", "stitch")),
    ("visual-antmaze", ("medium", "large", "giant", "teleport"), ("navigate", "stitch")),
    ("visual-antmaze", ("medium", "large", "teleport"), ("explore",)),
    ("visual-humanoidmaze", ("medium", "large", "giant"), ("navigate", "stitch")),
    ("cube", ("single", "double", "triple", "quadruple"), ("play", "noisy")),
    ("scene", ("",), ("play", "noisy")),
    ("puzzle", ("3x3", "4x4", "4x5", "4x6"), ("play", "noisy")),
    ("visual-cube", ("single", "double", "triple", "quadruple"), ("play", "noisy")),
    ("visual-scene", ("",), ("play", "noisy")),
    ("visual-puzzle", ("3x3", "4x4", "4x5", "4x6"), ("play", "noisy")),
    ("powderworld", ("easy", "medium", "hard"), ("play",)),
)

OGBENCH_NAMES: tuple[str, ...] = tuple(
    "-".join(part for part in (family, variant, kind, "v0") if part)
    for family, variants, kinds in _VARIANTS
    for variant in variants
    for kind in kinds
)
"""Every data set of OGBench for offline goal-conditioned learning."""

# Columns of `observations` and `actions`; the environments without an entry are images or grids.
_DIMENSIONS: dict[str, tuple[int, int]] = {
    "pointmaze": (2, 2),
    "antmaze": (29, 8),
    "humanoidmaze": (69, 21),
    "antsoccer": (42, 8),
    "cube-single": (28, 5),
    "cube-double": (37, 5),
    "cube-triple": (46, 5),
    "cube-quadruple": (55, 5),
    "scene": (40, 5),
    "puzzle-3x3": (55, 5),
    "puzzle-4x4": (83, 5),
    "puzzle-4x5": (99, 5),
    "puzzle-4x6": (115, 5),
}

MAZES = ("pointmaze", "antmaze", "humanoidmaze", "antsoccer")
"""The families whose environment is a maze (the soccer arena is an empty one)."""


def seeker_at(family: str) -> slice:
    """Where an observation of a maze has what must reach the goal: in soccer the ball."""
    return slice(15, 17) if family == "antsoccer" else slice(0, 2)


@dataclass(frozen=True)
class TaskName:
    """The parts of a data set's name, such as ``pointmaze-medium-navigate-v0``."""

    name: str
    """The data set's name, without folder, split or file ending."""
    family: str
    """The first part: ``pointmaze``, ``cube``, …"""
    variant: str
    """The size or the number of objects: ``medium``, ``single``; empty for Scene."""
    kind: str
    """How the data was collected: ``navigate``, ``stitch``, ``explore``, ``play``, ``noisy``."""

    @property
    def environment(self) -> str:
        """The gymnasium id of the environment: the name without the kind of data."""
        return "-".join(part for part in (self.family, self.variant, "v0") if part)

    @property
    def is_maze(self) -> bool:
        """Whether the simulator is a maze or the soccer arena."""
        return self.family in MAZES

    @property
    def walks(self) -> bool:
        """Whether a trained walker moves the agent; then the data depends on the walker."""
        return self.is_maze and self.family != "pointmaze"

    @property
    def has_batches(self) -> bool:
        """Whether many simulations can be stepped together: mazes without teleports."""
        return self.is_maze and self.variant != "teleport"

    @property
    def has_buttons(self) -> bool:
        """Whether the simulator's state includes the buttons' states."""
        return self.family in ("scene", "puzzle")

    @property
    def dimensions(self) -> tuple[int, int] | None:
        """Columns of observations and actions, or None where observations are images."""
        return _DIMENSIONS.get(self.family, _DIMENSIONS.get(f"{self.family}-{self.variant}"))

    @property
    def title(self) -> str:
        """Name in tables: the short name if there is one."""
        return next((short for short, name in SHORT_NAMES.items() if name == self.name), self.name)


def is_ogbench(name: str) -> bool:
    """Whether a name, or a short name, is that of a data set of OGBench."""
    return SHORT_NAMES.get(name, name) in OGBENCH_NAMES


def parse_name(name: str) -> TaskName:
    """The parts of an OGBench name, or of the data set of a short name."""
    name = SHORT_NAMES.get(name, name)
    if name not in OGBENCH_NAMES:
        raise InputError(
            f"'{name}' is not the name of an OGBench data set: expected a name such as "
            "'pointmaze-medium-navigate-v0' or a path to an .npz file; "
            "`toptail data list` prints every name."
        )
    *front, kind, _version = name.split("-")
    visual = front[0] == "visual"
    family = "-".join(front[: 2 if visual else 1])
    variant = "-".join(front[2 if visual else 1 :])
    return TaskName(name=name, family=family, variant=variant, kind=kind)


@dataclass(frozen=True)
class Recipe:
    """How OGBench collects one data set."""

    episodes: int
    """Training episodes; the validation file has a tenth as many."""
    rows: int
    """Rows of each episode; the action of the last row is not followed by a row."""
    noise: float
    """Standard deviation of the noise on the expert's action (or on the oracle's plan)."""


# Episodes of the manipulation data sets that have more than a thousand.
_PLAYED = {"cube-triple": 3000, "cube-quadruple": 5000, "puzzle-4x5": 3000, "puzzle-4x6": 5000}
# Episodes and rows of the mazes' data sets, as OGBench's own commands have them.
_SIZES: dict[tuple[str, str], tuple[int, int]] = {
    ("maze", "navigate"): (1000, 1001),
    ("maze", "stitch"): (5000, 201),
    ("maze", "explore"): (10_000, 501),
    ("pointmaze-giant", "navigate"): (500, 2001),
    ("antmaze-giant", "navigate"): (500, 2001),
    ("humanoidmaze", "navigate"): (1000, 2001),
    ("humanoidmaze", "stitch"): (5000, 401),
    ("humanoidmaze-giant", "navigate"): (1000, 4001),
    ("humanoidmaze-giant", "stitch"): (10_000, 401),
    ("antsoccer-medium", "navigate"): (4000, 1001),
    ("antsoccer-medium", "stitch"): (8000, 501),
}


def published_recipe(task: TaskName) -> Recipe | None:
    """The size and noise of the published data set; None where they are not known here."""
    if task.kind == "play" and task.family in ("cube", "scene", "puzzle"):
        episodes = _PLAYED.get(f"{task.family}-{task.variant}", 1000)
        return Recipe(episodes, rows=1001, noise=0.1)
    if not task.is_maze:
        return None
    keys = (f"{task.family}-{task.variant}", task.family, "maze")
    episodes, rows = next(_SIZES[key, task.kind] for key in keys if (key, task.kind) in _SIZES)
    noise = 0.5 if task.family == "pointmaze" else 0.2
    return Recipe(episodes, rows, noise=1.0 if task.kind == "explore" else noise)
