"""A table with everything that selectors may read: scores, filters, support and answers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from toptail.audit.per_query import Judgement
from toptail.audit.population import population
from toptail.audit.run import check_values, judged_queries, judgement
from toptail.audit.settings import Settings
from toptail.errors import InputError, option
from toptail.io.files import read_arrays
from toptail.pools import ScoredPools
from toptail.pools.columns import Columns, is_list, listed
from toptail.pools.frames import as_table, plain
from toptail.pools.read import to_pools
from toptail.pools.stream import is_partitioned
from toptail.pools.table_files import holds_arrays
from toptail.select.given import ANSWER, answer_codes, read_whole
from toptail.select.measure import SelectorInputs
from toptail.stats.best_of_k import Floats

_HIDDEN: Final = "\x00"
"""Begins the names of columns that lie among the scores and are none."""


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """What is chosen from: pools that are large enough, with their values."""

    inputs: SelectorInputs
    """The pools with all columns."""
    judged: Judgement
    """What candidates are worth."""
    value: str
    """What the value is called."""
    filters: list[str]
    """Columns that may serve as filters."""
    k_max: int
    """The largest K that every pool allows."""
    warnings: list[str]
    """What was left out."""
    value_range: tuple[float, float] | None = None
    """The lowest and the highest value that there can be, where that is known."""


def read_options(
    data: Any,
    columns: Columns,
    *,
    filters: Sequence[str] = (),
    answer: str | None = None,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    settings: Settings | None = None,
    pools: ScoredPools | None = None,
) -> ChoiceData:
    """Read a table, and leave out pools that are too small as the audit does.

    ``settings`` say what to make of missing values; ``pools`` are those of the table where values
    were joined to it from elsewhere.
    """
    settings = settings or Settings()
    if settings.unjudged == "bounds":
        raise InputError(
            f"{option('unjudged', 'bounds')} leaves every selector two values, and a choice needs "
            "one; say what an unjudged candidate counts as, or with which chance each was chosen "
            f"for judging ({option('p_judged')})."
        )
    pools = to_pools(data, columns) if pools is None else pools
    if pools.support is not None:
        filters = [name for name in filters if name != "support"]  # it is one anyway
    extra = _filters(data, columns, pools, filters)
    codes = _answers(data, columns, pools, answer)
    asked = listed(columns.get("scores")) or []
    named = {*filters, *([] if codes is None else [answer or ANSWER])}
    scores = {n: c for n, c in pools.scores.items() if n not in named or n in asked}
    if not scores:
        raise InputError(
            f"{pools.source}: no score column is left beside {', '.join(sorted(named))}; name one "
            f"with {option('scores')}."
        )
    if codes is not None:
        extra[_HIDDEN + ANSWER] = codes
    judged, value = judgement(pools, values, listed(replicates), settings)
    hidden = {_HIDDEN + name: column for name, column in extra.items()}
    pools = replace(pools, scores={**scores, **hidden})
    pools, judged, told = judged_queries(pools, judged)
    check_values(pools, judged, settings)
    found = population(pools, judged, settings)
    kept = found.pools.scores
    columns_kept = {name: kept[_HIDDEN + name] for name in extra}
    if found.pools.support is not None:
        columns_kept["support"] = found.pools.support.astype(np.float64)
    numbered = columns_kept.pop(_HIDDEN + ANSWER, None)
    inputs = SelectorInputs(
        replace(found.pools, scores={name: kept[name] for name in scores}),
        columns_kept,
        None if numbered is None else numbered.astype(np.int64),
    )
    usable = [*filters, *(["support"] if found.pools.support is not None else [])]
    told = [*told, *found.warnings]
    known = settings.value_range or (
        (0.0, 1.0) if np.isin(found.judged.seen, (0.0, 1.0)).all() else None
    )
    return ChoiceData(inputs, found.judged, value, usable, found.k_max, told, known)


def _filters(
    data: Any, columns: Columns, pools: ScoredPools, filters: Sequence[str]
) -> dict[str, Floats]:
    """The columns named as filters ``[rows]``, in the order of the pools."""
    missing = [name for name in filters if name not in pools.scores]
    found = {name: pools.scores[name] for name in filters if name not in missing}
    if not missing:
        return found
    again = columns.copy()
    again.pop("unplayed", None)
    again["scores"] = missing
    return found | dict(to_pools(data, again).scores)


def _answers(data: Any, columns: Columns, pools: ScoredPools, answer: str | None) -> Floats | None:
    """Answers numbered ``[rows]``, in the order of the pools; None where there are none."""
    name = answer or ANSWER
    table = None if isinstance(data, ScoredPools) else _answer_table(data, columns, name)
    if table is None:
        if answer is not None:
            raise InputError(f"{pools.source}: there is no column '{answer}' to take answers from.")
        return None
    if isinstance(table, ScoredPools):
        return table.scores[ANSWER]
    column = plain(table[name])
    flat = column.flatten() if is_list(column.type) else column
    if flat.null_count:
        raise InputError(
            f"{pools.source}: column '{name}' has a missing answer; fill it in or drop the row."
        )
    code = pa.array(answer_codes(flat.to_pylist()).astype(np.float64))
    if is_list(column.type):
        lengths = np.asarray(column.value_lengths())
        code = pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(lengths)]), code)
    query = columns.get("query") or "query"
    made: dict[str, Any] = {ANSWER: code, "value": code}
    if query in table.column_names:
        made["query"] = table[query]
    again = ScoredPools.from_arrow(pa.table(made), source=pools.source, scores=ANSWER)
    return again.scores[ANSWER]


def _answer_table(data: Any, columns: Columns, name: str) -> pa.Table | ScoredPools | None:
    """The table's queries and answers; None where it has no such column."""
    query = columns.get("query") or "query"
    if isinstance(data, (str, os.PathLike)):
        arrays = not is_partitioned(data) and holds_arrays(Path(data))
        data = read_arrays(Path(data)) if arrays else read_whole(data, (query, name))
    if isinstance(data, Mapping) and any(getattr(a, "ndim", 1) == 2 for a in data.values()):
        if getattr(data.get(name), "ndim", 1) != 2:
            return None
        code = answer_codes(data[name]).astype(np.float64)
        return ScoredPools.from_arrays({ANSWER: code}, code, size=data.get("size"))
    table = as_table(data, "table")
    return table if name in table.column_names else None
