"""Tables: files of many formats and data frames of many libraries, as Arrow tables."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq

from toptail.errors import InputError, brief, refusing
from toptail.io.files import check_memory, check_readable, sha256

FORMATS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
}
_DELIMITERS: Final = {"csv": ",", "tsv": "\t"}
"""Column separators of files that are written; of a file that is read, its first line decides."""
_TITLES: Final = {
    "parquet": "Parquet",
    "csv": "CSV",
    "tsv": "CSV",
    "jsonl": "JSON Lines",
    "json": "JSON",
    "arrow": "Arrow",
}
_TEXT_FORMATS: Final = ("csv", "tsv", "jsonl", "json")
_PIECE: Final = 1 << 24
_NULL_LINE: Final = re.compile(rb"\n[ \t\r]*null")
METADATA: Final = b"toptail"
"""Key of a table's metadata that holds the roles of its columns, as JSON."""
STATE: Final = "state.json"
INFO: Final = "dataset_info.json"
SPLITS: Final = "dataset_dict.json"
_ARROW_PROTOCOLS: Final = ("__arrow_c_stream__", "__arrow_c_array__", "__arrow_array__")


def file_format(path: Path) -> str:
    """The format that the file's name states; text formats may be packed (``scores.csv.gz``)."""
    packed = path.suffix.lower() == ".gz"
    ending = (Path(path.stem).suffix + path.suffix) if packed else path.suffix
    known = FORMATS.get(ending.lower().removesuffix(".gz"))
    if known is None or (packed and known not in _TEXT_FORMATS):
        endings = ", ".join(FORMATS)
        raise InputError(
            f"{path}: unknown file type '{ending}'; expected one of {endings}, or of those made "
            "of text with .gz behind."
        )
    return known


def is_log(path: Path) -> bool:
    """Whether a path is a log by its name: Inspect's ``.eval``, or a Hugging Face data set."""
    if path.is_dir():
        return any((path / name).is_file() for name in (STATE, INFO, SPLITS))
    return path.suffix.lower() == ".eval" and path.is_file()


def is_partitioned(path: str | PathLike[str]) -> bool:
    """Whether a path is an address, or a folder that is no log of another tool."""
    return "://" in str(path) or (Path(path).is_dir() and not is_log(Path(path)))


def is_remote_file(path: object) -> bool:
    """Whether a path is the address of a file of a known type that is no Parquet."""
    known = FORMATS.get(Path(str(path).removesuffix(".gz")).suffix.lower(), "parquet")
    return "://" in str(path) and (known != "parquet" or str(path).endswith(".eval"))


@contextmanager
def local_copy(source: str) -> Iterator[tuple[Path, str]]:
    """A temporary file with the content of standard input (``-``) or of an address.

    Yields its path, and the name for records, which errors have, too.
    """
    content, name = _standard_input() if source == "-" else _fetched(source)
    where = "standard input" if source == "-" else source
    if not content.strip():
        raise InputError(f"{where} is empty; expected a table in JSON Lines or CSV.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        try:
            yield path, where
        except InputError as error:
            raise InputError(str(error).replace(str(path), where)) from None


def _standard_input() -> tuple[bytes, str]:
    """The bytes of standard input, and a file name whose ending says their format."""
    content = sys.stdin.buffer.read()
    text = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    starts = {b"PAR1": "parquet", b"ARROW1": "arrow", b"{": "jsonl", b"[": "json"}
    found = [kind for start, kind in starts.items() if text.startswith(start)]
    kind = found[0] if found else "csv"
    if kind == "jsonl" and _is_one_object(text):
        kind = "json"
    return content, f"input.{kind}"


def _is_one_object(text: bytes) -> bool:
    """Whether a text is one JSON object, over several lines or as columns, not one a line."""
    try:
        first = json.loads(text.partition(b"\n")[0])
    except ValueError:
        return True
    return b"\n" not in text.strip() and any(isinstance(x, (list, dict)) for x in first.values())


def _fetched(address: str) -> tuple[bytes, str]:
    with refusing(address, "cannot be read", remote_advice(address)):
        import fsspec

        with fsspec.open(address, "rb") as stream:
            return bytes(stream.read()), Path(address).name


def remote_advice(address: str) -> str:
    """What to do where an address cannot be read."""
    if not address.startswith("hf://"):
        return "give a file, a folder of Parquet files, or its address that fsspec can read"
    name = "/".join(address.removeprefix("hf://").removeprefix("datasets/").split("/")[:2])
    return (
        f"download it (hf download {name} --repo-type dataset --local-dir FOLDER) and give the "
        "folder with its Parquet files, or install huggingface_hub"
    )


def joined_labels(where: str, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> pa.Array:
    """One label a row of several columns, ``a/b``; different rows have different labels."""
    texts = []
    for name, column in columns.items():
        if column.null_count or pa.types.is_nested(column.type):
            row = int(np.argmax(np.asarray(column.is_null()))) + 1
            raise InputError(
                f"{where}: column '{name}' must hold one text or number per row to be a part of "
                f"the query, and row {row} does not."
            )
        whole = plain(column) if isinstance(column, pa.ChunkedArray) else column
        text = whole.cast(pa.large_string())
        for mark in ("\\", "/"):
            text = pc.replace_substring(text, mark, "\\" + mark)
        texts.append(text)
    return pc.binary_join_element_wise(*texts, pa.scalar("/", pa.large_string()))


def check_exists(path: Path) -> None:
    """Raise :class:`InputError` unless ``path`` is a file or a log that can be read."""
    if not is_log(path):
        check_readable(path)


def holds_arrays(path: Path) -> bool:
    """Whether a file holds named arrays (npz) and no table."""
    return not is_log(path) and file_format(path) == "npz"


def has_types(path: Path) -> bool:
    """Whether a file records the types of its columns; a CSV does not."""
    return is_log(path) or file_format(path) not in _DELIMITERS


def content_sha256(path: Path) -> str:
    """Content hash of a file; of a log in several files, a hash over their hashes."""
    from toptail.io import logs  # which imports this module

    hashes = [sha256(file) for file in (logs.log_files(path) if is_log(path) else [path])]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def read_schema(path: Path) -> pa.Schema | None:
    """Column names and types of a Parquet file; None for other formats."""
    if is_log(path) or file_format(path) != "parquet":
        return None
    with refusing(path, "is not a readable Parquet file"):
        return pq.read_schema(path)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a table (not npz) or a log; ``columns`` limits what is read from Parquet.

    A file that is missing, empty, truncated, or of another type than its name says is refused.
    """
    from toptail.io import logs  # which imports this module

    check_exists(path)
    if is_log(path):
        return logs.read_log(path)
    kind = file_format(path)
    if kind == "npz":
        raise InputError(f"{path}: a .npz file holds arrays, not a table.")
    with refusing(path, f"is not a readable {_TITLES[kind]} file"):
        if kind == "parquet":
            table = _read_parquet(path, columns)
        elif kind == "arrow":
            table = pa.feather.read_table(path, memory_map=False)
            table.validate(full=True)  # wrong offsets inside a column would crash the process later
        elif kind == "jsonl":
            log = logs.log_of_lines(path)
            table = _read_jsonl(path) if log is None else log
        elif kind == "json":
            table = _read_json(path, logs.log_of_json)
        else:
            parse = pa.csv.ParseOptions(delimiter=_separator(path, _DELIMITERS[kind]))
            table = pa.csv.read_csv(path, parse_options=parse)
        check_names(str(path), table.column_names)
    return table


def check_names(where: str, names: list[str]) -> None:
    """Raise :class:`InputError` where two columns share a name."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"{where}: the column '{twice}' appears twice; give each its own name.")


def _read_parquet(path: Path, columns: list[str] | None) -> pa.Table:
    # One file, never a folder of them; ParquetFile also keeps duplicate column names.
    file = pq.ParquetFile(path, memory_map=True)
    width = file.metadata.num_columns if columns is None else len(columns)
    check_memory(path, 8 * width * file.metadata.num_rows)
    check_names(str(path), file.schema_arrow.names)
    return file.read(columns=columns)


def _separator(path: Path, usual: str) -> str:
    """The most frequent of comma, semicolon and tab in the first line."""
    with pa.input_stream(str(path)) as file:  # unpacks by the name's ending
        head = file.read(1 << 16).decode("utf-8", "replace").lstrip("\ufeff\r\n")
    names = re.split(r"[\r\n]", re.sub(r'"[^"]*"', "", head.replace('""', "")), maxsplit=1)[0]
    return max((usual, ",", ";", "\t"), key=names.count)


def _read_json(path: Path, as_log: Callable[[Any, str], pa.Table | None]) -> pa.Table:
    """A list of rows (objects), or an object of columns (lists, or objects as pandas writes)."""
    with pa.input_stream(str(path)) as file:
        text = file.read().decode("utf-8-sig")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object after the other: JSON Lines by another name
            return _read_jsonl(path)
        raise
    if (log := as_log(data, str(path))) is not None:
        return log
    if isinstance(data, dict) and all(isinstance(column, dict) for column in data.values()):
        rows = [list(column) for column in data.values()]
        if any(names != rows[0] for names in rows):
            raise InputError(f"{path}: the columns of the JSON object do not name the same rows.")
        data = {name: list(column.values()) for name, column in data.items()}
    if not isinstance(data, list | dict):
        raise InputError(
            f"{path}: the JSON holds no table; expected a list of objects, or an object of columns."
        )
    return as_table(data, str(path))


def _read_jsonl(path: Path, block: int = 1 << 24) -> pa.Table:
    _check_lines(path)
    try:
        return pa.json.read_json(path, read_options=pa.json.ReadOptions(block_size=block))
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
        # A row longer than a block cannot be read: the second try takes the file as one block.
        with pa.input_stream(str(path)) as file:
            whole = min(len(file.read()) + 1, (1 << 31) - 1)
        if whole <= block:
            raise
        return _read_jsonl(path, whole)


def _check_lines(path: Path) -> None:
    """Refuse lines that are no objects: pyarrow crashes on a block whose first line is null."""
    begun, before = False, b"\n"
    with pa.input_stream(str(path)) as file:
        while piece := file.read(_PIECE):
            text = before + (piece if begun else piece.removeprefix(b"\xef\xbb\xbf"))
            first = b"" if begun else text.lstrip()[:1]
            if first not in (b"", b"{") or _NULL_LINE.search(text):
                raise InputError(
                    f"{path}: not a JSON Lines file; expected one object on each line."
                )
            begun = begun or bool(first)
            last = text[text.rfind(b"\n") + 1 :].lstrip()  # of a line that may go on
            before = b"\n" + last if len(last) < len(b"null") else b""


def write_table(table: pa.Table, target: Path, kind: str) -> None:
    """Write a table in one of the formats of `FORMATS` other than npz."""
    if kind == "parquet":
        pq.write_table(table, target)
    elif kind == "arrow":
        pa.feather.write_feather(table, target)
    else:
        with pa.output_stream(str(target)) as file:  # packs by the name's ending
            _write_text(table, file, kind)


def _write_text(table: pa.Table, file: pa.NativeFile, kind: str) -> None:
    if kind in _DELIMITERS:
        options = pa.csv.WriteOptions(delimiter=_DELIMITERS[kind])
        pa.csv.write_csv(table, file, write_options=options)
    elif kind == "json":
        file.write(json.dumps(table.to_pylist()).encode() + b"\n")
    else:
        for batch in table.to_batches(max_chunksize=1 << 16):
            lines = (json.dumps(row) + "\n" for row in batch.to_pylist())
            file.write("".join(lines).encode())


def as_table(data: Any, where: str) -> pa.Table:
    """A table of any kind as an Arrow table.

    ``data`` is a data frame with the Arrow protocol (pyarrow, pandas, polars, DuckDB, ...), a lazy
    frame, a Hugging Face data set, a mapping of columns, or a list of rows as dictionaries.
    """
    try:
        table = _table(data)
    except (InputError, MemoryError, NameError):
        raise
    except Exception as error:  # of the library that the data come from
        raise InputError(
            f"{where}: cannot be read as a table ({type(data).__name__}: {brief(error)}); give a "
            "data frame, a mapping of columns, a list of rows or the path of a file."
        ) from None
    # pandas writes an index without a name as such a column.
    return table.drop_columns(
        [name for name in table.column_names if name.startswith("__index_level_")]
    )


def _table(data: Any) -> pa.Table:
    if any(hasattr(data, name) for name in _ARROW_PROTOCOLS):
        return pa.table(data)
    if callable(getattr(data, "collect", None)):  # a lazy frame of polars
        return _table(data.collect())
    for name in ("to_arrow_table", "fetch_arrow_table"):  # a query that DuckDB has run, new and old
        if callable(getattr(data, name, None)):
            return getattr(data, name)()
    if isinstance(data, Mapping):
        return pa.table({name: _column(column) for name, column in data.items()})
    if callable(getattr(data, "with_format", None)):
        # Not the data set's stored table, which does not know which rows were selected.
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
    foreign = hasattr(column, "__array__") and not any(hasattr(column, n) for n in _ARROW_PROTOCOLS)
    return np.asarray(column) if foreign else column


def roles_text(scores: Iterable[str], values: Iterable[str], further: Iterable[str] = ()) -> str:
    roles = {"scores": list(scores), "values": list(values), "further": list(further)}
    return json.dumps({role: names for role, names in roles.items() if names or role != "further"})


def with_roles(
    table: pa.Table, scores: Iterable[str], values: Iterable[str], further: Iterable[str] = ()
) -> pa.Table:
    """The table with metadata that name its scores, values and further columns."""
    return table.replace_schema_metadata({METADATA: roles_text(scores, values, further)})


def stored_roles(where: str, text: bytes | str | None) -> dict[str, list[str]]:
    """The names under ``scores``, ``values`` and ``further``; empty without metadata."""
    if text is None:
        return {}
    try:
        roles = {"further": [], **json.loads(text)}
        if all(isinstance(roles[key], list) for key in ("scores", "values", "further")):
            return {key: [str(n) for n in roles[key]] for key in ("scores", "values", "further")}
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"{where}: the 'toptail' metadata of the file is damaged; write it again.")


def plain(column: pa.ChunkedArray) -> pa.Array:
    """A table's column as one array without categories and string views.

    polars and pandas store text as those, and pyarrow cannot ``take`` from them.
    """
    pieces = [_plain(piece) for piece in column.chunks]
    if len(pieces) == 1:
        return pieces[0]  # not copied
    return pa.concat_arrays(pieces) if pieces else pa.array([], column.type)


def _plain(piece: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(piece.type):
        return _plain(piece.dictionary).take(piece.indices)
    return piece.cast(pa.large_string()) if pa.types.is_string_view(piece.type) else piece
