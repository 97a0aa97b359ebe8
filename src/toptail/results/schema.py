"""The JSON Schemas of ``audit.json`` and ``choice.json``, and whether a stored one follows it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}

_EDITIONS: Final = ("1", "2")


What = Literal["audit", "choice"]


def schema(what: What = "audit") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what :func:`toptail.audit` and ``audit_picks`` store.

    ``choice`` is that of what :func:`toptail.choose` stores.

    >>> schema()["$schema"]
    'https://json-schema.org/draft/2020-12/schema'
    """
    text = files("toptail.results").joinpath(f"{what}.schema.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def problem(audit: Any) -> str:
    """Why this is no audit that can be read; empty where it is one."""
    named = audit.get("format") if isinstance(audit, dict) else None
    name, _, edition = str(named).rpartition("-")
    if name != "toptail-audit" or not edition.isdecimal():
        return "not a result of 'toptail audit'; its 'format' is missing"
    if edition not in _EDITIONS:
        return (
            f"its format is '{named}', and this toptail reads those up to "
            f"'toptail-audit-{_EDITIONS[-1]}'; update toptail, or audit the table again"
        )
    part = f"{audit.get('kind')}-{edition}"
    known = _known("audit")
    if part not in known:
        return f"its 'kind' is {audit.get('kind')!r}, not 'pools' or 'picks'"
    found = next(_broken(audit, known[part], known), "") or _lengths(audit)
    return f"broken, {found}; audit the table again" if found else ""


def choice_problem(choice: Any) -> str:
    """Why this is no choice that can be read; empty where it is one."""
    named = str(choice.get("format")) if isinstance(choice, dict) else ""
    if named not in ("toptail-choice-1", "toptail-choice-2"):
        return "this is no result of 'toptail choose'"
    known = _known("choice")
    found = next(_broken(choice, known[named.removeprefix("toptail-")], known), "")
    return f"broken, {found}; choose again" if found else ""


@cache
def _known(what: What) -> Mapping[str, Any]:
    """The parts of a schema by their names."""
    parts: Mapping[str, Any] = schema(what)["$defs"]
    return parts


def _broken(
    value: Any, rule: Mapping[str, Any], known: Mapping[str, Any], where: str = ""
) -> Iterator[str]:
    """What breaks a rule of the schema; knows the few keywords that the schemas use."""
    if "$ref" in rule:
        yield from _broken(value, known[rule["$ref"].rpartition("/")[2]], known, where)
    for part in rule.get("allOf", ()):
        yield from _broken(value, part, known, where)
    kinds = rule.get("type", ())
    if kinds and not any(
        _is(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        yield f"{where or 'it'} is of the wrong type"
    elif value not in rule.get("enum", [value]):
        yield f"{where} is {value!r}"
    elif isinstance(value, dict):
        yield from _broken_object(value, rule, known, where)
    elif isinstance(value, list) and "items" in rule:
        for at, item in enumerate(value):
            yield from _broken(item, rule["items"], known, f"{where}[{at}]")


def _broken_object(
    value: dict[str, Any], rule: Mapping[str, Any], known: Mapping[str, Any], where: str
) -> Iterator[str]:
    start = f"{where}." if where else ""
    for key in rule.get("required", ()):
        if key not in value:
            yield f"{start}{key} is missing"
    properties = rule.get("properties", {})
    for key, item in value.items():
        inner = properties.get(key, rule.get("additionalProperties", {}))
        if inner is False:
            yield f"{start}{key} is unknown"
        else:
            yield from _broken(item, inner, known, f"{start}{key}")


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _lengths(audit: Mapping[str, Any]) -> str:
    """Which list over K is not as long as K."""
    for part in (audit, *(audit.get("groups") or {}).values()):
        for name, scorer in part.get("scorers", {}).items():
            for key in ("value", "low", "high", "captured", "captured_low", "captured_high"):
                if len(scorer[key]) != len(part["k"]):
                    return f"scorers.{name}.{key} does not have one entry for each K"
    return ""
