"""Downloads of published data sets: several mirrors, resumed after a break, checked before use.

pooch and fsspec cannot resume a broken download, and these files have up to some gigabytes.
"""

from __future__ import annotations

import errno
import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from toptail.errors import InputError, brief, refusing, system_error
from toptail.io.files import check_folder, sha256
from toptail.io.json_files import read_json_if_exists, write_json
from toptail.lab.tasks.files import load_file, read_record, record_path, split_path
from toptail.lab.tasks.names import Split, TaskName, parse_name
from toptail.progress import Tick, no_tick

MIRRORS: tuple[str, ...] = (
    "https://rail.eecs.berkeley.edu/datasets/ogbench",
    "https://huggingface.co/datasets/zhouzypaul/ogbench_datasets/resolve/main",
)
"""Folders on the web that hold ``NAME.npz``: the official host and a mirror of it."""
MIRRORS_VARIABLE = "TOPTAIL_MIRRORS"
"""Environment variable with further mirrors, separated by spaces; they are tried first."""
_TRIES, _WAIT, _TIMEOUT = 4, 1.0, 30.0
"""Tries without a new byte until a mirror is given up; seconds between them, and of silence."""


def mirrors(first: tuple[str, ...] = ()) -> list[str]:
    """The addresses of all mirrors in the order in which they are tried."""
    named = os.environ.get(MIRRORS_VARIABLE, "").split()
    return [address.rstrip("/") for address in (*first, *named, *MIRRORS)]


def get(
    name: str,
    folder: Path,
    addresses: list[str],
    tick: Tick = no_tick,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[Split, Path]:
    """Download both files of a data set into a folder, unless they are there already.

    ``tell`` receives a sentence if no checksum is known that a file could be compared with.
    """
    task = parse_name(name)
    splits: tuple[Split, ...] = ("train", "val")
    paths = {split: split_path(folder / f"{task.name}.npz", split) for split in splits}
    missing = [path for path in paths.values() if not path.exists()]
    unknown = [path.name for path in missing if not record_path(path).exists()]
    for path in missing:
        get_file(task, path, addresses, tick)
    if unknown:
        tell(
            f"No checksum is known for {' and '.join(unknown)}: only the content was checked. The "
            "checksum is now recorded beside each file, and a later download must fit it."
        )
    return paths


def get_file(task: TaskName, path: Path, addresses: list[str], tick: Tick = no_tick) -> None:
    """Download one file; it appears under its name once it is complete and checked."""
    check_folder(path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    failures = []
    for address in addresses:
        try:
            part = _fetch(f"{address}/{path.name}", path, tick)
            _accept(part, path, task, f"{address}/{path.name}")
            return
        except (_UnavailableError, InputError) as error:
            failures.append(f"{address}: {str(error).removesuffix('.')}")
    raise InputError(
        f"No mirror gave a sound {path.name} ({'; '.join(failures) or 'no mirror is known'}): "
        f"copy the file to {path.parent} yourself, name another mirror with --mirror, or collect "
        f"the data set here with `toptail data collect {task.name}`."
    )


class _UnavailableError(Exception):
    """A mirror does not give the file; the text says why."""


def _fetch(url: str, path: Path, tick: Tick) -> Path:
    """Download to ``NAME.part``, resuming it after every break; returns that path."""
    part, tries, most = path.with_name(f"{path.name}.part"), 0, 0
    origin = part.with_name(f"{part.name}.json")  # which version of which file `part` holds
    while tries < _TRIES:
        known = read_json_if_exists(origin) or {}
        have = part.stat().st_size if part.exists() and known.get("url") == url else 0
        most = max(most, have)
        if have and have == known["size"]:
            return part
        try:
            resume = {"Range": f"bytes={have}-", "If-Range": known["tag"]} if have else {}
            request = urllib.request.Request(url, headers={"User-Agent": "toptail", **resume})
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
                if answer.status != 206:  # the whole file, from its beginning
                    size = int(answer.headers.get("Content-Length", 0)) or None
                    known = {"url": url, "size": size, "tag": answer.headers.get("ETag", "")}
                    write_json(origin, known)
                    part.write_bytes(b"")
                while chunk := answer.read1(1 << 18):
                    with part.open("ab") as file:
                        file.write(chunk)
                    share = part.stat().st_size / known["size"] if known["size"] else 0.0
                    tick(path.name, share)
            if known["size"] in (None, part.stat().st_size):
                return part
            problem = "the connection was cut"
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"answered {error.code} {brief(error.reason)}"
            tries = tries if error.code >= 500 or error.code in (408, 429) else _TRIES
        except (OSError, http.client.HTTPException, ValueError) as error:
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise system_error(error, part) from None
            problem = brief(getattr(error, "reason", error))
        if not known.get("tag", "").startswith('"'):  # a weak tag does not promise the same bytes
            origin.unlink(missing_ok=True)
        # Only bytes beyond the largest size so far are progress.
        tries = 0 if part.exists() and part.stat().st_size > most else tries + 1
        time.sleep(_WAIT * 2 ** max(0, tries - 1) if tries < _TRIES else 0.0)
    _remove(path)
    raise _UnavailableError(problem)


def _accept(part: Path, path: Path, task: TaskName, url: str) -> None:
    """Check a complete download and move it to its name; a wrong file is removed."""
    try:
        found = {"bytes": part.stat().st_size, "file_sha256": sha256(part)}
        record = read_record(path) or {}
        for key, value in found.items():
            if record.get(key, value) != value:
                raise InputError(
                    f"its {key} is {value}, and {path.name}.json records {record[key]}; delete "
                    "that record to accept another file"
                )
        with refusing(path.name, "cannot be used", "the mirror has another file of that name"):
            content = load_file(part, task).sha256
        record = {"file": path.name, "source": url, **found, "content_sha256": content}
        write_json(record_path(path), record)
        part.replace(path)
    finally:
        _remove(path)


def _remove(path: Path) -> None:
    for ending in (".part", ".part.json"):
        path.with_name(f"{path.name}{ending}").unlink(missing_ok=True)
