"""`ScoredPools` and `JudgedPicks` from files, folders, data frames and arrays."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from toptail.errors import InputError, option, refusing
from toptail.io.arrays import read_arrays
from toptail.io.partitioned import open_partitioned
from toptail.io.tables import (
    METADATA,
    check_exists,
    check_names,
    content_sha256,
    has_types,
    holds_arrays,
    is_partitioned,
    is_remote_file,
    joined_labels,
    local_copy,
    plain,
    read_schema,
    read_table,
    stored_roles,
)
from toptail.pools.columns import (
    DESIGN,
    MISSING_VALUE,
    RESERVED,
    Columns,
    Roles,
    as_list,
    check_present,
    choose,
    codes,
    column_names,
    columns_by_role,
    find_roles,
    first_repeat,
    first_row,
    flags,
    holds_numbers,
    is_list,
    missing_columns,
    missing_scores,
    mostly_numbers,
    numbers,
    other_names,
    query_parts,
    score_numbers,
)
from toptail.pools.scored import ScoredPools
from toptail.stats.best_of_k import Floats, Ints

UNUSABLE: Final = "cannot be used as a table"
COLUMNS: Final = "look at its columns"
_SMALL_FILE: Final = 1 << 26
"""Bytes above which the candidates' text is not read only to measure its length."""


def to_pools(
    data: Any, columns: Columns, *, stream: bool = False, mapped: Callable[..., Any] = map
) -> ScoredPools:
    """Pools from pools, the path of a file or folder, any data frame, columns, arrays or rows.

    A mapping that holds arrays of two dimensions is read as ``[queries, candidates]``, like an
    npz file; everything else is a table, see :func:`toptail.io.tables.as_table`. Of pools, only
    the scores can be chosen. A list of paths or frames is several tables, which
    :func:`toptail.pools.several_tables.several_tables` joins. ``-`` is standard input. A folder or
    an address holds partitioned Parquet; with ``stream``, a large one stays on disk, and ``mapped``
    applies functions to its segments.
    """
    if isinstance(data, ScoredPools):
        return _chosen(data, columns)
    if are_tables(data):
        from toptail.pools.several_tables import several_tables  # which imports this module

        return several_tables(data, columns)
    if isinstance(data, (str, os.PathLike)):
        if str(data) == "-" or is_remote_file(data):
            with local_copy(str(data)) as (path, where):
                return replace(read_pools(path, columns), source=where)
        if not is_partitioned(data):
            return ScoredPools.read(data, **columns)
        from toptail.pools.stream import partitioned_pools  # which imports this module

        with refusing(data, UNUSABLE, COLUMNS):
            return partitioned_pools(open_partitioned(data), columns, stream=stream, mapped=mapped)
    if isinstance(data, Mapping) and any(getattr(a, "ndim", 1) == 2 for a in data.values()):
        arrays = {str(name): np.asarray(array) for name, array in data.items()}
        return pools_from_arrays("arrays", arrays, columns)
    return ScoredPools.from_arrow(data, **columns)


def are_tables(data: Any) -> bool:
    """Whether data are a list of paths or data frames, not one table."""
    return (
        isinstance(data, (list, tuple))
        and len(data) > 0
        and all(
            isinstance(each, (str, os.PathLike, ScoredPools))
            or hasattr(each, "__arrow_c_stream__")
            or hasattr(each, "column_names")
            for each in data
        )
    )


def _chosen(pools: ScoredPools, columns: Columns) -> ScoredPools:
    besides = ("scores", "values", "further", "missing_values", "missing")
    check_unnamed(pools.source, "pools", columns, besides=besides)
    scores = as_list(columns.get("scores"))
    if scores is None:
        return pools
    chosen = choose(pools.source, scores, list(pools.scores), "score")
    left = [n for n in columns.get("further", ()) if n in pools.scores and n not in chosen]
    return replace(
        pools,
        scores={name: pools.scores[name] for name in chosen},
        further={**pools.further, **{name: pa.array(pools.scores[name]) for name in left}},
    )


def check_unnamed(
    where: str, what: str, columns: Mapping[str, object], besides: tuple[str, ...] = ()
) -> None:
    """Raise :class:`InputError` where columns are named although the data are no table."""
    for part, name in columns.items():
        if name is not None and part not in besides:
            raise InputError(
                f"{where}: {option(part, name)} names a column of a table, and these are "
                f"{what}; name it where they are made from the table."
            )


_LAST_WORDS: Final = {
    "an index": (
        *("index", "idx", "rank", "position", "pos", "row", "sample", "attempt"),
        *("step", "epoch", "iteration"),
    ),
    "a length": ("len", "length", "lengths", "tokens", "chars", "characters", "words"),
    "a count": ("count", "counts"),
    "a seed": ("seed", "seeds"),
    "an id": ("id", "ids", "uid", "uuid", "qid", "timestamp"),
    "an answer": (
        *("answer", "answers", "response", "responses"),
        *("completion", "completions", "solution", "solutions"),
    ),
}
_FIRST_WORDS: Final = {"a count": ("n", "num"), "a length": ("len",)}
"""Only before one more word: ``n_gram_score`` and ``length_normalized`` may be scores."""
_OUTPUTS: Final = ("output", "outputs", "generation")
_LEAST_ROWS: Final = 10
"""With fewer rows, whole numbers that are in order or all different are no evidence."""


def not_scores_by_look(roles: Roles, texts: Collection[str]) -> dict[str, str]:
    """Reasons why columns were not taken as scores, by column: their name or their type.

    ``texts`` are columns with the type text in the file, although they hold numbers. Empty where
    the caller named the scores.
    """
    if not roles.guessed:
        return {}
    as_text = dict.fromkeys(texts, "text, though most entries are numbers")
    return {
        name: why for name, why in as_text.items() if name in roles.scores
    } | not_scores_by_name(roles.scores)


def not_scores_by_name(names: Iterable[str]) -> dict[str, str]:
    """Reasons why columns were not taken as scores, for those whose names say so."""
    looks = {name: _name_of(name) for name in names}
    return {name: f"named like {look}" for name, look in looks.items() if look}


def _name_of(name: str) -> str | None:
    """What a column of this name usually holds, such as "an index"; None for a score's name."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()
    if not text or re.fullmatch(r"unnamed: \d+|level_\d+|i", text):
        return "an index"  # as pandas writes one
    words = [word for word in re.split(r"[^a-z0-9]+", text) if word] or [""]
    for look, last in _LAST_WORDS.items():
        if words[-1] in last:
            return look
    for look, initial in _FIRST_WORDS.items():
        if words[0] in initial and len(words) == 2:
            return look
    return None


def length_column(names: Iterable[tuple[str, pa.DataType]]) -> str | None:
    """The column with the candidates' lengths: numbers called so, else the candidates' text."""
    numbers, texts = [], []
    for name, kind in names:
        look = _name_of(name)
        if look == "a length" and holds_numbers(kind) and not is_list(kind):
            numbers.append(name)
        if (look == "an answer" or name.lower() in _OUTPUTS) and _is_text(kind):
            texts.append(name)
    return next(iter([*numbers, *texts]), None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def not_a_score(column: NDArray[np.generic], query: Ints, queries: int) -> str | None:
    """Why a column of numbers is no score, such as a counter; None where it may be one.

    ``column [rows]`` is in the order of the table, ``query [rows]`` numbers the queries.
    """
    if column.dtype.kind not in "iu" or column.size < _LEAST_ROWS:
        return None
    if _counts_on(column):
        return "whole numbers in the order of the rows"
    head = column[:1_000]  # most columns repeat themselves early, and sorting all of one is slow
    if np.unique(head).size == head.size and np.unique(column).size == column.size:
        return "whole numbers that are all different"
    sizes = np.bincount(query, minlength=queries)
    order = np.argsort(query, kind="stable")
    place = np.arange(column.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    start = column[order[0]]
    if sizes.max() > 2 and start in (0, 1) and np.array_equal(column[order], place + start):
        return "whole numbers in the order of each query's rows"
    return None


def _counts_on(column: NDArray[np.generic]) -> bool:
    return column[0] in (0, 1) and np.array_equal(column, np.arange(column.size) + column[0])


def without_skipped(where: str, roles: Roles, skipped: dict[str, str]) -> Roles:
    """The roles without skipped columns; an :class:`InputError` where no score is left."""
    scores = [name for name in roles.scores if name not in skipped]
    if not scores:
        name, why = next(iter(skipped.items()))
        raise InputError(
            f"{where}: no score column; '{name}' ({why}) was left out, name it with "
            f"{option('scores')} if it is one."
        )
    return roles._replace(scores=scores)


def check_design(where: str, name: str, design: Mapping[str, Floats]) -> None:
    """Raise :class:`InputError` where a chance is not in (0, 1]; NaN (not judged) is allowed."""
    for part in ("p_judged", "p_whole"):
        column = design.get(part, np.empty(0))
        bad = (column <= 0) | (column > 1) if part == "p_judged" else (column < 0) | (column > 1)
        if bad.any():
            at = first_row(bad)
            raise InputError(
                f"{where}: column '{name if part == 'p_judged' else part}' holds "
                f"{column[at - 1]:g} in row {at}; a chance lies above 0 and is at most 1, since "
                "nothing is known of candidates that could not be chosen."
            )


def read_pools(path: Path, columns: Columns) -> ScoredPools:
    """Read a file of any known type, or a log, into :class:`ScoredPools`."""
    check_exists(path)
    with refusing(path, UNUSABLE, COLUMNS):
        where = str(path)
        if holds_arrays(path):
            pools = pools_from_arrays(where, read_arrays(path), columns)
        else:
            table = read_table(path, _needed(path, columns))
            pools = pools_from_table(table, where, columns, typed=has_types(path))
        return replace(pools, sha256=content_sha256(path))


def _needed(path: Path, columns: Columns) -> list[str] | None:
    """The columns to read from a Parquet file; None (all) for other formats."""
    schema = read_schema(path)
    if schema is None or len(set(schema.names)) < len(schema.names):
        return None
    table, columns = join_query(str(path), schema.empty_table(), parts := columns)
    names = column_names(str(path), table.column_names, columns)
    roles = roles_of(str(path), renamed(table, names).schema, columns)
    used = (*roles.scores, *roles.values, *roles.further, *RESERVED, *DESIGN)
    wanted = {names[name] for name in used if name in names} | {*query_parts(parts)}
    if path.stat().st_size <= _SMALL_FILE and (length := length_of(schema, roles)):
        wanted.add(length)
    return [name for name in schema.names if name in wanted]


def join_query(where: str, table: pa.Table, columns: Columns) -> tuple[pa.Table, Columns]:
    """The table with one column ``a,b`` in place of the columns that make a query together.

    A part that has another role, such as the group, stays.
    """
    query = columns.get("query")
    if query is None or isinstance(query, str):
        return table, columns
    parts = query_parts(columns) or tuple(query[:1])
    name = ",".join(parts)
    joined: Columns = {**columns, "query": name or None}
    if len(parts) < 2 or name in table.column_names:
        return table, joined
    columns_by_role(where, table.column_names, {f"part of {option('query')}": p for p in parts})
    roles = {role: columns.get(role) for role in RESERVED if role != "query"}
    other = {named or role for role, named in roles.items()}
    other |= {*(as_list(columns.get("scores")) or ()), *(as_list(columns.get("values")) or ())}
    other |= {*columns.get("further", ())}
    labels = joined_labels(where, {part: table[part] for part in parts})
    metadata = table.schema.metadata
    table = table.drop_columns([part for part in parts if part not in other])
    return table.append_column(name, labels).replace_schema_metadata(metadata), joined


def renamed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The table with the new names of :func:`toptail.pools.columns.column_names`."""
    result = table.select(list(names.values())).rename_columns(list(names))
    return result.replace_schema_metadata(table.schema.metadata)


def table_names(columns: Columns) -> dict[str, str]:
    """Role -> column, for the roles whose column has another name."""
    return other_names({part: columns.get(part) for part in RESERVED})


def roles_of(
    where: str, schema: pa.Schema, columns: Columns, as_numbers: frozenset[str] = frozenset()
) -> Roles:
    """Find scores and values; ``as_numbers`` are text columns that hold numbers."""
    numeric = {f.name: holds_numbers(f.type) or f.name in as_numbers for f in schema}
    long = not any(is_list(field.type) for field in schema)
    return _find(where, numeric, columns, (schema.metadata or {}).get(METADATA), needs_query=long)


def _find(
    where: str,
    numeric: dict[str, bool],
    columns: Columns,
    metadata: bytes | str | None,
    *,
    needs_query: bool = False,
) -> Roles:
    """The roles that the caller names, else those in the metadata, else those found by name."""
    stored = stored_roles(where, metadata)
    scores, values = as_list(columns.get("scores")), as_list(columns.get("values"))
    roles = find_roles(
        *(where, numeric, scores or stored.get("scores"), values or stored.get("values")),
        missing_values=columns.get("missing_values", False),
        own=table_names(columns),
        needs_query=needs_query,
    )
    further = dict.fromkeys((*columns.get("further", ()), *stored.get("further", ())))
    return roles._replace(further=tuple(name for name in further if name in numeric))


def pools_from_table(
    table: pa.Table, where: str, columns: Columns, *, typed: bool = True
) -> ScoredPools:
    """A long table, or one with a list per query, as :class:`ScoredPools`.

    A text column of numbers is text in a ``typed`` table; in a CSV, it is a score with a typo.
    """
    check_names(where, table.column_names)
    table, columns = join_query(where, table, columns)
    own = TableNames(table_names(columns))
    table = renamed(table, column_names(where, table.column_names, columns))
    if table.num_rows == 0:
        raise InputError(f"{where}: the table has no rows.")
    texts = frozenset(n for n in table.column_names if mostly_numbers(table[n]))
    roles = roles_of(where, table.schema, columns, texts)
    skipped = not_scores_by_look(roles, texts if typed else ())
    roles = without_skipped(where, roles, skipped)
    lists = [n for n in (*roles.scores, *roles.values) if is_list(table.schema.field(n).type)]
    if lists:
        table = one_row_per_candidate(table, roles, where, own)
    else:
        check_query(where, table.column_names, own)
    data = {name: plain(table[name]) for name in table.column_names}
    query_code, query = codes(where, own["query"], data["query"])
    if roles.guessed:
        skipped |= _by_content({n: data[n] for n in roles.scores}, query_code, len(query))
        roles = without_skipped(where, roles, skipped)
    # Columns are checked in the order of the file, so that errors name its rows.
    gaps = missing_scores(where, {name: data[name] for name in roles.scores}, columns)
    read = [name for name in roles.scores if name not in gaps.left_out]
    scores = {name: score_numbers(where, name, data[name]) for name in read}
    missing = "" if columns.get("missing_values") or "p_judged" in data else MISSING_VALUE
    values = {name: numbers(where, name, data[name], missing=missing) for name in roles.values}
    values = values or {"value": np.full(table.num_rows, np.nan)}
    length = None if lists else length_of(table.schema, roles)
    design = {
        name: numbers(where, own[name], data[name], missing="")
        for name in DESIGN
        if name in data and "p_judged" in data
    }
    check_design(where, own["p_judged"], design)
    support = None
    if "support" in data and "support" not in (*roles.scores, *roles.further):
        support = flags(where, own["support"], data["support"])
    further = {name: check_present(where, name, data[name]) for name in roles.further}
    candidate = data.get("candidate")
    if candidate is not None:
        check_unique(where, own["candidate"], query_code, candidate)
    per_query = {
        name: per_query_labels(where, name, own, data[name], query_code, len(query))
        for name in ("cluster", "group")
        if name in data
    }
    order: slice | Ints = slice(None)
    if (np.diff(query_code) < 0).any():
        order = np.argsort(query_code, kind="stable")
        candidate = None if candidate is None else candidate.take(pa.array(order))
        further = {name: column.take(pa.array(order)) for name, column in further.items()}
    counts = np.bincount(query_code, minlength=len(query))
    pools = ScoredPools(
        query=query,
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        scores={name: column[order] for name, column in scores.items()},
        values={name: column[order] for name, column in values.items()},
        design={name: column[order] for name, column in design.items()},
        support=None if support is None else support[order],
        lengths={} if length is None else {length: _lengths(data[length])[order]},
        further=further,
        candidate=candidate,
        cluster=per_query.get("cluster"),
        group=per_query.get("group"),
        source=where,
        called=dict(own),
        skipped=skipped,
        notes=gaps.notes,
    )
    return pools if gaps.drop is None else pools.keep(~gaps.drop[order])


def length_of(schema: pa.Schema, roles: Roles) -> str | None:
    """The column with the candidates' lengths, if it is no value."""
    return length_column((f.name, f.type) for f in schema if f.name not in roles.values)


def _lengths(column: pa.Array) -> Floats:
    counts = column if holds_numbers(column.type) else pc.utf8_length(column)
    return np.asarray(counts.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def check_query(where: str, names: list[str], own: TableNames) -> None:
    if "query" not in names:
        raise InputError(f"{where}: {missing_columns(('query',), [own[name] for name in names])}.")


class TableNames(dict[str, str]):
    """Role (``query``, ``group``, ...) -> the table's name for it; others map to themselves."""

    def __missing__(self, name: str) -> str:
        return name


def _by_content(columns: Mapping[str, pa.Array], query: Ints, queries: int) -> dict[str, str]:
    """Reasons why columns of whole numbers were not taken as scores, by column."""
    whole = {n: c.to_numpy() for n, c in columns.items() if _is_whole(c)}
    found = {name: not_a_score(column, query, queries) for name, column in whole.items()}
    return {name: why for name, why in found.items() if why}


def _is_whole(column: pa.Array) -> bool:
    return bool(pa.types.is_integer(column.type)) and not column.null_count


def one_row_per_candidate(
    table: pa.Table, roles: Roles, where: str, own: TableNames, start: int = 0
) -> pa.Table:
    """Turn one row with lists per query into one row per candidate.

    Queries without labels are numbered from ``start``, the first row of a piece of a table.
    """
    data = [*roles.scores, *roles.values]
    lists = {
        name: plain(table[name])
        for name in (*data, *roles.further, *RESERVED, *DESIGN[1:])
        if name in table.column_names and is_list(table.schema.field(name).type)
    }
    first_list = own[next(iter(lists))]
    scalar = next((name for name in data if name not in lists), None)
    if scalar is not None:
        raise InputError(
            f"{where}: '{first_list}' holds one list per row but '{scalar}' does not; "
            "score and value columns must all be lists, or none."
        )
    lengths = None
    for name, array in lists.items():
        if array.null_count:
            raise InputError(
                f"{where}: the list '{own[name]}' is missing in row {first_row(array.is_null())}."
            )
        length = np.asarray(pc.list_value_length(array)).astype(np.int64)
        if lengths is not None and not np.array_equal(length, lengths):
            at = first_row(length != lengths)
            raise InputError(
                f"{where}: in row {at} the list '{own[name]}' has {length[at - 1]} entries "
                f"but '{first_list}' has {lengths[at - 1]}."
            )
        lengths = length
    assert lengths is not None
    if (lengths == 0).any():
        raise InputError(
            f"{where}: the lists in row {first_row(lengths == 0)} are empty; drop the row."
        )
    parent = pa.array(np.repeat(np.arange(table.num_rows), lengths))
    if "query" not in table.column_names:
        table = table.append_column("query", pa.array(np.arange(table.num_rows) + start))
    query = plain(table["query"])
    if len(query.unique()) != len(query):
        raise InputError(f"{where}: '{own['query']}' names the same query in two rows of lists.")
    columns = {
        name: lists[name].flatten() if name in lists else plain(table[name]).take(parent)
        for name in table.column_names
        if name in lists or name in (*roles.further, *RESERVED, *DESIGN)
    }
    return pa.table(columns)


def check_unique(where: str, name: str, query_code: Ints, candidate: pa.Array) -> None:
    """Raise :class:`InputError` where two rows have the same (query, candidate)."""
    candidate_code, labels = codes(where, name, candidate)
    at = first_repeat(query_code * len(labels) + candidate_code)
    if at is not None:
        raise InputError(
            f"{where}: row {at + 1} repeats candidate '{candidate[at]}' of a query that already "
            "has it; each (query, candidate) may appear once."
        )


def per_query_labels(
    where: str, part: str, own: Mapping[str, str], column: pa.Array, query_code: Ints, queries: int
) -> pa.Array:
    """The label of each query, which must be the same in all of its rows."""
    code, _ = codes(where, own[part], column)
    first = np.full(queries, -1, dtype=np.int64)
    first[query_code[::-1]] = np.arange(code.size - 1, -1, -1)
    differs = code != code[first][query_code]
    check_same_label(where, part, own, differs)
    return column.take(pa.array(first))


def check_same_label(
    where: str, part: str, own: Mapping[str, str], differs: NDArray[np.bool_]
) -> None:
    """Raise :class:`InputError` where a row differs from the label of its query's first row."""
    if not differs.any():
        return
    name, query = own[part], own["query"]
    both = option("query", (name, *query.split(",")))
    drop = f"leave out {option(part)}" if name != part else f"rename '{name}'"
    raise InputError(
        f"{where}: column '{name}' must be the same for all candidates of a query, but changes in "
        f"row {first_row(differs)}. If each {name} has its own pool at the same {query}, make a "
        f"query of both with {both} and {option('cluster', query)}; or {drop}."
    )


def _dense_flags(
    where: str, columns: Columns, dense: Mapping[str, NDArray[Any]], roles: Roles
) -> NDArray[np.bool_] | None:
    if "support" not in dense or "support" in (*roles.scores, *roles.further):
        return None
    array, name = dense["support"], TableNames(table_names(columns))["support"]
    return flags(where, name, pa.array(array.reshape(-1))).reshape(array.shape)


def pools_from_arrays(
    where: str, arrays: Mapping[str, NDArray[Any]], columns: Columns
) -> ScoredPools:
    """Pools from named arrays: 2-D ones are columns, with the naming rules of tables."""
    stored = "".join(map(str, arrays["toptail"].reshape(-1))) if "toptail" in arrays else None
    present = [name for name in arrays if name != "toptail"]
    named = {new: arrays[old] for new, old in column_names(where, present, columns).items()}
    dense = {name: a for name, a in named.items() if a.ndim == 2}
    numeric = {name: a.dtype.kind in "fiu" for name, a in dense.items()}
    roles = _find(where, numeric, columns, stored)
    skipped = {}
    if roles.guessed:
        skipped = not_scores_by_name(roles.scores)
        for name in (name for name in roles.scores if name not in skipped):
            m, n = dense[name].shape
            why = not_a_score(dense[name].reshape(-1), np.repeat(np.arange(m), n), m)
            skipped |= {name: why} if why else {}
        roles = without_skipped(where, roles, skipped)
    scores, values = ({n: dense[n] for n in names} for names in (roles.scores, roles.values))
    gaps = missing_scores(where, _entries(scores, named.get("size")), columns, "entry")
    scores = {n: _lowest(scores[n]) for n in scores if n not in gaps.left_out}
    pools = ScoredPools.from_arrays(
        scores,
        values or {"value": np.full(next(iter(scores.values())).shape, np.nan)},
        support=_dense_flags(where, columns, dense, roles),
        design={name: dense[name] for name in DESIGN if {name, "p_judged"} <= set(dense)},
        further={name: dense[name] for name in roles.further},
        missing_values=columns.get("missing_values", False),
        query=named.get("query"),
        cluster=named.get("cluster"),
        group=named.get("group"),
        size=named.get("size"),
        source=where,
        called=table_names(columns),
    )
    check_design(where, pools.called.get("p_judged", "p_judged"), pools.design)
    pools = replace(pools, skipped=skipped, notes=gaps.notes)
    return pools if gaps.drop is None else pools.keep(~gaps.drop)


def _entries(scores: Mapping[str, NDArray[Any]], size: NDArray[Any] | None) -> dict[str, pa.Array]:
    """The entries of arrays that count, as columns; arrays of text are refused elsewhere."""
    found = {}
    for name, array in scores.items():
        fits = size is not None and size.shape == array.shape[:1]
        keep = np.arange(array.shape[1]) < size[:, None] if fits and size is not None else ...
        found[name] = pa.array(array[keep].reshape(-1))
    return found


def _lowest(array: NDArray[Any]) -> NDArray[Any]:
    """The array with -inf in place of NaN."""
    return np.where(np.isnan(array), -np.inf, array) if array.dtype.kind == "f" else array
