"""Values from a judging plan and its answers, joined to the pools by query and candidate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError
from toptail.io.tables import plain
from toptail.pools.columns import DESIGN, numbers
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Floats, Ints

PLAN = b"toptail-plan"
"""Key of the metadata in which a plan's file records how the plan was drawn."""


def candidate_labels(pools: ScoredPools) -> pa.Array:
    """The label of each candidate; its place in the query, from 0, where it has none."""
    if pools.candidate is not None:
        return pools.candidate
    return pa.array(np.arange(pools.rows) - np.repeat(pools.offsets[:-1], pools.sizes))


def answered(
    pools: ScoredPools,
    plan: pa.Table,
    answers: pa.Table,
    value: str,
    *,
    where: tuple[str, str] = ("plan", "answers"),
) -> ScoredPools:
    """The pools with the design of a plan and the values of its answers.

    Both tables have the columns 'query' and 'candidate'; ``where`` names them in errors. Every
    candidate of the plan needs an answer, because leaving out those that are hard to judge would
    bias the sample; answers for other candidates are refused.
    """
    planned = _rows_of(plan, _keys(pools), where[0], "the table")
    place = {key: at for at, key in enumerate(_ids(plan, where[0]))}
    rows = _rows_of(answers, place, where[1], "the plan")
    if value not in answers.column_names:
        raise InputError(
            f"{where[1]}: there is no column '{value}' of answers; the columns are "
            f"{', '.join(answers.column_names)}."
        )
    values = np.full(len(planned), np.nan)
    values[rows] = numbers(where[1], value, plain(answers[value]), missing="")
    unanswered = int(np.isnan(values).sum())
    if unanswered:
        raise InputError(
            f"{where[1]}: {unanswered:,} of {len(planned):,} candidates of the plan have no "
            "answer; judge those too, since leaving out what is hard to judge biases every number."
        )
    if "p_judged" not in plan.column_names:
        raise InputError(f"{where[0]}: there is no column 'p_judged'; is this a plan?")

    def laid(column: Floats) -> Floats:
        result = np.full(pools.rows, np.nan)
        result[planned] = column
        return result

    design = {
        name: laid(numbers(where[0], name, plain(plan[name])))
        for name in DESIGN
        if name in plan.column_names
    }
    kept = {name: column for name, column in pools.values.items() if name != value}
    return replace(pools, values={value: laid(values)} | kept, design=design)


def row_of_id(pools: ScoredPools, ids: pa.Table, where: str) -> Ints:
    """Rows of the pools with each (query, candidate) of ``ids``, which may repeat."""
    known = _keys(pools)
    result = np.empty(ids.num_rows, dtype=np.int64)
    for at, key in enumerate(_ids(ids, where)):
        if key not in known:
            raise InputError(
                f"{where}: candidate '{key[1]}' of query '{key[0]}' (row {at + 1}) is not in the "
                "table."
            )
        result[at] = known[key]
    return result


def _keys(pools: ScoredPools) -> dict[tuple[str, str], int]:
    query = pools.query.cast(pa.string()).to_pylist()
    labels = candidate_labels(pools).cast(pa.string()).to_pylist()
    parent = np.repeat(np.arange(pools.queries), pools.sizes).tolist()
    return {(query[q], label): at for at, (q, label) in enumerate(zip(parent, labels, strict=True))}


def _ids(table: pa.Table, where: str) -> list[tuple[str, str]]:
    for name in ("query", "candidate"):
        if name not in table.column_names:
            raise InputError(
                f"{where}: there is no column '{name}'; candidates are found by 'query' and "
                f"'candidate' (columns: {', '.join(table.column_names)})."
            )
    parts = (plain(table[name]).cast(pa.string()).to_pylist() for name in ("query", "candidate"))
    return list(zip(*parts, strict=True))


def _rows_of(
    table: pa.Table, known: Mapping[tuple[str, str], int], where: str, source: str
) -> Ints:
    """The known row of each candidate; unknown and repeated candidates are refused."""
    result = np.empty(table.num_rows, dtype=np.int64)
    seen: set[Any] = set()
    for at, key in enumerate(_ids(table, where)):
        if key not in known:
            why = "was not asked for" if source == "the plan" else "is not in the table"
            raise InputError(
                f"{where}: candidate '{key[1]}' of query '{key[0]}' (row {at + 1}) {why}."
            )
        if key in seen:
            raise InputError(
                f"{where}: row {at + 1} repeats candidate '{key[1]}' of query '{key[0]}'."
            )
        seen.add(key)
        result[at] = known[key]
    return result
