"""Put what the paper says beside what a study stored: its cells into tables, and the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.arrays import read_arrays
from toptail.io.files import entries
from toptail.io.json_files import read_json, read_json_if_exists, write_json
from toptail_paper.claims.claims_controlled import MAIN
from toptail_paper.claims.claims_controlled_robustness import ROBUSTNESS
from toptail_paper.claims.claims_selection import SELECTION
from toptail_paper.claims.claims_selection_judges import JUDGED
from toptail_paper.claims.claims_semantics_checks import CHECKS
from toptail_paper.claims.claims_semantics_order import ORDER
from toptail_paper.claims.claims_semantics_search import SEARCH
from toptail_paper.claims.claims_semantics_stability import STABILITY
from toptail_paper.claims.controlled_decisions import training_length
from toptail_paper.claims.ledger import Claim, ClaimEntry, write_ledger, write_undecided
from toptail_paper.claims.numbers import Tables
from toptail_paper.claims.reported import CRITICS, cells
from toptail_paper.claims.scale import shortfalls
from toptail_paper.study.scale import note, read_scale

CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "controlled": (*MAIN, *ROBUSTNESS),
    "semantics": (*ORDER, *SEARCH, *CHECKS, *STABILITY),
    "selection": (*SELECTION, *JUDGED),
}
"""The claims about each study, in the order in which a reader of the paper meets them."""

NOTES: Mapping[str, Callable[[Tables], str]] = {"controlled": training_length}
"""What a reader of a whole ledger must know."""


def annotate(folder: str | Path, study: str) -> list[ClaimEntry]:
    """Fill the ``paper`` part of every stored table and write the ledger; returns its entries.

    A table is rewritten only if the paper's cells in it change. ``study`` is the name of the study
    whose claims are decided. A run below the declared scale decides none: see
    `toptail_paper.claims.scale`.
    """
    path = Path(folder)
    if study not in CLAIMS:
        raise InputError(f"The paper has no study '{study}'; its studies are {', '.join(CLAIMS)}.")
    for file in entries(path / "tables", "*.json"):
        table: dict[str, Any] = read_json(file)
        paper = cells(table["label"], table["rows"])
        if table.get("paper") != paper:
            write_json(file, table | {"paper": paper})
    _shrink_landscape(path)
    if short := _short(path, study):
        write_undecided(path, short)
        return []
    record, results = read_json_if_exists(path / "record.json") or {}, stored_results(path)
    notes = NOTES[study](results) if study in NOTES else ""
    return write_ledger(path, study, CLAIMS[study], results, record, notes)


def _short(folder: Path, study: str) -> list[str]:
    """In what a folder's run is below the declared scale, which is noted there for its page."""
    with refusing(folder, "holds settings or sizes that cannot be read", "run the study again"):
        config = (read_json_if_exists(folder / "config.json") or {}).get("config", {})
        scale = read_scale(folder)
        short = shortfalls(study, config, scale)
    if short or "short" in scale:
        note(folder, short=short)
    return short


def stored_results(folder: Path) -> dict[str, Mapping[str, Any]]:
    """A folder's results by name, as claims are decided from them; what is missing stays out."""
    beside = (folder / f"{name}.json" for name in ("curves", "theory", "landscape"))
    files = [*entries(folder / "tables", "*.json"), *beside]
    found = {file.stem: read_json_if_exists(file) for file in files}
    return {name: x for name, x in found.items() if x is not None}


def _shrink_landscape(folder: Path) -> None:
    """Keep what a claim needs of ``landscape.npz``, which is too large to ship with results."""
    if (folder / "landscape.npz").is_file():
        write_json(folder / "landscape.json", _picks(folder / "landscape.npz"))


def _picks(path: Path) -> dict[str, Any]:
    """Lengths of the actions that each critic picked in the drawn run."""
    arrays = read_arrays(path)
    candidates = np.asarray(arrays["candidates"], dtype=float)
    picks = {c: int(arrays[f"pick_{c}"].item()) for c in CRITICS if f"pick_{c}" in arrays}
    norms = {c: float(np.linalg.norm(candidates[pick])) for c, pick in picks.items()}
    return {"radius": float(arrays["radius"].item()), "pick_norm": norms}
