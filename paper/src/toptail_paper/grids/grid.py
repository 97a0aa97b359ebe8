"""What a grid declares: the question, what is trained, what is read, what would be an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, check_whole, refusing
from toptail.io.json_files import read_object
from toptail.lab.critics.registry import label_of, split_label
from toptail.lab.tasks.triples import GAMMA, MAX_OFFSET
from toptail.lab.training.config import SETTINGS, typed_settings
from toptail_paper.grids.rules import RULES, Answer
from toptail_paper.study.behaviour import SPACING


@dataclass(frozen=True)
class Sizes:
    """How much is drawn and resampled; a grid's ``sizes`` are fields of this."""

    triples: int = 3_000
    """Triples (s, a, g) per data set."""
    negatives: int = 49
    """Goals of other trajectories that each true goal is ranked among."""
    max_offset: int = MAX_OFFSET
    """Longest distance of a triple's goal, in steps."""
    gamma: float = GAMMA
    """Discount of the return-to-go gamma^d, and of exact values."""
    k: int = 64
    """Candidates that are searched, and the triples of a pooled pool."""
    queries: int = 300
    """Decision queries (s, g)."""
    resamples: int = 200
    """Bootstrap resamples of trajectories, or of queries."""
    draw_seed: int = 1
    """Seed of everything drawn; the studies' own draws have seed 0."""
    spacing: float = SPACING
    """Spacing of the grid that ideal critics are solved on."""
    box: int = 201
    """Points per axis of the whole action box."""
    widest: int = 100_000
    """Candidates of the widest search."""
    ascent: int = 200
    """Steps of gradient ascent on the score, from each of 16 starts."""
    alphas: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    """Weights of behaviour cloning of the actors that follow a critic."""
    actor_steps: int = 100_000
    """Optimizer steps of each actor."""
    actor_hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer of the actors."""
    actor_batch: int = 1024
    """Rows per step of the actors."""
    behaviour: str = ""
    """Folder of a behaviour model's run, whose samples are searched at every step, if given."""
    episodes: int = 20
    """Episodes of each evaluation goal."""
    limit: int | None = None
    """Steps after which an episode has failed; the environment's own unless given."""

    def __post_init__(self) -> None:
        counts = ("triples", "negatives", "max_offset", "k", "queries", "resamples", "box")
        for name in (*counts, "widest", "ascent", "actor_steps", "actor_batch", "episodes"):
            check_whole(name, getattr(self, name), 1)


REPORTED: Final = (42, 43, 44)
"""Seeds whose numbers stand in the main tables: nothing is chosen by them."""

CONTROLLED: Final = "controlled"
"""The name of the 2-D world, which has no recorded data."""

MOST: Final = 10_000
"""Trainings of a grid, at most."""

READS: Final = ("triples", "queries", "seen", "ideal", "search", "actors", "decomposition")
"""What can be read from a trained critic."""

_AGAIN: Final = "see docs/settle.md for what a grid declares"


@dataclass(frozen=True)
class GridCell:
    """One critic with settings on one data set, read after so many steps."""

    data: str
    label: str
    """The critic with its settings, without its steps."""
    steps: int

    @property
    def name(self) -> str:
        """The critic with its settings and its steps, as tables have it."""
        critic, settings = split_label(self.label)
        return label_of(critic, {**settings, "steps": self.steps})

    @property
    def settings(self) -> dict[str, str]:
        """Everything that tells this cell from others, as it is written in a grid."""
        critic, settings = split_label(self.label)
        data, more = split_label(self.data)
        return {**settings, **more, "steps": str(self.steps), "critic": critic, "data": data}


@dataclass(frozen=True)
class DeclaredGrid:
    """One question, declared before anything is trained for it."""

    question: str
    """What is to be settled, in a sentence."""
    data: tuple[str, ...]
    """Data sets by name or path; ``NAME[coordinates=8]`` has so many constant random coordinates
    per trajectory added to its observations, and ``controlled[box=1.6]`` is the 2-D world."""
    critics: tuple[str, ...]
    """Critics, which may have settings of their own."""
    seeds: tuple[int, ...]
    """Training seeds: never those of the main tables."""
    steps: tuple[int, ...]
    """Training lengths that are read, ascending, all of one run."""
    reads: tuple[str, ...]
    """What is read: see `READS`."""
    answer: Answer
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Setting -> values that are crossed with each other, for every critic."""
    shared: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, Any] = field(default_factory=dict)
    """How much is read: queries, triples, candidates; see `toptail_paper.grids.grid`."""
    lanes: int = 32
    """Trainings that share one program, at most."""
    small: Mapping[str, Any] = field(default_factory=dict)
    """What is smaller in the trial that ``--small`` runs; it answers nothing."""

    def __post_init__(self) -> None:
        both = sorted(set(self.seeds) & set(REPORTED))
        if both:
            raise InputError(
                f"Seed {both[0]} is reported in the main tables, and nothing may be chosen by it: "
                "give the grid other seeds."
            )
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise InputError(f"seeds must be different whole numbers from 0, not {self.seeds}.")
        if not self.steps or list(self.steps) != sorted(set(self.steps)) or self.steps[0] < 1:
            raise InputError(f"steps must ascend from at least 1, not {list(self.steps)}.")
        for name in self.reads:
            if name not in READS:
                raise InputError(f"'{name}' cannot be read; what can is {', '.join(READS)}.")
        worlds = {split_label(name)[0] == CONTROLLED for name in self.data}
        if len(worlds) != 1 or worlds != {"decomposition" in self.reads}:
            raise InputError(
                "The 2-D world is read by 'decomposition', and recorded data by the others: give "
                "a grid data of one kind, and reads that fit it."
            )
        if self.price > MOST:
            raise InputError(
                f"The grid has {self.price:,} trainings: at most {MOST:,} are asked for."
            )
        for length in (*self.steps, self.lanes):
            check_whole("steps and lanes", length, 1)
        for name in self.shared:
            if name not in (*SETTINGS, "data_size"):
                raise InputError(f"'{name}' is no setting; the settings are {', '.join(SETTINGS)}.")
        _ = self.amounts, self.labels()  # refuse unknown sizes and settings

    @property
    def amounts(self) -> Sizes:
        known = {each.name for each in fields(Sizes)}
        for name in self.sizes:
            if name not in known:
                raise InputError(f"'{name}' is no size; the sizes are {', '.join(sorted(known))}.")
        listed: dict[str, Any] = {
            name: tuple(x) if isinstance(x, list) else x for name, x in self.sizes.items()
        }
        return Sizes(**listed)

    def labels(self) -> list[str]:
        """Every critic with every combination of settings, in order."""
        found = []
        for label, values in product(self.critics, product(*self.grid.values())):
            critic, own = split_label(label)
            settings = {**typed_settings(label, own), **dict(zip(self.grid, values, strict=True))}
            full = label_of(critic, settings)
            typed_settings(full, split_label(full)[1])
            found.append(full)
        return list(dict.fromkeys(found))

    def cells(self) -> Iterator[GridCell]:
        for data, label, steps in product(self.data, self.labels(), self.steps):
            yield GridCell(data, label, steps)

    @property
    def price(self) -> int:
        """Trainings that it takes; one serves all boxes of the 2-D world."""
        sets = 1 if "decomposition" in self.reads else len(self.data)
        return sets * len(self.critics) * prod(map(len, self.grid.values())) * len(self.seeds)


def read_grid(path: str | Path, *, small: bool = False) -> DeclaredGrid:
    """Read a grid; ``small`` reads the small trial that the file also declares."""
    content = read_object(Path(path), _AGAIN)
    with refusing(path, "does not declare a grid", _AGAIN):
        known = {each.name for each in fields(DeclaredGrid)}
        unknown = sorted(content.keys() - known)
        if unknown:
            raise InputError(f"{path}: a grid has no '{unknown[0]}'; it has {', '.join(known)}.")
        whole = {**content, **(content.get("small", {}) if small else {})}
        answer = dict(whole.pop("answer"))
        if answer.get("rule") not in RULES:
            raise InputError(
                f"{path}: there is no rule '{answer.get('rule')}'; the rules are "
                f"{', '.join(RULES)}."
            )
        listed: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in whole.items()
        }
        listed["grid"] = {name: tuple(v) for name, v in whole.get("grid", {}).items()}
        return DeclaredGrid(**listed, answer=Answer(**answer))
