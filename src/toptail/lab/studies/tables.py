"""The shape of a stored table: rows -> task -> critic -> metric -> cell, beside the paper's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from toptail.audit.record import jsonable
from toptail.lab.studies.folder import write_json

Cell = dict[str, Any]
"""{"mean", "std" (ddof 1; None for one seed), "seeds": {seed: value}}, perhaps an interval."""

Rows = dict[str, dict[str, dict[str, Cell]]]
"""task -> critic -> metric -> cell."""


def cell(by_seed: Mapping[int, float], interval: tuple[float, float] | None = None) -> Cell:
    """Mean and standard deviation over seeds, with every seed's value.

    Parameters
    ----------
    by_seed
        The metric of each seed. Where it is not computable it is NaN, is stored as null, and
        stays out of mean and standard deviation.
    interval
        95 % interval of the mean over queries, where there is one.
    """
    values = np.array([x for x in by_seed.values() if np.isfinite(x)], dtype=np.float64)
    result: Cell = {
        "mean": float(values.mean()) if values.size else None,
        "std": float(values.std(ddof=1)) if values.size > 1 else None,
        "seeds": {str(seed): float(value) for seed, value in by_seed.items()},
    }
    if interval is not None:
        result |= {"low": float(interval[0]), "high": float(interval[1])}
    clean: Cell = jsonable(result)
    return clean


def table(
    label: str,
    caption: str,
    rows: Rows,
    paper: Mapping[str, Any],
    notes: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Assemble a table for ``tables/NAME.json``."""
    return {
        "label": label,
        "caption": caption,
        "rows": rows,
        "paper": dict(paper),
        "notes": list(notes),
        **more,
    }


def write_tables(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write every table as ``NAME.json`` and delete those of an earlier call that are none now.

    Claims are decided from what the folder holds, so a table whose numbers are gone must go, too.
    """
    for name, content in tables.items():
        write_json(folder / f"{name}.json", content)
    for path in folder.glob("*.json"):
        if path.stem not in tables:
            path.unlink()
