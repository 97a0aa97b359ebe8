"""Every critic: what it is called, what it is trained by, and what can be read from it.

A critic is one file of this folder, ``NAME.py``, with its class and a constant ``ENTRY``. Entries
are read from the source and not imported: who redraws a page from stored files needs no JAX.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from toptail.errors import InputError
from toptail.io.files import entries

if TYPE_CHECKING:
    from toptail.lab.critics.base import Critic

_FORM: Final = re.compile(
    r"(?P<critic>[^\[\]\s]+)\[(?P<settings>[^\[\]=]+=[^\[\]]+)\](?P<readout>\.\w+)?"
)
_ONE: Final = re.compile(r"\s*(?P<name>\w+)\s*=\s*(?P<value>[^=]*[^=\s])\s*")


def split_label(label: str) -> tuple[str, dict[str, str]]:
    """The critic of a label, and its settings as they are written; none for a critic's own name."""
    if "[" not in label and "]" not in label:
        return label, {}
    form = _FORM.fullmatch(label)
    found = [] if form is None else [_ONE.fullmatch(x) for x in form["settings"].split(",")]
    settings = {each["name"]: each["value"] for each in found if each is not None}
    if form is None or form["readout"] or len(settings) < len(found):
        raise InputError(
            f"'{label}' is not the name of a critic: expected CRITIC[SETTING=VALUE,...] with each "
            "setting once, as in cosine[temperature=0.1]."
        )
    return form["critic"], settings


def label_of(critic: str, settings: Mapping[str, Any]) -> str:
    """The one spelling of a critic with settings, by their names; without any, the critic's."""
    listed = ",".join(f"{name}={value_text(settings[name])}" for name in sorted(settings))
    return f"{critic}[{listed}]" if listed else critic


def value_text(value: Any) -> str:
    """A setting's value in a label, which is also the name of a folder."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value).replace("/", "_")


def without_settings(scorer: str) -> str:
    """A scorer's name as the registry has it: ``two_head_joint[alpha=2].f_cos`` less the part."""
    form = _FORM.fullmatch(scorer)
    return scorer if form is None else form["critic"] + (form["readout"] or "")


def split_readout(scorer: str) -> tuple[str, str]:
    """The critic of a scorer with its settings, and the name of the readout; empty if deployed."""
    label, bracket, rest = scorer.rpartition("]")
    critic, _, readout = rest.partition(".")
    return f"{label}{bracket}{critic}", readout


def settings_words(scorer: str) -> str:
    """The settings in a scorer's name as a reader sees them; empty where there are none."""
    form = _FORM.fullmatch(scorer)
    if form is None:
        return ""
    return form["settings"].replace("_", " ").replace("=", " ").replace(",", ", ")


Group: TypeAlias = Literal["main", "two_head", "control", "factor", "other"]
"""The paper's four critics; two heads in one checkpoint; objective and network exchanged; the
objective taken apart; and whatever else somebody wants to compare with them."""

Objective: TypeAlias = Literal["bellman", "contrastive", "both", "returns"]
"""Whose gradient reaches the parameters that a readout is read from: Bellman targets, own goals
against others, these two, or what followed in the data."""

Cell: TypeAlias = tuple[
    Literal["monte_carlo", "bootstrapped"],
    Literal["classification", "regression"],
    Literal["behaviour", "optimal"],
]
"""An objective by its factors: what a target is made of, what is done with it, and whose future
it is about."""

Ideal: TypeAlias = Literal["q_star", "q_behaviour", "log_ratio", "gamma_d"]
"""What a critic would score if it were learned perfectly: the optimal value, the value of the
behaviour that collected the data, log p(g | s, a) - log p(g) of its discounted future states, or
the mean gamma^d of goals that follow."""

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

    ideal: Ideal | None = None
    """What its deployed readout would order actions by if it were learned perfectly; None if
    nobody knows."""

    cell: Cell | None = None
    """The factors of its objective, where its deployed readout has one objective alone."""

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


def read_entry(path: Path) -> Entry | None:
    """The ``ENTRY`` in the source of a critic; None if the file has none."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ENTRY":
            entry = _literal(node.value, path)
            if not isinstance(entry, Entry) or entry.name != path.stem:
                raise InputError(
                    f"{path}, line {node.lineno}: ENTRY must be an Entry with the name of the "
                    f"file, '{path.stem}'."
                )
            return entry
    return None


_PARTS: Final[Mapping[str, Callable[..., Any]]] = {"Entry": Entry, "Readout": Readout}


def _literal(node: ast.expr, path: Path) -> Any:
    """The value of an expression of literals, tuples, entries and readouts."""
    if isinstance(node, ast.Tuple):
        return tuple(_literal(each, path) for each in node.elts)
    make: Callable[[], Any] = partial(ast.literal_eval, node)
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _PARTS:
        args = [_literal(each, path) for each in node.args]
        given = {str(each.arg): _literal(each.value, path) for each in node.keywords}
        make = partial(_PARTS[ast.unparse(node.func)], *args, **given)
    try:
        return make()
    except (TypeError, ValueError):
        raise InputError(
            f"{path}, line {node.lineno}: '{ast.unparse(node)}' cannot stand in an ENTRY, which is "
            "read without being run: write it with literals, Entry(...) and Readout(...) alone."
        ) from None


def _entries() -> dict[str, Entry]:
    found = [read_entry(path) for path in entries(Path(__file__).parent, "*.py")]
    ordered = sorted((each for each in found if each), key=lambda each: (each.place, each.name))
    return {each.name: each for each in ordered}


CRITICS: Final[Mapping[str, Entry]] = _entries()
"""Every critic, by its place."""


def names(*groups: Group) -> tuple[str, ...]:
    """Names of all critics, or of some groups'."""
    return tuple(e.name for e in CRITICS.values() if not groups or e.group in groups)


MAIN: Final = names("main")
"""The paper's four critics, in its order."""


def one_step_names() -> tuple[str, ...]:
    """What the critics of the controlled world are called there."""
    return tuple(e.one_step for e in CRITICS.values() if e.one_step)


@cache
def _by_scorer() -> dict[str, tuple[Entry, Readout]]:
    return {scorer: (e, read) for e in CRITICS.values() for scorer, read in e.scorers.items()}


def readout(scorer: str) -> Readout | None:
    """What a scorer reads, by its name in columns (``raw``); None for a user's scorer.

    A critic with settings (``cosine[temperature=0.1]``) is read as the critic is.
    """
    return _found(scorer)[1]


def critic_of(scorer: str) -> Entry | None:
    """The critic that a scorer is read from; None for a user's scorer."""
    return _found(scorer)[0]


def _found(scorer: str) -> tuple[Entry, Readout] | tuple[None, None]:
    return _by_scorer().get(without_settings(scorer), (None, None))


IDEALS: Final[Mapping[str, str]] = {
    "q_star": "Ideal: Q*",
    "q_behaviour": "Ideal: Q of the behaviour",
    "log_ratio": "Ideal: log-ratio",
    "gamma_d": "Ideal: γ^d",
}
"""The ideal critics, which nobody trained, and how a reader sees them."""


def ideal_of(scorer: str) -> str | None:
    """The ideal of a scorer; None for a user's, or where nobody knows it.

    An ideal is its own. Beside a critic's deployed readout, what a contrast trains has one.
    """
    if scorer in IDEALS:
        return scorer
    critic, read = _found(scorer)
    if critic is None or read is None or read.name == critic.deployed:
        return None if critic is None else critic.ideal
    return "log_ratio" if read.name in ("f_raw", "f_cos") and not read.value else None


def title(scorer: str) -> str:
    """How a reader sees a scorer; a user's keeps its own name."""
    found, settings = readout(scorer), settings_words(scorer)
    if found is None:
        return IDEALS.get(scorer, scorer)
    return f"{found.title} ({settings})" if settings else found.title


def entry(name: str) -> Entry:
    """The critic of that name, or of that label."""
    critic, _ = split_label(name)
    if critic not in CRITICS:
        raise InputError(f"There is no critic '{critic}'; the critics are {', '.join(CRITICS)}.")
    return CRITICS[critic]


def load(name: str) -> type[Critic]:
    """The class of a critic, given by its name or a label, from its file."""
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
