"""Flags made of a configuration's dataclass, the one list type, and older spellings of flags."""

from __future__ import annotations

import ast
import inspect
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from textwrap import dedent
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import tyro

from toptail.commands.lists import numbers, parts

Config = TypeVar("Config")

Flag: TypeAlias = tyro.conf.FlagCreatePairsOff[bool]
"""A switch that has no opposite."""

Words: TypeAlias = tyro.conf.UseAppendAction[tuple[str, ...]]
"""The one list type: repeated, separated by commas, or both."""

_METAVARS: Final[Mapping[Any, str]] = {int: "N,N,...", float: "X,X,..."}

_OLDER: Final[Mapping[tuple[str, ...], Mapping[str, str]]] = {
    ("train",): {"--critic": "--critics"},
    ("study", "semantics"): {"--critic": "--scorer"},
    ("study", "selection"): {"--critic": "--scorer"},
}
"""Command -> older spellings of its flags, which still work and which help leaves out."""


ONE_WORD: Final = tyro.constructors.ConstructorRegistry()
"""How flags that take one word are read: what is no number is refused in plain words."""

_EXAMPLES: Final[Mapping[Any, str]] = {
    float: "a number such as 0.1",
    int: "a whole number such as 64",
    str: "a word",
    Path: "a path",
}


@ONE_WORD.primitive_rule
def _one_word(
    flag: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
    union = get_origin(flag.type) in (Union, UnionType)
    kinds = set(get_args(flag.type) if union else (flag.type,)) - {type(None)}
    if len(kinds) != 1 or not kinds <= _EXAMPLES.keys():
        return None
    (kind,) = kinds

    def read(words: list[str]) -> Any:
        try:
            return kind(words[0])
        except ValueError:
            raise ValueError(f"expected {_EXAMPLES[kind]}, not '{words[0]}'") from None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, (kind, int)),
        str_from_instance=lambda value: [str(value)],
    )


def respelled(words: Sequence[str]) -> list[str]:
    """A command line with older spellings of flags as they are spelled now."""
    flags = _OLDER.get(tuple(words[:1])) or _OLDER.get(tuple(words[:2]), {})
    return ["".join((flags.get((p := w.partition("="))[0], p[0]), *p[1:])) for w in words]


def program_name() -> str:
    """The program that runs: ``toptail``, or one that is built on it."""
    started = Path(sys.argv[0] if sys.argv else "")
    name = started.parent.name if started.name == "__main__.py" else started.stem
    name = name.replace("_", "-")
    return name if name.startswith("toptail-") else "toptail"


def command_line() -> str:
    """What was typed, for the record."""
    return shlex.join([program_name(), *sys.argv[1:]])


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
        """The flag's entry in a dataclass."""
        listed = self.element is not None
        shown = ",".join(str(x) for x in self.default) or "none" if listed else self.default
        text = self.text if shown is None else f"{self.text} Unless given: {shown}."
        if listed:
            metavar = _METAVARS.get(self.element, "A,B,...")
            return flag, Annotated[Words, tyro.conf.arg(help=text, metavar=metavar)], ()
        return flag, Annotated[self.kind | None, tyro.conf.arg(help=text)], None

    def parsed(self, flag: str, value: Any) -> Any:
        """What was given, as the configuration has it: 'none' is no entry, 'all' are all."""
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
    return _Setting(path, _kind(owner, name), _sentences(owner)[name], getattr(base, name))


def _kind(owner: type, name: str) -> Any:
    """The type of one field; types of others may be known to whoever checks types alone."""
    stated = next(c for c in owner.__mro__ if name in inspect.get_annotations(c))
    known = {name: inspect.get_annotations(stated)[name]}
    field = type("Field", (), {"__annotations__": known, "__module__": stated.__module__})
    return get_type_hints(field)[name]


def _sentences(owner: type) -> dict[str, str]:
    """Field -> the sentence that follows it in the source."""
    (node,) = ast.parse(dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            found[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return found
