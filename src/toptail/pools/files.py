"""Tables on disk, read whole or refused in one sentence."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.json
import pyarrow.parquet as pq
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.frames import as_table

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

_SMALLEST = zipfile.ZIP_LZMA
"""Codes of many thousand values take up to a tenth less room than with the usual deflation."""

DELIMITERS = {"csv": ",", "tsv": "\t"}
"""What separates columns in the files that are written; a file that is read tells by its head."""

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


def sha256(path: Path) -> str:
    """Content hash of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_readable(path: Path) -> None:
    """Raise :class:`InputError` unless ``path`` is a file with something in it."""
    if not path.is_file():
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
        raise InputError(f"{path} {what}; give the path of a table.")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty (0 bytes).")


def read_schema(path: Path) -> pa.Schema | None:
    """Column names and types where the format tells them without reading the data."""
    if file_format(path) != "parquet":
        return None
    with _refusing(path, "Parquet"):
        return pq.read_schema(path)


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a table (not npz); ``columns`` limits what is read from Parquet.

    One that is missing, empty, truncated, or not of the type its name says, is refused.
    """
    check_readable(path)
    kind = file_format(path)
    if kind == "npz":
        raise InputError(f"{path}: a .npz file holds arrays, not a table.")
    if kind == "jsonl":
        table = _read_jsonl(path)
    elif kind == "json":
        table = _read_json(path)
    else:
        with _refusing(path, {"parquet": "Parquet", "arrow": "Arrow"}.get(kind, "CSV")):
            if kind == "parquet":
                # One file, never a folder of them; ParquetFile also keeps duplicate column names.
                table = pq.ParquetFile(path, memory_map=True).read(columns=columns)
            elif kind == "arrow":
                table = pa.feather.read_table(path, memory_map=False)
            else:
                parse = pa.csv.ParseOptions(delimiter=_separator(path, DELIMITERS[kind]))
                table = pa.csv.read_csv(path, parse_options=parse)
    with _refusing(path, "table"):  # names need not be UTF-8
        names = table.column_names
    check_names(str(path), names)
    return table


def _separator(path: Path, usual: str) -> str:
    """What separates the columns: of comma, semicolon and tab, the most frequent in the head."""
    with pa.input_stream(str(path)) as file:  # unpacks by the name's ending
        head = file.read(1 << 16).decode("utf-8", "replace").lstrip("\ufeff\r\n")
    names = re.split(r"[\r\n]", re.sub(r'"[^"]*"', "", head.replace('""', "")), maxsplit=1)[0]
    return max((usual, *_SEPARATORS), key=names.count)


def _read_json(path: Path) -> pa.Table:
    """A list of objects (rows), or an object of lists (columns; pandas makes them objects)."""
    with _refusing(path, "JSON"), pa.input_stream(str(path)) as file:
        text = file.read().decode("utf-8-sig")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":  # one object after the other: JSON Lines by another name
            return _read_jsonl(path)
        raise InputError(f"{path}: not a readable JSON file ({_brief(error)}).") from None
    except RecursionError:
        raise InputError(f"{path}: not a table; its JSON is nested too deeply.") from None
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
    with _refusing(path, "JSON Lines"), pa.input_stream(str(path)) as file:
        start = file.read(1 << 16).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start not in (b"{", b""):  # pyarrow does not survive a first line that is null
        raise InputError(f"{path}: not a JSON Lines file; expected one object on each line.")
    try:
        with _refusing(path, "JSON Lines"):
            return pa.json.read_json(path, read_options=pa.json.ReadOptions(block_size=block))
    except InputError as error:
        if "straddling" not in str(error):
            raise
        # A row longer than a block cannot be read: the second try takes the file as one block.
        with pa.input_stream(str(path)) as file:
            whole = min(len(file.read()) + 1, (1 << 31) - 1)
        if whole <= block:
            raise
        return _read_jsonl(path, whole)


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read every array of an npz file; pickled content is refused, never loaded."""
    check_readable(path)
    try:
        with path.open("rb") as stream:  # np.load leaves files open when it fails
            file = np.load(stream, allow_pickle=False)
            if isinstance(file, np.ndarray):
                raise InputError(f"{path}: holds one bare array; save named arrays with np.savez.")
            return {name: file[name] for name in file.files}
    except InputError:
        raise
    except Exception as error:
        # zipfile, zlib and the npy header parser raise many types on damaged files.
        if isinstance(error, ValueError) and "pickle" in str(error).lower():
            raise InputError(
                f"{path}: holds pickled Python objects, which are never loaded because unpickling "
                "runs code; save plain number, text or bool arrays instead."
            ) from None
        cut = "" if isinstance(error, ValueError) else ", it may be truncated"
        raise InputError(f"{path}: not a readable .npz file{cut} ({_brief(error)}).") from None


def write_arrays(
    path: Path,
    arrays: dict[str, NDArray[np.generic]],
    *,
    compressed: bool = False,
    small: bool = False,
) -> None:
    """Write named arrays as an npz file, atomically.

    ``compressed`` is the fastest there is: recorded numbers are mostly noise, and more effort does
    not make them smaller. ``small`` is for codes, which more effort does make smaller.
    """
    packed = _SMALLEST if small else zipfile.ZIP_DEFLATED
    kind = packed if compressed or small else zipfile.ZIP_STORED

    def write(target: Path) -> None:
        with zipfile.ZipFile(target, "w", kind, compresslevel=1) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)

    atomic(path, write)


def atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    staged = Path(name)
    try:
        write(staged)
        staged.chmod(0o666 & ~_umask())
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def check_folder(path: Path) -> None:
    """Raise :class:`InputError` where a file stands in the way of a folder."""
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file; give a folder, or a name that is still free.")


@contextmanager
def staged_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` if the block succeeds, and vanishes if not.

    Where ``path`` already exists, the new files replace its files of the same name, each
    in one step, and others stay.
    """
    check_folder(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise InputError(f"{path}: cannot write there ({error.strerror}).") from None
    try:
        yield stage
        stage.chmod(0o777 & ~_umask())
        if path.exists():
            for file in sorted(p for p in stage.rglob("*") if p.is_file()):
                target = path / file.relative_to(stage)
                target.parent.mkdir(parents=True, exist_ok=True)
                file.replace(target)
        else:
            stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_names(where: str, names: list[str]) -> None:
    """Raise :class:`InputError` where two columns share a name."""
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise InputError(f"{where}: the column '{twice}' appears twice; give each its own name.")


@contextmanager
def _refusing(path: Path, kind: str) -> Iterator[None]:
    """Turn every reader's complaint about a damaged file into one sentence."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: not a readable {kind} file, it may be truncated or of another type "
            f"({_brief(error)})."
        ) from None


def _brief(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 160 else text[:157] + "..."
