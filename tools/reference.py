"""The generated pages of the site's reference: Python, commands, and the fields of JSON files."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import toptail
from toptail import cli
from toptail.results import Stored, schema
from toptail_paper.cli import PAPER

FUNCTIONS = ("audit", "audit_picks", "choose", "check", "plan", "read", "builtin_pools")
"""The functions of `toptail`, in the order of the page; classes follow by name."""
INSIDE = (
    "toptail.audit.verdict.ScorerResult",
    "toptail.audit.verdict.Curve",
    "toptail.audit.verdict.Interval",
    "toptail.audit.baseline.Baseline",
    "toptail.lab.check.result.CheckResult",
    "toptail.lab.check.result.CheckVerdict",
)
"""What results hold: nobody makes these, so that `toptail` does not export them."""
BESIDE = ("toptail.testing.assert_safe", "toptail.results.schema", "toptail.progress.called_by")
"""Functions that are imported from their own modules."""


def pages() -> dict[str, str]:
    """The text of each page by its place on the site."""
    return {
        "reference/python.md": python(),
        "reference/commands.md": commands(),
        "reference/audit-json.md": fields("audit"),
        "reference/choice-json.md": fields("choice"),
        "reference/check-json.md": fields("check"),
        "reference/selector-json.md": fields("selector"),
    }


def python() -> str:
    """The page of the Python API, which mkdocstrings fills from docstrings."""
    classes = [n for n in toptail.__all__ if n not in (*FUNCTIONS, "__version__")]
    exported = "Everything that `import toptail` exports, and what its results hold."
    parts = ["# Python", exported, "## Functions"]
    parts += [_described(f"toptail.{name}", getattr(toptail, name)) for name in FUNCTIONS]
    parts += ["## Arguments and results"]
    parts += [_described(f"toptail.{name}", getattr(toptail, name)) for name in classes]
    parts += ["## What results hold", *map(_described, INSIDE)]
    parts += ["## In modules of their own", *map(_described, BESIDE)]
    return "\n\n".join(parts) + "\n"


def _described(name: str, exported: Any = None) -> str:
    """The place that mkdocstrings fills, under the name by which people import it."""
    path = name if exported is None else f"{exported.__module__}.{exported.__name__}"
    return f"::: {path}\n    options:\n      heading: {name}\n      toc_label: {name}"


def commands() -> str:
    """Every command's help, as it is printed."""
    parts = ["# Commands", "What `--help` prints, of `toptail` and of `toptail-paper`."]
    for program in (cli.TOPTAIL, PAPER):
        parts += [f"## {program.name}", _help(program, [])]
        for words in _commands(program.commands):
            parts += [f"### {program.name} {' '.join(words)}", _help(program, words)]
    return "\n\n".join(parts) + "\n"


def _commands(known: Mapping[str, cli.Command], above: tuple[str, ...] = ()) -> Iterator[list[str]]:
    for name, command in known.items():
        if command.parts:
            yield from _commands(command.parts, (*above, name))
        else:
            yield [*above, name]


def _help(program: cli.Program, words: list[str]) -> str:
    printed = io.StringIO()
    with patch.dict(os.environ, {"COLUMNS": "88"}), redirect_stdout(printed):
        cli.main([*words, "--help"], program)
    return f"```text\n{printed.getvalue().strip()}\n```"


def fields(name: Stored) -> str:
    """Every field of a stored JSON file, from its schema."""
    whole = schema(name)
    parts = [f"# {name}.json", whole["description"]]
    parts += ["`toptail.results.schema" + f'("{name}")` returns the JSON Schema of this page.']
    tops = [each["$ref"].rsplit("/", 1)[1] for each in whole.get("oneOf", [whole])]
    order = [*tops, *(part for part in reversed(whole["$defs"]) if part not in tops)]
    for part in order:  # the whole file first
        content = whole["$defs"][part]
        rows = _rows(content, "", set(content.get("required", [])))
        table = "\n".join(
            f"| `{field}` | {kind} | {'yes' if always else ''} | {text} |"
            for field, kind, always, text in rows
        )
        parts += [f"## {part}", content.get("description", "")]
        also = [_kind(each) for each in content.get("allOf", []) if "$ref" in each]
        parts += [f"All fields of {', '.join(also)}, and:"] * bool(also)
        parts += [
            f"| field | content | always there | meaning |\n|---|---|---|---|\n{table}"
        ] * bool(table)
        parts += [] if table else [f"Content: {_kind(content)}."]
    return "\n\n".join(filter(None, parts)) + "\n"


def _rows(
    content: Mapping[str, Any], above: str, required: set[str]
) -> Iterator[tuple[str, str, bool, str]]:
    for part in content.get("allOf", []):
        yield from _rows(part, above, set(part.get("required", [])))
    for field, inner in content.get("properties", {}).items():
        yield f"{above}{field}", _kind(inner), field in required, inner.get("description", "")
        inside = inner.get("items", inner) if "array" in str(inner.get("type")) else inner
        mark = "[]." if inside is not inner else "."
        if isinstance(inside, dict):
            needed = set(inside.get("required", []))
            yield from _rows(inside, f"{above}{field}{mark}", needed)


def _kind(content: Any) -> str:
    """What a field holds, in a few words."""
    if not isinstance(content, dict):
        return "anything"
    if "$ref" in content:
        part = content["$ref"].rsplit("/", 1)[1]
        return f"[{part}](#{part.lower()})"
    if "const" in content:
        return f"`{content['const']}`"
    if "enum" in content:
        return ", ".join("null" if word is None else f"`{word}`" for word in content["enum"])
    for join in ("oneOf", "anyOf"):
        if join in content:
            return " or ".join(_kind(each) for each in content[join])
    types = content.get("type", [])
    types = [types] if isinstance(types, str) else types
    words = []
    for each in types:
        if each == "array" and "items" in content:
            words.append(f"list of {_kind(content['items'])}")
        elif each == "object" and isinstance(content.get("additionalProperties"), dict):
            words.append(f"by name: {_kind(content['additionalProperties'])}")
        else:
            words.append(each)
    return " or ".join(words) or "anything"
