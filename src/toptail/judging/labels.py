"""Where values come from: a column of the table, the answers to a plan, or judged pairs."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError
from toptail.io.tables import plain
from toptail.judging.ids import MARK, are_numbered, check_order, keys_of, row_of_key, rows_of
from toptail.judging.plan import table_of
from toptail.pools.columns import DESIGN, first_row, numbers
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Floats, Ints


def joined(
    pools: ScoredPools, values: str | None, *, plan: Any, answers: Any, pairs: Any
) -> tuple[ScoredPools, str]:
    """The pools with values from a plan or from pairs, and the value column to judge by."""

    def name(data: Any, default: str) -> str:
        return str(data) if isinstance(data, (str, PathLike)) else default

    if plan is None:
        judged = table_of(pairs, "pairs")
        return with_preferences(pools, judged, name(pairs, "pairs")), PREFERENCE
    asked, value = table_of(plan), values or "value"
    given = asked if answers is None else table_of(answers, "answers")
    where = name(plan, "plan"), name(plan if answers is None else answers, "answers")
    return answered(pools, asked, given, value, where=where), value


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
    planned = rows_of(plan, row_of_key(pools), where[0], "the table")
    place = {key: at for at, key in enumerate(keys_of(plan, where[0]))}
    rows = rows_of(answers, place, where[1], "the plan")
    notes = _unchecked(pools, plan, planned, answers, planned[rows], where)
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

    def over_all_rows(column: Floats) -> Floats:
        result = np.full(pools.rows, np.nan)
        result[planned] = column
        return result

    design = {
        name: over_all_rows(numbers(where[0], name, plain(plan[name])))
        for name in DESIGN
        if name in plan.column_names
    }
    kept = {name: column for name, column in pools.values.items() if name != value}
    return replace(
        pools,
        values={value: over_all_rows(values)} | kept,
        design=design,
        notes=(*pools.notes, *notes),
    )


def _unchecked(
    pools: ScoredPools,
    plan: pa.Table,
    planned: Ints,
    answers: pa.Table,
    answered: Ints,
    where: tuple[str, str],
) -> list[str]:
    """Check that numbered candidates are those of the plan; a sentence where nothing tells.

    ``planned`` and ``answered`` are the rows of the pools that each table's candidates are in.
    """
    if pools.candidate is not None and not are_numbered(plan):
        return []
    if not check_order(pools, planned, plan, where[0]):
        return [
            f"{where[0]}: candidates are numbered by their row in the query, and there is no "
            f"column '{MARK}...' of a score used here, so that it could not be checked that the "
            "rows are in the planned order; if not, values are those of other candidates."
        ]
    if answers is plan or check_order(pools, answered, answers, where[1]):
        return []
    return [
        f"{where[1]}: there is no column '{MARK}...' of the plan, so that it could not be checked "
        "that 'candidate' is the number of the row in the query, from 0, as in the plan; answer in "
        "a copy of the plan's file, and it is."
    ]


def row_of_id(pools: ScoredPools, ids: pa.Table, where: str) -> Ints:
    """Rows of the pools with each (query, candidate) of ``ids``, which may repeat."""
    known = row_of_key(pools)
    result = np.empty(ids.num_rows, dtype=np.int64)
    for at, key in enumerate(keys_of(ids, where)):
        if key not in known:
            raise InputError(
                f"{where}: candidate '{key[1]}' of query '{key[0]}' (row {at + 1}) is not in the "
                "table."
            )
        result[at] = known[key]
    return result


PREFERENCE = "preference"
"""The name of the value column that is made from judged pairs."""


def with_preferences(pools: ScoredPools, pairs: pa.Table, where: str) -> ScoredPools:
    r"""The pools with a value column: each candidate's chance to beat a random other one.

    ``pairs`` has the columns ``query``, ``a``, ``b`` (two candidates), ``wins`` (1 where a beats b,
    0 where b beats a, 0.5 for a tie) and ``p_judged``, the chance with which the pair was chosen;
    without that column the pairs of a query are taken to be drawn from all of its pairs at random.
    Repeated judgements of a pair are averaged.

    With :math:`x_{ij}` whether i beats j, the value :math:`\sum_j x_{ij}/(n - 1)` is a sum over
    pairs, so :math:`1/2 + \sum_j R_{ij} (x_{ij} - 1/2)/(p_{ij} (n - 1))` is unbiased, where
    :math:`R_{ij}` is 1 if the pair was judged.
    """
    for name in ("query", "a", "b", "wins"):
        if name not in pairs.column_names:
            raise InputError(
                f"{where}: there is no column '{name}'; pairs have query, a, b, wins and p_judged "
                f"(columns: {', '.join(pairs.column_names)})."
            )
    a, b = (_rows(pools, pairs, side, where) for side in ("a", "b"))
    wins = numbers(where, "wins", plain(pairs["wins"]))
    bad = (wins < 0) | (wins > 1) | (a == b)
    if bad.any():
        raise InputError(
            f"{where}: row {first_row(bad)} must compare two different candidates, with 'wins' "
            "between 0 (b is better) and 1 (a is better)."
        )
    # Each pair once, the earlier candidate first, with the mean of its judgements.
    low, high = np.minimum(a, b), np.maximum(a, b)
    wins = np.where(a < b, wins, 1.0 - wins)
    _, at, back, times = np.unique(
        low * pools.rows + high, return_index=True, return_inverse=True, return_counts=True
    )
    low, high, wins = low[at], high[at], np.bincount(back, wins) / times
    query = np.searchsorted(pools.offsets, low, side="right") - 1
    size = pools.sizes[query].astype(np.float64)
    if "p_judged" in pairs.column_names:
        chance = numbers(where, "p_judged", plain(pairs["p_judged"]))[at]
        if ((chance <= 0) | (chance > 1)).any():
            raise InputError(f"{where}: 'p_judged' must lie above 0 and be at most 1.")
    else:
        drawn = np.bincount(query, minlength=pools.queries)[query]
        chance = drawn / (size * (size - 1) / 2)
    moved = (wins - 0.5) / (chance * (size - 1))
    won, lost = (np.bincount(side, moved, pools.rows) for side in (low, high))
    value = np.asarray(0.5 + won - lost, dtype=np.float64)
    seen = np.bincount(np.concatenate([low, high]), minlength=pools.rows).astype(np.float64)
    kept = {name: column for name, column in pools.values.items() if not np.isnan(column).any()}
    return replace(pools, values={PREFERENCE: value} | kept, design={"pairs": seen})


def _rows(pools: ScoredPools, pairs: pa.Table, side: str, where: str) -> Ints:
    ids = pa.table({"query": pairs["query"], "candidate": pairs[side]})
    return row_of_id(pools, ids, where)
