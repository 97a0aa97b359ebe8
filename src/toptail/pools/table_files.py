"""Tables on disk, read whole or refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq

from toptail.errors import InputError
from toptail.io.files import check_readable, sha256
from toptail.io.guard import check_unpacked, refusing
from toptail.io.unpacked import check_arrow, check_parquet_texts, check_texts
from toptail.pools.frames import as_table
from toptail.pools.logs import is_log, log_files, log_of_json, log_of_lines, read_log

FORMATS = {
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

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""What separates columns in the files that are written; a file that is read tells by its head."""

_CALLED = {
    "parquet": "Parquet",
    "csv": "CSV",
    "tsv": "CSV",
    "jsonl": "JSON Lines",
    "json": "JSON",
    "arrow": "Arrow",
}
_PIECE = 1 << 24
_NULL_LINE = re.compile(rb"\n[ \t\r]*null")
_SEPARATORS = (",", ";", "\t")
_TEXTS = ("csv", "tsv", "jsonl", "json")


def file_format(path: Path) -> str:
    """The format that the file's name promises, or an :class:`InputError`.

    Formats made of text may be packed: ``scores.csv.gz``.
    """
    packed = path.suffix.lower() == ".gz"
    ending = (Path(path.stem).suffix + path.suffix) if packed else path.suffix
    known = FORMATS.get(ending.lower().removesuffix(".gz"))
    if known is None or (packed and known not in _TEXTS):
        endings = ", ".join(FORMATS)
        raise InputError(
            f"{path}: unknown file type '{ending}'; expected one of {endings}, or of those made "
            "of text with .gz behind."
        )
    return known


def check_there(path: Path) -> None:
    """Raise :class:`InputError` unless there is something to read: a file, or a log."""
    if str(path) == "-":
        raise InputError(
            "A table is read from a file, not from a pipe: write it first (... > scores.jsonl), "
            "and give that file."
        )
    if not is_log(path):
        check_readable(path)


def holds_arrays(path: Path) -> bool:
    """Whether a file holds arrays by their names, and no table."""
    return not is_log(path) and file_format(path) == "npz"


def has_types(path: Path) -> bool:
    """Whether a file says which of its columns are text; a CSV does not."""
    return is_log(path) or file_format(path) not in DELIMITERS


def content_sha256(path: Path) -> str:
    """Content hash of a table or log: of its file, or of the hashes of several in their order."""
    hashes = [sha256(file) for file in (log_files(path) if is_log(path) else [path])]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def read_schema(path: Path) -> pa.Schema | None:
    """Column names and types where the format tells them without reading the data."""
    if is_log(path) or file_format(path) != "parquet":
        return None
    with refusing(path, "is not a readable Parquet file"):
        return pq.read_schema(path)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a table (not npz) or a log; ``columns`` limits what is read from Parquet.

    One that is missing, empty, truncated, or not of the type its name says, is refused.
    """
    check_there(path)
    if is_log(path):
        return read_log(path)
    kind = file_format(path)
    if kind == "npz":
        raise InputError(f"{path}: a .npz file holds arrays, not a table.")
    with refusing(path, f"is not a readable {_CALLED[kind]} file"):
        if path.suffix.lower() == ".gz":
            _check_text(path)
        if kind == "parquet":
            table = _read_parquet(path, columns)
        elif kind == "arrow":
            table = _read_arrow(path)
        elif kind == "jsonl":
            log = log_of_lines(path)
            table = _read_jsonl(path) if log is None else log
        elif kind == "json":
            table = _read_json(path)
        else:
            parse = pa.csv.ParseOptions(delimiter=_separator(path, DELIMITERS[kind]))
            table = pa.csv.read_csv(path, parse_options=parse)
        check_names(str(path), table.column_names)
    return table


def _check_text(path: Path) -> None:
    """Refuse a packed text that is much longer than it looks."""
    size = 0
    with pa.input_stream(str(path)) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            check_unpacked(path, size)


def _read_parquet(path: Path, columns: list[str] | None) -> pa.Table:
    # One file, never a folder of them; ParquetFile also keeps duplicate column names.
    file = pq.ParquetFile(path, memory_map=True)
    width = file.metadata.num_columns if columns is None else len(columns)
    # A number takes eight bytes, however often a file says "the same again". What else the
    # metadata of columns say is not looked at: where it is damaged, pyarrow ends the process.
    check_unpacked(path, 8 * width * file.metadata.num_rows)
    check_names(str(path), file.schema_arrow.names)
    check_parquet_texts(path, file, columns)
    return file.read(columns=columns)


def _read_arrow(path: Path) -> pa.Table:
    check_arrow(path)
    table = pa.feather.read_table(path, memory_map=False)
    table.validate(full=True)  # offsets that lead out of a column are a crash later
    check_texts(path, table)
    return table


def _separator(path: Path, usual: str) -> str:
    """What separates the columns: of comma, semicolon and tab, the most frequent in the head."""
    with pa.input_stream(str(path)) as file:  # unpacks by the name's ending
        head = file.read(1 << 16).decode("utf-8", "replace").lstrip("\ufeff\r\n")
    names = re.split(r"[\r\n]", re.sub(r'"[^"]*"', "", head.replace('""', "")), maxsplit=1)[0]
    return max((usual, *_SEPARATORS), key=names.count)


def _read_json(path: Path) -> pa.Table:
    """A list of objects (rows), or an object of lists (columns; pandas makes them objects)."""
    with pa.input_stream(str(path)) as file:
        text = file.read().decode("utf-8-sig")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object after the other: JSON Lines by another name
            return _read_jsonl(path)
        raise
    if (log := log_of_json(data, str(path))) is not None:
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
    """Refuse what is no object: pyarrow does not survive a block whose first line is null."""
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


def check_names(where: str, names: list[str]) -> None:
    """Raise :class:`InputError` where two columns share a name."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"{where}: the column '{twice}' appears twice; give each its own name.")
