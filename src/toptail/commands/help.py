"""Help pages: an example first, then the flags in groups, as wide as the terminal."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from shutil import get_terminal_size
from textwrap import dedent, fill, indent, wrap
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import tyro

from toptail.commands.flags import DECIDE, OUTPUT, SCALE, without_none

_GROUPS: Final = ("What to read", DECIDE, OUTPUT, SCALE)
_KINDS: Final = {int: "INT", float: "FLOAT", str: "TEXT", Path: "PATH", bool: ""}
_LEFT: Final = 22
"""Columns of a flag and of what it takes; a longer one has a line of its own."""


@dataclass(frozen=True)
class FlagHelp:
    """What help says about one flag."""

    field: str
    """The name of its field."""
    name: str
    """``--pool-size``, or the name of what is given without a flag."""
    takes: str
    """What follows it: ``INT``, ``A,B,...``; empty for a switch."""
    text: str
    """What it means, with its default."""
    group: str
    """The heading that it stands below."""
    place: int
    """0 for what is given without a flag, 1 for the command's own flags, 2 for those it shares."""
    required: bool
    """Whether the command does not run without it."""


def command_page(command: type, program: str) -> str:
    """The help page of a command, from its dataclass: docstring, fields and their sentences."""
    flags = sorted(flags_in(command), key=lambda flag: flag.place)
    given = " ".join(f"{x.name} {x.takes}".strip() for x in flags if x.required or not x.place)
    usage = " ".join(f"Usage: {program} {given} [FLAGS]".split())
    usage = fill(usage, _width(), subsequent_indent="  ", break_long_words=False)
    page = [paragraphs(inspect.getdoc(command) or ""), usage]
    for group in _GROUPS:
        rows = {f"{x.name} {x.takes}".strip(): x.text for x in flags if x.group == group}
        if rows:
            page.append(f"{group}:\n{listed(rows)}")
    return "\n\n".join(page)


def listed(rows: Mapping[str, str]) -> str:
    """Words and what they mean, in two columns."""
    left = min(_LEFT, max(map(len, rows)))
    lines = []
    for word, text in rows.items():
        below = wrap(text, _width() - left - 4, break_on_hyphens=False)
        if len(word) > left:
            lines.append(f"  {word}")
        else:
            lines.append(f"  {word:<{left}}  {below.pop(0) if below else ''}".rstrip())
        lines += [f"{'':{left + 4}}{line}" for line in below]
    return "\n".join(lines)


def paragraphs(text: str) -> str:
    """A text wrapped to the terminal; examples, which are command lines, keep their lines."""
    return "\n\n".join(
        indent(dedent(part), "  ") if part.lstrip().startswith("toptail") else fill(part, _width())
        for part in text.split("\n\n")
    )


def flags_in(command: Any, group: str = _GROUPS[0]) -> Iterator[FlagHelp]:
    """The flags of a command, and those of nested groups of settings."""
    kinds, own = get_type_hints(command, include_extras=True), inspect.get_annotations(command)
    texts = {k: v for owner in reversed(command.__mro__) for k, v in sentences(owner).items()}
    for field in fields(command):
        kind, marks = kinds[field.name], tuple[Any, ...]()
        if hasattr(kind, "__metadata__"):
            kind, marks = kind.__origin__, kind.__metadata__
        heading = next((mark for mark in marks if mark in _GROUPS), group)
        if is_dataclass(kind):
            yield from (replace(flag, place=1) for flag in flags_in(kind, heading))
            continue
        place = 0 if tyro.conf.Positional in marks else 1 if field.name in own else 2
        yield _flag_help(field, kind, marks, heading, place, texts.get(field.name, ""))


def _flag_help(
    field: Field[Any], kind: Any, marks: Sequence[Any], heading: str, place: int, text: str
) -> FlagHelp:
    conf = [mark for mark in marks if hasattr(mark, "metavar")]
    text = next((c.help for c in conf if c.help), text) + _default(field.default)
    takes = next((c.metavar for c in conf if c.metavar), None) or _takes(kind)
    required = field.default is MISSING and field.default_factory is MISSING
    if place == 0:
        return FlagHelp(field.name, takes, "", text, heading, place, required)
    names = [alias for c in conf for alias in c.aliases or ()]
    name = ", ".join([*names, f"--{field.name.replace('_', '-')}"])
    return FlagHelp(field.name, name, takes, text, heading, place, required)


def _takes(kind: Any) -> str:
    kind = without_none(kind)
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if get_origin(kind) is tuple:
        return "N,N,..."
    return _KINDS[kind]


def _default(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    shown = isinstance(value, (int, float, str, tuple, Path)) and not isinstance(value, bool)
    return f" [default: {text}]" if shown and text else ""


def sentences(owner: type) -> dict[str, str]:
    """Field -> the sentence that follows it in the source."""
    if not is_dataclass(owner) or owner.__module__ == "types":
        return {}
    (node,) = ast.parse(dedent(inspect.getsource(owner))).body
    assert isinstance(node, ast.ClassDef)
    found = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            found[ast.unparse(field.target)] = " ".join(ast.literal_eval(text.value).split())
    return found


def _width() -> int:
    return min(get_terminal_size().columns, 120)
