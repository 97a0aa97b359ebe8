"""Tables on disk, read whole or refused in one sentence."""

from __future__ import annotations

import hashlib
import os
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

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".npz": "npz",
}

_SMALLEST = zipfile.ZIP_LZMA
"""Codes of many thousand values take up to a tenth less room than with the usual deflation."""

DELIMITERS = {"csv": ",", "tsv": "\t"}


def file_format(path: Path) -> str:
    """The format that the file's name promises, or an :class:`InputError`."""
    known = FORMATS.get(path.suffix.lower())
    if known is None:
        endings = ", ".join(FORMATS)
        raise InputError(f"{path}: unknown file type '{path.suffix}'; expected one of {endings}.")
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
    else:
        with _refusing(path, {"parquet": "Parquet", "arrow": "Arrow"}.get(kind, "CSV")):
            if kind == "parquet":
                # One file, never a folder of them; ParquetFile also keeps duplicate column names.
                table = pq.ParquetFile(path, memory_map=True).read(columns=columns)
            elif kind == "arrow":
                table = pa.feather.read_table(path, memory_map=False)
            else:
                parse = pa.csv.ParseOptions(delimiter=DELIMITERS[kind])
                table = pa.csv.read_csv(path, parse_options=parse)
    check_names(str(path), table.column_names)
    return table


def _read_jsonl(path: Path, block: int = 1 << 24) -> pa.Table:
    try:
        with _refusing(path, "JSON Lines"):
            return pa.json.read_json(path, read_options=pa.json.ReadOptions(block_size=block))
    except InputError as error:
        # A row longer than a block cannot be read: the second try takes the file as one block.
        whole = min(path.stat().st_size + 1, (1 << 31) - 1)
        if "straddling" not in str(error) or whole <= block:
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
