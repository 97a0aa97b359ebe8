"""Whether two folders hold the same, but for the times that were recorded."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

TIMES: Final = frozenset(
    {
        *("seconds", "started", "finished", "created", "time", "times", "when", "date"),
        *("steps_per_second", "resumed", "calls", "units", "commit"),
    }
)
"""Keys of JSON files that record when, how long, how fast, in how many parts, or of which commit a
call was: a study's ``units`` count what the last call made and what it found."""

_DATED: Final = re.compile(rb"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(\+00:00|Z)?")
_TOOK: Final = re.compile(rb"\d[\d.,]* (hours?|minutes?|seconds?|ms|s)\b")
_MADE: Final = re.compile(rb"\d+ trained and \d+ stored units")
"""What a page says of the last call, as ``units`` of its record does."""
_COMMIT: Final = re.compile(rb"\b[0-9a-f]{40}\b")
_PORT: Final = re.compile(rb"(?<=http://127\.0\.0\.1):\d+")
"""Where the local server listened."""

Tree = Mapping[str, str]
"""Path below a folder -> hash of what is there."""


def snapshot(folder: Path) -> dict[str, str]:
    """What is in a folder; empty folders count, locks do not."""
    found = {}
    for place, folders, files in os.walk(folder):
        here = Path(place)
        if not folders and not files and here != folder:
            found[f"{here.relative_to(folder).as_posix()}/"] = ""
        for name in files:
            path = here / name
            if path.suffix != ".lock":
                found[path.relative_to(folder).as_posix()] = _hash(path)
    return found


def differences(expected: Tree, found: Tree) -> list[str]:
    """What is not the same, a line each."""
    lines = []
    for name in sorted({*expected, *found}):
        if name not in found:
            lines.append(f"{name} is missing")
        elif name not in expected:
            lines.append(f"{name} is left over")
        elif expected[name] != found[name]:
            lines.append(f"{name} differs")
    return lines


def _hash(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    return hashlib.sha256(timeless(path.suffix, path.read_bytes())).hexdigest()


def timeless(kind: str, content: bytes) -> bytes:
    """The content of a file of a kind without the times that it records."""
    content = _PORT.sub(b"", content)
    try:
        if kind == ".json":
            return json.dumps(_without(json.loads(content))).encode()
        if kind == ".jsonl":
            lines = content.decode().splitlines()
            return json.dumps([_without(json.loads(line)) for line in lines]).encode()
        if kind == ".npz":
            return _members(content)
    except (ValueError, zipfile.BadZipFile):
        return content
    if kind == ".log":  # what every call said, one after the other
        return b""
    if kind in (".html", ".md", ".tex", ".svg"):
        for said in (_DATED, _TOOK, _MADE, _COMMIT):
            content = said.sub(b"", content)
    return content


def _without(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without(value) for key, value in content.items() if key not in TIMES}
    if isinstance(content, list):
        return [_without(value) for value in content]
    if isinstance(content, str) and _DATED.fullmatch(content.encode()):
        return ""
    return content


def _members(content: bytes) -> bytes:
    """The arrays of an npz file; the archive dates each of them."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return b"".join(name.encode() + archive.read(name) for name in sorted(archive.namelist()))
