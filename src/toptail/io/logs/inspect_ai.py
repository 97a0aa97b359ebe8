"""Logs of Inspect (``.eval`` and ``.json``): samples, their epochs and their scores."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import pyarrow as pa

from toptail.errors import InputError, refusing
from toptail.io.files import check_memory, check_readable
from toptail.io.roles import with_roles

EVAL: Final = ".eval"
_GRADES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partially correct, incorrect, no answer."""
_SAMPLES: Final = "samples/"
_ZSTANDARD: Final = 93
"""The number of Zstandard in a zip file, which Python reads from 3.14 on."""
_HEADER: Final = struct.Struct("<4s5H3I2H")


def is_inspect(data: object) -> bool:
    """Whether a JSON value is a log of Inspect with samples."""
    return isinstance(data, dict) and {"version", "eval", "status", "samples"} <= set(data)


def read_eval(path: Path) -> pa.Table:
    """The table of an ``.eval`` file: a zip file with a JSON file for each sample."""
    check_readable(path)
    with refusing(path, "is not a readable log of Inspect"):
        return samples_table(_samples(path), str(path))


def _samples(path: Path) -> Iterator[Any]:
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        members = [m for m in archive.infolist() if m.filename.startswith(_SAMPLES)]
        check_memory(path, sum(m.file_size for m in members))
        for member in members:
            packed = member.compress_type == _ZSTANDARD
            text = _zstandard(stream, member) if packed else archive.read(member)
            yield json.loads(text)


def _zstandard(stream: IO[bytes], member: zipfile.ZipInfo) -> bytes:
    """Unpack a member that Python's zipfile cannot."""
    stream.seek(member.header_offset)
    header = _HEADER.unpack(stream.read(_HEADER.size))
    stream.seek(header[-2] + header[-1], 1)  # its name and extra field
    packed = pa.py_buffer(stream.read(member.compress_size))
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as text:
        content: bytes = text.read(member.file_size + 1)
    if len(content) != member.file_size:
        raise ValueError(f"{member.filename} is not as long as it says")
    return content


def samples_table(samples: Iterable[Any], where: str) -> pa.Table:
    """A query per sample, a candidate per epoch, and a column per scorer.

    Where one scorer gives grades (correct, incorrect) and others give numbers, the grades are the
    value, and the numbers are scores.
    """
    rows = [_row(sample, where) for sample in samples]  # a sample holds much more than is needed
    if not rows:
        raise InputError(f"{where}: the log has no samples; it may be of a run that failed.")
    names = list(dict.fromkeys(name for row in rows for name in row["scores"]))
    columns: dict[str, list[Any]] = {
        "query": [row["query"] for row in rows],
        "candidate": [row["candidate"] for row in rows],
    }
    columns |= {name: [row["scores"].get(name) for row in rows] for name in names}
    graded = {name for name in names if any(isinstance(x, str) for x in columns[name])}
    for name in graded:
        columns[name] = [_grade(x, name, where) for x in columns[name]]
    if len(graded) == 1:
        return with_roles(
            pa.table(columns), [name for name in names if name not in graded], [*graded]
        )
    return pa.table(columns)


def _row(sample: Any, where: str) -> dict[str, Any]:
    if not isinstance(sample, dict) or not {"id", "epoch"} <= set(sample):
        raise InputError(f"{where}: one of the samples has no id and epoch; is it Inspect's log?")
    columns: dict[str, Any] = {}
    scores = sample.get("scores")
    for name, score in (scores if isinstance(scores, dict) else {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        columns |= _flat(name, value)
    return {"query": str(sample["id"]), "candidate": str(sample["epoch"]), "scores": columns}


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A scorer's value as columns; a mapping becomes one column for each of its parts."""
    if isinstance(value, Mapping):
        return {f"{name}.{part}": value[part] for part in value}
    return {name: value}


def _grade(value: Any, name: str, where: str) -> float | None:
    """A grade as a number; numbers stay as they are."""
    if value is None or isinstance(value, int | float):
        return value
    if not isinstance(value, str) or value not in _GRADES:
        raise InputError(
            f"{where}: the scorer '{name}' gave {str(value)[:40]!r}, which is neither a number nor "
            f"one of the grades {', '.join(_GRADES)}."
        )
    return _GRADES[value]
