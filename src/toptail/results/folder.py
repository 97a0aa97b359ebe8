"""Result folders: ``audit.json`` and everything rendered from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from toptail.errors import InputError
from toptail.io.files import staged_folder
from toptail.io.json_files import read_json
from toptail.report import render
from toptail.results.schema import problem


def write_report(audit: Mapping[str, Any], out: str | PathLike[str]) -> Path:
    """Write ``audit.json``, ``audit.md``, ``audit.tex``, ``report.html`` and figures.

    The folder ``out`` appears whole or not at all; returns the path of ``report.html``.
    """
    folder = Path(out)
    with staged_folder(folder) as stage:
        text = json.dumps(audit, indent=1, allow_nan=False)
        (stage / "audit.json").write_text(text + "\n", encoding="utf-8")
        render(audit, stage)
    return folder / "report.html"


def read_audit(folder: str | PathLike[str]) -> dict[str, Any]:
    """The stored ``audit.json`` of a result folder, of this edition or the first."""
    path = Path(folder) / "audit.json"
    if not path.is_file():
        raise InputError(f"{path} does not exist; give the folder that 'toptail audit' wrote.")
    audit = read_json(path, "audit the table again", "is not readable as JSON")
    if found := problem(audit):
        raise InputError(f"{path}: {found}.")
    content: dict[str, Any] = audit
    return content
