"""Audits and choices whose arguments stand side by side, as the flags of the command line do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import toptail
from toptail import AuditResult, BaselineTable, ChoiceResult

GROUPS: Mapping[str, type] = {
    "columns": toptail.TableColumns,
    "judged": toptail.HowJudged,
    "thresholds": toptail.Thresholds,
    "crossfit": toptail.CrossFit,
}


def grouped(function: Callable[..., Any], flat: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a function, those that belong to a group inside it."""
    known = inspect.signature(function).parameters
    flat = {{"filter": "filters"}.get(name, name): value for name, value in flat.items()}
    result = {name: value for name, value in flat.items() if name in known}
    for group, kind in GROUPS.items():
        own = {field.name for field in fields(kind)} - set(known)
        given = {name: flat[name] for name in own if name in flat}
        if given:
            result[group] = kind(**given)
    return result


def audit(source: Any, **flat: Any) -> AuditResult:
    """An audit; ``margin`` and ``baseline_scores`` belong to the baseline."""
    about = {"scores": flat.pop("baseline_scores", None), "margin": flat.pop("margin", None)}
    if given := {name: value for name, value in about.items() if value is not None}:
        flat["baseline"] = BaselineTable(flat["baseline"], **given)
    return toptail.audit(source, **grouped(toptail.audit, flat))


def choose(source: Any, **flat: Any) -> ChoiceResult:
    """A choice."""
    return toptail.choose(source, **grouped(toptail.choose, flat))
