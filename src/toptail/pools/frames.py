"""Tables of other libraries, none of which is needed: whatever speaks one of their protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from toptail.errors import InputError
from toptail.io.guard import brief

_SPEAKS_ARROW = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")


def as_table(data: Any, where: str) -> pa.Table:
    """A table of any kind as an Arrow table.

    Whatever speaks Arrow (pyarrow, pandas, polars, DuckDB, ...), a lazy frame, a data set of
    Hugging Face, a mapping of columns, or a list of rows as dictionaries.
    """
    try:
        table = _table(data)
    except (InputError, MemoryError, NameError):
        raise
    except Exception as error:  # of whichever library the data are of
        raise InputError(
            f"{where}: cannot be read as a table ({type(data).__name__}: {brief(error)}); give a "
            "data frame, a mapping of columns, a list of rows or the path of a file."
        ) from None
    # What pandas makes of an index without a name is no column of the user's.
    return table.drop_columns(
        [name for name in table.column_names if name.startswith("__index_level_")]
    )


def plain(column: pa.ChunkedArray) -> pa.Array:
    """A table's column as one array of a type that can be taken from: no categories, no views.

    Those are what polars and pandas make of text.
    """
    pieces = [_plain(piece) for piece in column.chunks]
    if len(pieces) == 1:
        return pieces[0]  # not copied
    return pa.concat_arrays(pieces) if pieces else pa.array([], column.type)


def _plain(piece: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(piece.type):
        return _plain(piece.dictionary).take(piece.indices)
    return piece.cast(pa.large_string()) if pa.types.is_string_view(piece.type) else piece


def _table(data: Any) -> pa.Table:
    if any(hasattr(data, name) for name in _SPEAKS_ARROW):
        return pa.table(data)
    if callable(getattr(data, "collect", None)):  # a lazy frame of polars
        return _table(data.collect())
    if isinstance(data, Mapping):
        return pa.table({name: _column(column) for name, column in data.items()})
    if callable(getattr(data, "with_format", None)):
        # Not the data set's stored table: that one does not know which rows were selected.
        return _table(data.with_format("arrow")[:])
    rows = isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data)
    if rows and not isinstance(data, str):
        names = dict.fromkeys(name for row in data for name in row)
        return pa.table({name: [row.get(name) for row in data] for name in names})
    return pa.table(data)


def _column(column: Any) -> Any:
    """A column that pyarrow can read: arrays of other libraries become NumPy's."""
    if hasattr(column, "column_names"):  # as in a dictionary of splits
        raise TypeError("it holds several tables, of which one is needed")
    plain = hasattr(column, "__array__") and not any(hasattr(column, n) for n in _SPEAKS_ARROW)
    return np.asarray(column) if plain else column
