"""What the paper says, added to a study's folder: its cells in the tables, and the ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from toptail.lab.paper.controlled import CONTROLLED
from toptail.lab.paper.fixed_query import FIXED_QUERY
from toptail.lab.paper.ledger import Claim, Tables, decide, render_markdown
from toptail.lab.paper.semantics import SEMANTICS
from toptail.lab.studies.common import read_json, write_json
from toptail.lab.studies.controlled.results import read_controlled
from toptail.pools.files import atomic

ClaimEntry = dict[str, Any]
"""One entry of ``claims.json``."""


def annotate(folder: Path, study: str) -> list[ClaimEntry]:
    """Fill the paper's slot of every stored table, and decide the study's claims.

    Parameters
    ----------
    folder
        A study's folder.
    study
        ``controlled``, ``semantics`` or ``selection``.

    Returns
    -------
    The entries of ``claims.json``.
    """
    claims, stored = _STUDIES[study]
    for path in sorted((folder / "tables").glob("*.json")):
        table = read_json(path)
        paper = paper_cells(study, table)
        if table["paper"] != paper:
            write_json(path, table | {"paper": paper})
    record = folder / "record.json"
    return _write_ledger(
        folder, claims, stored(folder), read_json(record) if record.is_file() else {}
    )


def paper_cells(study: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The paper's cells for a stored table, by its label."""
    label, reported = table["label"], _reported(study)
    if study != "selection":
        return dict(reported.get(label, {}).get("rows", {}))
    if label == "judges":
        rho = reported["tab:fixed-query"]["reference_spearman"]
        return {task: {"reference": {"spearman": {"mean": x}}} for task, x in rho.items()}
    if label == "deployment":
        prose = reported["prose"]
        success = prose["closed_loop_pointmaze_tdq_success"]
        tdq = {f"closed_loop/{k}": {"mean": rate} for k, rate in success.items()}
        return {"PointMaze": {"tdq": tdq | {"score_spread": {"mean": prose["score_spread_tdq"]}}}}
    if label == "tab:function-class" and "PointMaze" not in table["rows"]:
        return {}
    return dict(reported.get(label, {}).get("rows", {}))


@cache
def _reported(study: str) -> dict[str, Any]:
    text = (files("toptail.lab.paper") / f"reported_{study}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def _tables(folder: Path) -> dict[str, Any]:
    return {path.stem: read_json(path) for path in sorted((folder / "tables").glob("*.json"))}


def _with_curves(folder: Path) -> dict[str, Any]:
    return _tables(folder) | {"curves": read_json(folder / "curves.json")}


_STUDIES: Mapping[str, tuple[Iterable[Claim], Callable[[Path], Tables]]] = {
    "controlled": (CONTROLLED, lambda folder: read_controlled(folder).results()),
    "semantics": (SEMANTICS, _with_curves),
    "selection": (FIXED_QUERY, _tables),
}


def _write_ledger(
    out: Path, claims: Iterable[Claim], results: Tables, record: Mapping[str, Any]
) -> list[ClaimEntry]:
    """Decide the claims that the results decide; store ``claims.json`` and ``claims.md``."""
    run = f"{record.get('command', '')} (config {record.get('config_hash', '')})"
    entries, left_open = decide(claims, results, run.strip())
    write_json(out / "claims.json", entries)
    text = "# What the paper says, and what this run saw\n\n" + render_markdown(entries)
    if left_open:
        text += "\nNot decided by this run (it made no table for them):\n\n"
        text += "".join(f"- {claim.sentence} (`{claim.where}`)\n" for claim in left_open)
    atomic(out / "claims.md", lambda path: _write(path, text))
    return entries


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
