"""Downloading published data sets: several mirrors, resumable, checked before they count."""

from __future__ import annotations

import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toptail.errors import InputError, NotDoneError, brief, refusing, system_error
from toptail.io.files import check_folder, sha256
from toptail.io.guard import allowed_bytes
from toptail.io.json_files import read_object, write_json
from toptail.lab.tasks.files import load_file, read_record, record_path, split_path
from toptail.lab.tasks.names import Split, TaskName, parse_name

MIRRORS: tuple[str, ...] = (
    "https://rail.eecs.berkeley.edu/datasets/ogbench",
    "https://huggingface.co/datasets/zhouzypaul/ogbench_datasets/resolve/main",
)
"""Folders on the web that hold ``NAME.npz``: the official host and a mirror of it."""

MIRRORS_VARIABLE = "TOPTAIL_MIRRORS"
"""Environment variable with further mirrors, separated by spaces; they are tried first."""

Progress = Callable[[str, int, int | None], None]
"""Called with file name, bytes so far, and the file's size where it is known."""

_CHUNK = 1 << 18
# What a lost connection, a silent server or a name that does not resolve raise.
_NETWORK_ERRORS = (OSError, http.client.HTTPException)
_TRY_AGAIN = (408, 416, 429)


@dataclass(frozen=True)
class Patience:
    """How hard to try one mirror."""

    tries: int = 4
    """How often in a row it may fail to give a single byte."""
    wait: float = 1.0
    """Seconds before the second try; doubled for each further one."""
    timeout: float = 30.0
    """Seconds without an answer after which a connection counts as lost."""
    slowest: float = 1024.0
    """Bytes a second, over ``timeout`` seconds, below which a mirror is given up."""
    largest: float = 50e9
    """Bytes that a file may have, unless ``--max-gb`` allows more."""


def mirrors(first: tuple[str, ...] = ()) -> list[str]:
    """Return the mirrors in the order in which they are tried."""
    named = os.environ.get(MIRRORS_VARIABLE, "").split()
    return [address.rstrip("/") for address in (*first, *named, *MIRRORS)]


def get(
    name: str,
    folder: Path,
    addresses: list[str],
    patience: Patience | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> dict[Split, Path]:
    """Download both files of a data set into a folder, unless they are there already.

    ``tell`` is system_error, once, if nobody knows the checksum that a file should have.
    """
    task = parse_name(name)
    paths: dict[Split, Path] = {}
    splits: tuple[Split, ...] = ("train", "val")
    unknown = []
    for split in splits:
        path = paths[split] = split_path(folder / f"{task.name}.npz", split)
        if path.exists():
            _Partial(path, "").remove()  # what a killed download left beside the whole file
        else:
            unknown += [] if record_path(path).exists() else [path.name]
            get_file(task, path, addresses, patience or Patience(), progress)
    if unknown and tell is not None:
        tell(
            f"Nobody knows the checksum that {' and '.join(unknown)} should have: what came was "
            "checked for its content only. Its checksum is recorded beside it, and a later "
            "download must fit that."
        )
    return paths


def get_file(
    task: TaskName,
    path: Path,
    addresses: list[str],
    patience: Patience,
    progress: Progress | None = None,
) -> None:
    """Download one file; it appears under its name only when it is whole and checked."""
    check_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for address in addresses:
        partial = _Partial(path, f"{address}/{path.name}")
        try:
            _fetch(partial, patience, progress)
            _accept(partial, task)
        except (_UnavailableError, InputError) as error:
            failures.append(f"{address}: {str(error).removesuffix('.')}")
        else:
            return
    raise InputError(
        f"No mirror gave a sound {path.name} ({'; '.join(failures) or 'no mirror is known'}): "
        f"copy the file to {path.parent} yourself, name another mirror with --mirror, or collect "
        f"the data set here with `toptail data collect {task.name}`."
    )


class _UnavailableError(Exception):
    """A mirror does not give the file; the text says why."""


@dataclass(frozen=True)
class _Partial:
    """A file on its way: the bytes that are here, and beside them where they come from."""

    path: Path
    """The name that the file will have."""
    url: str
    """Where it is being downloaded from."""

    @property
    def bytes_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part")

    @property
    def origin_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}.part.json")

    @property
    def size(self) -> int:
        """Bytes that are here and come from this address."""
        if not self.bytes_path.exists() or self.origin().get("url") != self.url:
            return 0
        return self.bytes_path.stat().st_size

    def origin(self) -> dict[str, Any]:
        """Return address, full size and validator of the bytes; nothing where not known."""
        try:
            return read_object(self.origin_path, "it is downloaded again")
        except InputError:
            return {}

    def begin(self, size: int | None, validator: str | None) -> None:
        """Start from nothing."""
        self.remove()
        write_json(self.origin_path, {"url": self.url, "size": size, "validator": validator})

    def append(self, chunk: bytes) -> None:
        """Store more bytes; what the disk says about it is not the mirror's fault."""
        try:
            with self.bytes_path.open("ab") as file:
                file.write(chunk)
        except OSError as error:
            raise system_error(error, self.bytes_path) from None

    def remove(self) -> None:
        """Forget what is here."""
        self.bytes_path.unlink(missing_ok=True)
        self.origin_path.unlink(missing_ok=True)


def _fetch(partial: _Partial, patience: Patience, progress: Progress | None) -> None:
    """Bring all bytes here, going on after every interruption."""
    fruitless, most = 0, partial.size
    while True:
        try:
            if _read_on(partial, patience, progress):
                return
            problem = "the connection was cut"
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"answered {error.code} {brief(str(error.reason))}"
            if error.code < 500 and error.code not in _TRY_AGAIN:
                raise _UnavailableError(problem) from error
            if error.code == 416:  # what is here does not fit what is there
                partial.remove()
        except _NETWORK_ERRORS as error:
            problem = brief(getattr(error, "reason", error))
        except ValueError as error:  # of an address or a header that no client understands
            raise _UnavailableError(f"answered nonsense: {brief(error)}") from error
        # What is brought, thrown away and brought again is no progress.
        fruitless = 0 if partial.size > most else fruitless + 1
        most = max(most, partial.size)
        if fruitless >= patience.tries:
            raise _UnavailableError(problem)
        time.sleep(patience.wait * 2 ** max(0, fruitless - 1))


def _read_on(partial: _Partial, patience: Patience, progress: Progress | None) -> bool:
    """Read until the file is whole (true) or the connection ends (false)."""
    origin, have = partial.origin(), partial.size
    if have and have == origin.get("size"):
        return True
    request = _request(partial.url, have, origin)
    with urllib.request.urlopen(request, timeout=patience.timeout) as answer:
        if answer.status == 206 and _total(answer, have) != origin.get("size"):
            partial.remove()  # the file there has changed, so its beginning here is worthless
            return False
        if answer.status != 206:
            have = 0
            partial.begin(_length(answer), _validator(answer))
        size = partial.origin()["size"]
        _check_room(partial, have, size, patience)
        pace = _Pace(patience)
        while chunk := answer.read1(_CHUNK):
            partial.append(chunk)
            have += len(chunk)
            pace.check(len(chunk))
            if size is None:
                _check_room(partial, have, have, patience)
            if progress is not None:
                progress(partial.path.name, have, size)
    # Where the server does not say how long the file is, the zip's own checksums decide.
    return size is None or have == size


def _check_room(partial: _Partial, have: int, size: int | None, patience: Patience) -> None:
    """Give a mirror up whose file is larger than any, or than the disk has room for."""
    if size is None:
        return
    largest = allowed_bytes() or patience.largest
    if size > largest:
        partial.remove()
        raise _UnavailableError(
            f"offers {size / 1e9:,.1f} GB, and {largest / 1e9:,.1f} GB are allowed (--max-gb)"
        )
    free = shutil.disk_usage(partial.path.parent).free
    if size - have > free:
        raise NotDoneError(
            f"{partial.path} takes {(size - have) / 1e9:,.1f} GB more, and {free / 1e9:,.1f} GB of "
            "the disk are free: make room, or choose another folder."
        )


class _Pace:
    """How fast bytes come, over stretches of time."""

    def __init__(self, patience: Patience) -> None:
        self._patience, self._since, self._bytes = patience, time.monotonic(), 0

    def check(self, more: int) -> None:
        """Count bytes, and give up a mirror that lets one wait for ever."""
        self._bytes += more
        seconds = time.monotonic() - self._since
        if seconds < self._patience.timeout:
            return
        if self._bytes < seconds * self._patience.slowest:
            raise _UnavailableError(f"sends {self._bytes / seconds:,.0f} bytes a second")
        self._since, self._bytes = time.monotonic(), 0


def _request(url: str, have: int, origin: dict[str, Any]) -> urllib.request.Request:
    """Ask for the whole file, or for the rest if it is still the same one."""
    request = urllib.request.Request(url, headers={"User-Agent": "toptail"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        if origin.get("validator"):
            request.add_header("If-Range", origin["validator"])
    return request


def _length(answer: http.client.HTTPResponse) -> int | None:
    """Return the length of a whole file."""
    return _whole(answer.headers.get("Content-Length", ""))


def _total(answer: http.client.HTTPResponse, have: int) -> int | None:
    """Return the length of the file that a part belongs to, if the part begins where asked."""
    span, _, total = answer.headers.get("Content-Range", "").removeprefix("bytes ").partition("/")
    return _whole(total) if span.startswith(f"{have}-") else None


def _whole(text: str) -> int | None:
    """The whole number that a header states, if it is one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def _validator(answer: http.client.HTTPResponse) -> str | None:
    """Return what identifies the file's exact bytes; a weak ETag does not promise that."""
    tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    return None if tag is None or tag.startswith("W/") else tag


def _accept(partial: _Partial, task: TaskName) -> None:
    """Check a whole file and give it its name, or remove it and say what is wrong."""
    path, here = partial.path, partial.bytes_path
    try:
        if not here.exists():
            raise InputError("it sent nothing")
        found = {"bytes": here.stat().st_size, "file_sha256": sha256(here)}
        record = read_record(path) or {}
        for key, value in found.items():
            if record.get(key, value) != value:
                raise InputError(
                    f"its {key} is {value}, and {path.name}.json records {record[key]}; delete "
                    "that record to accept another file"
                )
        with refusing(path.name, "cannot be used", "the mirror has another file of that name"):
            content = load_file(here, task).sha256
        record = {"file": path.name, "source": partial.url, **found, "content_sha256": content}
        write_json(record_path(path), record)
        here.replace(path)
    finally:
        partial.remove()
