"""Every critic: its name, what it is trained by, its readouts, and how it is built.

A critic is one file of this folder, ``NAME.py``, with its class and a constant ``ENTRY``. Entries
are read from the source, not imported, so that pages can name critics without JAX.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from toptail.errors import InputError
from toptail.io.files import entries

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic
    from toptail.lab.critics.bellman import Reward

LABEL: Final = re.compile(
    r"(?P<critic>[^\[\]\s]+)\[(?P<settings>[^\[\]=]+=[^\[\]]+)\](?P<readout>\.\w+)?"
)
"""A critic with settings, and perhaps a readout: ``raw[hidden=64].f_cos``."""
_SETTING: Final = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^=]*[^=\s])\s*")


def split_label(label: str) -> tuple[str, dict[str, str]]:
    """The critic of a label such as ``raw[hidden=64]``, and its settings as they are written."""
    if "[" not in label and "]" not in label:
        return label, {}
    form = LABEL.fullmatch(label)
    parts = [] if form is None else [_SETTING.fullmatch(x) for x in form["settings"].split(",")]
    settings = {part["name"]: part["value"] for part in parts if part is not None}
    if form is None or form["readout"] or len(settings) < len(parts):
        raise InputError(
            f"'{label}' is not the name of a critic: expected CRITIC[SETTING=VALUE,...] with each "
            "setting once, as in cosine[temperature=0.1]."
        )
    return form["critic"], settings


def label_of(critic: str, settings: Mapping[str, Any]) -> str:
    """The label of a critic with settings, sorted by name; the critic's name without settings."""
    listed = ",".join(f"{name}={value_text(settings[name])}" for name in sorted(settings))
    return f"{critic}[{listed}]" if listed else critic


def value_text(value: Any) -> str:
    """A setting's value as a label has it. Labels are names of folders, so that / becomes _."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value).replace("/", "_")


def without_settings(scorer: str) -> str:
    """A scorer's name without settings: ``raw.f_cos`` of ``raw[hidden=64].f_cos``."""
    form = LABEL.fullmatch(scorer)
    return scorer if form is None else form["critic"] + (form["readout"] or "")


Group: TypeAlias = Literal["main", "two_head", "control", "factor", "other"]
"""Why a critic is in the registry: the four main critics; two heads in one checkpoint; objective
and network exchanged; one factor of the objective changed; any other critic."""

Objective: TypeAlias = Literal["bellman", "contrastive", "both", "returns"]
"""Which losses train the parameters of a readout: Bellman targets, contrast of own goals with
others, both of these, or regression to what followed in the data."""

Cell: TypeAlias = tuple[
    Literal["monte_carlo", "bootstrapped"],
    Literal["classification", "regression"],
    Literal["behaviour", "optimal"],
]
"""An objective by its factors: how a target is made, how it is fitted, and whose future it is."""

Ideal: TypeAlias = Literal["q_star", "q_behaviour", "log_ratio", "gamma_d"]
"""What a perfectly learned critic would score, or what orders actions as it would: the optimal
value, the value of the behaviour that collected the data, log p(g | s, a) - log p(g) of its
discounted future states, or the mean gamma^d of goals that follow."""


@dataclass(frozen=True)
class Readout:
    """One scalar of a critic."""

    name: str
    """Its name among the critic's readouts."""
    trained_by: Objective
    value: bool = False
    """Whether it is fitted to Bellman targets, in the units of a return. A judge that is trained
    on the same targets is not independent of it."""
    title: str = ""
    """Name in tables; by default the critic's title, with the readout's name if not deployed."""
    scorer: bool = False
    """Whether it is a scorer, ``CRITIC.NAME``; the deployed readout always is one."""
    beside: str = ""
    """Name under which its scores are stored with those of the deployed readout; empty if they are
    not. For the deployed readout, its name in a table of readouts."""

    @classmethod
    def ensemble(
        cls,
        name: str,
        trained_by: Objective,
        value: bool = False,
        title: str = "",
        beside: str = "",
    ) -> tuple[Readout, ...]:
        """The readouts of an ensemble: mean ``NAME``, minimum ``NAME_min``, bound ``NAME_lcb``.

        ``title`` and ``beside`` are those of the mean.
        """
        lower = (cls(f"{name}_{end}", trained_by, value) for end in ("min", "lcb"))
        return cls(name, trained_by, value, title, beside=beside), *lower

    def step_reward(self, reward: str) -> float:
        """Reward of a step that misses the goal, in the units of this readout."""
        return -1.0 if self.value and reward == "-1/0" else 0.0


@dataclass(frozen=True)
class Entry:
    """One critic."""

    name: str
    """Its name in files, columns and flags."""
    title: str
    """Name in tables."""
    place: int
    """Where it stands in lists of critics, from 1; critics with equal places are sorted by name."""
    group: Group
    """Why it is in the registry; a new critic is ``other``."""
    network: str
    """What computes the deployed readout, in a word: ``mlp`` of (s, a, g), ``bilinear`` phi . psi,
    ``cosine`` of the two, ``head`` on both embeddings, or any other, such as ``quasimetric``."""
    deployed: str
    """Name of the readout that selection maximizes."""
    readouts: tuple[Readout, ...]
    """Every readout of the class, classified."""
    ideal: Ideal | None = None
    """What its deployed readout would score if it were learned perfectly; None if not known."""
    cell: Cell | None = None
    """The factors of its objective; None where the deployed readout has several objectives."""

    def __post_init__(self) -> None:
        def titled(each: Readout) -> Readout:
            own = self.title if each.name == self.deployed else f"{self.title}: {each.name}"
            return replace(each, title=each.title or own)

        object.__setattr__(self, "readouts", tuple(titled(each) for each in self.readouts))

    @property
    def scorers(self) -> dict[str, Readout]:
        """Its scorers by their column names, the deployed readout first."""
        own = sorted(self.readouts, key=lambda each: each.name != self.deployed)
        return {
            self.name if each.name == self.deployed else f"{self.name}.{each.name}": each
            for each in own
            if each.scorer or each.name == self.deployed
        }

    @property
    def beside(self) -> dict[str, str]:
        """Readouts stored with the deployed one: stored name to readout's name."""
        others = [each for each in self.readouts if each.name != self.deployed]
        return {each.beside: each.name for each in others if each.beside}

    @property
    def trained_by(self) -> Objective:
        """What the deployed readout is trained by."""
        return self.scorers[self.name].trained_by


def read_entry(path: Path) -> Entry | None:
    """The ``ENTRY`` in a critic's source, read without importing the file; None without one."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ENTRY":
            where, names = f"{path}, line {node.lineno}", {"Entry": Entry, "Readout": Readout}
            try:
                source = compile(ast.Expression(node.value), str(path), "eval")
                entry = eval(source, {"__builtins__": {}, **names})
            except Exception as error:
                raise InputError(
                    f"{where}: ENTRY cannot be read ({error}). It is read without running the "
                    "file: write it with literals, Entry(...) and Readout(...) alone."
                ) from None
            if not isinstance(entry, Entry) or entry.name != path.stem:
                raise InputError(
                    f"{where}: ENTRY must be an Entry with the name of the file, '{path.stem}'."
                )
            return entry
    return None


def _entries() -> dict[str, Entry]:
    read = (read_entry(path) for path in entries(Path(__file__).parent, "*.py"))
    ordered = sorted(
        (entry for entry in read if entry), key=lambda entry: (entry.place, entry.name)
    )
    return {entry.name: entry for entry in ordered}


CRITICS: Final[Mapping[str, Entry]] = _entries()
"""Every critic, by its place."""


def names(*groups: Group) -> tuple[str, ...]:
    return tuple(e.name for e in CRITICS.values() if not groups or e.group in groups)


MAIN: Final = names("main")


def entry(name: str) -> Entry:
    """The entry of a critic, given by its name or a label."""
    critic, _ = split_label(name)
    if critic not in CRITICS:
        raise InputError(f"There is no critic '{critic}'; the critics are {', '.join(CRITICS)}.")
    return CRITICS[critic]


def load(name: str) -> type[Critic]:
    """The class of a critic, given by its name or a label."""
    from toptail.lab.critics.base import Critic

    critic = entry(name).name
    module = import_module(f"{__package__}.{critic}")
    (own,) = (
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, Critic)
        and each.__module__ == module.__name__
        and each.name == critic
    )
    return own


Settings = TypeVar("Settings")
"""A dataclass of settings, such as a critic."""


def full_size(
    name: str,
    *,
    reward: Reward = "-1/0",
    td_weight: float | None = None,
    **settings: Any,
) -> Critic:
    """Build a critic; settings that other critics have and this one has not are ignored.

    A setting is a field of the critic's class, or of the settings inside it (its encoders, say).
    The usual defaults are those of the reference agents: three hidden layers of 512, embeddings of
    512, two copies of each network, expectile 0.9, discount 0.99, target rate 0.005.

    ``td_weight`` is the weight of the Bellman loss in critics that add it to a contrastive one. By
    default the TD error is measured in units of the value's range, which is 1 / (1 - gamma) for
    the reward -1/0 and 1 for 0/1: otherwise, with -1/0, the Bellman loss is ten thousand times
    larger and leaves nothing of the contrastive one. A cosine that is added to a value is in the
    same units (``alpha``): otherwise it is a hundredth of what it is with 0/1.
    """
    for setting in settings.keys() - _known():
        raise InputError(f"No critic has a setting '{setting}'.")
    width = 1.0 - settings.get("gamma", 0.99) if reward == "-1/0" else 1.0
    units = {"value_range": 1.0 / width, "td_weight": width**2 if td_weight is None else td_weight}
    return with_settings(load(name)(), {**units, **settings})


@cache
def _known() -> frozenset[str]:
    return frozenset(setting for name in names() for setting, _ in setting_values(load(name)()))


def setting_values(learner: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of all fields of a learner, and of the settings inside them."""
    for field in fields(learner):
        value = getattr(learner, field.name)
        yield field.name, value
        if is_dataclass(value):
            yield from setting_values(value)


def with_settings(default: Settings, settings: Mapping[str, Any]) -> Settings:
    """A copy in which every field named in ``settings`` is replaced, also in nested dataclasses."""
    own = {}
    for field in fields(default):  # type: ignore[arg-type]
        value = getattr(default, field.name)
        if field.name in settings:
            own[field.name] = settings[field.name]
        elif is_dataclass(value):
            own[field.name] = with_settings(value, settings)
    return replace(default, **own)  # type: ignore[type-var]
