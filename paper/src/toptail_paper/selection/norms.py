"""The table of the norm of phi of what is picked, as K grows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from toptail.stats import best_of_k
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.load import TaskSelection
from toptail_paper.selection.measure import by_query
from toptail_paper.selection.specs import TABLES
from toptail_paper.selection.tables import MeasuredPicks
from toptail_paper.study.tables import StoredCell

PICK_NORM: Final = "pick-norm"
"""What the table is called."""


def pick_norm_table(measured: MeasuredPicks) -> dict[str, Any] | None:
    """The rows of the critics whose norms are stored; None where none are."""
    data = measured.data
    rows = {
        name: _row(measured, normed)
        for name, columns in data.critics.items()
        if (normed := {seed: c for seed, c in columns.items() if c in data.norms})
    }
    if not rows:
        return None
    caption = f"Norm of phi of the pick over that of a random candidate, {data.key}"
    return TABLES[PICK_NORM].table(caption, {data.key: rows})


def _row(measured: MeasuredPicks, columns: Mapping[int, str]) -> dict[str, StoredCell]:
    """The norm of a random candidate, and for every K that of the pick in units of it."""
    data, means = measured.data, measured.means
    at_k = {seed: pick_norms(data, column) for seed, column in columns.items()}
    alone = {seed: means.mean(norms[:, 0]) for seed, norms in at_k.items()}
    cells = {"random_norm": means.cell(alone)}
    for place, k in list(enumerate(data.k))[1:]:
        ratio = {seed: means.mean(norms[:, place]) / alone[seed] for seed, norms in at_k.items()}
        cells[f"pick_norm_{k}"] = means.cell(ratio)
    return cells


def pick_norms(data: TaskSelection, column: str) -> Floats:
    """Expected norm of the best of K by score, ``[queries, n_k]``; the first K is 1."""
    norms = data.norms[column][..., : data.size].astype(np.float64)
    scores, flat = (x.reshape(-1, data.size) for x in (data.candidate_scores(column), norms))
    return by_query(best_of_k(scores, flat, data.k), len(norms))
