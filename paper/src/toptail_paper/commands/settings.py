"""Flags of studies: settings of a configuration, and how large what they train is."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, make_dataclass, replace
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from toptail.commands.flags import SCALE, Words, numbers, parts
from toptail.commands.help import sentences
from toptail.errors import InputError
from toptail.lab.training.config import RunOptions

Config = TypeVar("Config")

OF_ALL: Final = ("batch_size", "learning_rate")
SIZES: Final = (*OF_ALL, "hidden", "depth", "embed_dim")
"""What ``--set`` may have in a study; other settings are those of labels."""

_METAVARS: Final[Mapping[Any, str]] = {int: "N,N,...", float: "X,X,..."}


@dataclass(frozen=True)
class _Setting:
    """Where a flag's setting is in a configuration."""

    path: tuple[str, ...]
    """Names of the fields on the way to it."""
    kind: Any
    """Its type."""
    text: str
    """The configuration's own sentence about it."""
    default: Any
    """What it is unless given."""

    @property
    def element(self) -> Any:
        """What a list is made of; None for what is no list."""
        return get_args(self.kind)[0] if get_origin(self.kind) is tuple else None

    def field(self, flag: str) -> tuple[str, Any, Any]:
        listed = self.element is not None
        shown = ",".join(str(x) for x in self.default) or "none" if listed else self.default
        text = self.text if shown is None else f"{self.text} Unless given: {shown}."
        if listed:
            metavar = _METAVARS.get(self.element, "A,B,...")
            return flag, Annotated[Words, SCALE, tyro.conf.arg(help=text, metavar=metavar)], ()
        return flag, Annotated[self.kind | None, SCALE, tyro.conf.arg(help=text)], None

    def parsed(self, flag: str, value: Any) -> Any:
        """A flag's words as the setting's value: 'none' is an empty list, 'all' every choice."""
        if self.element is None:
            return value
        words = parts(value)
        choices = get_args(self.element) if get_origin(self.element) is Literal else ()
        if words == ("none",):
            return ()
        if choices or self.element is str:
            return choices if words == ("all",) else words
        return numbers(flag, words, self.element)


def flags_of(base: Any, fields: Iterable[str], **paths: str) -> Any:
    """A dataclass of flags: settings of a configuration, each None or empty unless given.

    Help and types are the configuration's own. Lists are `Words`. ``fields`` become flags of the
    same name; ``pool_size="pools.size"`` says where the setting of another flag is.
    """
    where = {**{name: name for name in fields}, **paths}
    settings = {flag: _setting(base, tuple(path.split("."))) for flag, path in where.items()}
    entries = [setting.field(flag) for flag, setting in settings.items()]
    made: Any = make_dataclass("Settings", entries, frozen=True, kw_only=True)
    made.settings = settings
    return made


def with_given(config: Config, flags: Any, **more: Any) -> Config:
    """The configuration with the flags that were given, and more settings of its own."""
    tree = dict(more)
    for flag, setting in flags.settings.items():
        value = getattr(flags, flag)
        if value not in (None, ()):
            inner = tree
            for name in setting.path[:-1]:
                inner = inner.setdefault(name, {})
            inner[setting.path[-1]] = setting.parsed(f"--{flag.replace('_', '-')}", value)
    return _replaced(config, tree)


def _replaced(config: Config, tree: Mapping[str, Any]) -> Config:
    changes = {
        name: _replaced(getattr(config, name), value) if isinstance(value, dict) else value
        for name, value in tree.items()
    }
    return replace(config, **changes)  # type: ignore[type-var]


def _setting(base: Any, path: tuple[str, ...]) -> _Setting:
    *outer, name = path
    for step in outer:
        base = getattr(base, step)
    owner = type(base)
    return _Setting(path, _kind(owner, name), sentences(owner)[name], getattr(base, name))


def _kind(owner: type, name: str) -> Any:
    """The type of one field, resolved alone.

    `get_type_hints` of the whole class would fail: other fields may have types that are imported
    under ``TYPE_CHECKING`` only.
    """
    stated = next(c for c in owner.__mro__ if name in inspect.get_annotations(c))
    known = {name: inspect.get_annotations(stated)[name]}
    field = type("Field", (), {"__annotations__": known, "__module__": stated.__module__})
    return get_type_hints(field)[name]


@dataclass(frozen=True, kw_only=True)
class TrainingSize:
    """How large the networks are that --train makes, and how long they train."""

    steps: int | None = None
    """With --train: optimizer steps of each critic; 100000 unless given, and 50000 on manipulation
    data."""
    diffusion_steps: int | None = None
    """With --train: optimizer steps of the behaviour models; 100000 unless given, 0 for none."""
    set: Annotated[Words, tyro.conf.arg(metavar="NAME=VALUE,...")] = ()
    """With --train, and for actors: batch_size, learning_rate, hidden (width), depth and embed_dim,
    as in hidden=64,depth=2."""

    def sizes(self) -> dict[str, Any]:
        """What --set asks for; depth is a part of ``hidden``, the width of each layer."""
        names = {part.partition("=")[0] for part in parts(self.set)}
        for name in sorted(names - set(SIZES)):
            raise InputError(f"--set {name}: a study has the sizes {', '.join(SIZES)}.")
        options = RunOptions.written(1, self.set)
        shared = {name: getattr(options, name) for name in names & set(OF_ALL)}
        return options.settings() | shared

    def changes(self) -> dict[str, Any]:
        """The training settings that flags change, by their names in the study."""
        sizes = self.sizes()
        found: dict[str, Any] = {name: sizes.pop(name) for name in OF_ALL if name in sizes}
        found |= {"steps": self.steps, "diffusion_steps": self.diffusion_steps}
        found["settings"] = tuple(sizes.items())
        found["diffusion_settings"] = tuple((n, x) for n, x in sizes.items() if n == "hidden")
        return {name: value for name, value in found.items() if value not in (None, ())}


@dataclass(frozen=True, kw_only=True)
class DeploymentSize:
    """How much the stage deployment does."""

    actor_steps: int | None = None
    """In the stage deployment: optimizer steps of each actor; 100000 unless given."""
    episodes: int | None = None
    """In the stage deployment: episodes of each evaluation goal; 20 unless given."""
    episode_steps: int | None = None
    """In the stage deployment: steps after which an episode has failed; the environment's own
    unless given."""

    def changes(self, size: TrainingSize) -> dict[str, dict[str, Any]]:
        """The settings of actors and of episodes that flags change, by their names in the study."""
        sizes = {name: x for name, x in size.sizes().items() if name != "embed_dim"}
        actor: dict[str, Any] = {"steps": self.actor_steps, **sizes}
        episodes = {"per_goal": self.episodes, "limit": self.episode_steps}
        return {
            name: {key: value for key, value in settings.items() if value is not None}
            for name, settings in (("actor", actor), ("episodes", episodes))
        }
