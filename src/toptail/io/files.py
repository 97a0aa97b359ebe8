"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from toptail.errors import InputError, NotDoneError, system_error

_PREFIX: Final = ".toptail-"
"""How the names of all temporary files and folders begin."""
_OLD: Final = 86_400.0
"""Seconds after which a temporary file of another machine is removed."""
_HERE: Final = re.sub(r"\W", "", platform.node()) or "machine"
_swept: set[Path] = set()
"""Folders that this process has swept."""


@contextmanager
def temporary(place: Path, ending: str = "", *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder in ``place``, which is removed after the block unless it was moved.

    Its name holds the machine and the process, so that :func:`sweep` can tell who made it.
    """
    if (where := place.absolute()) not in _swept:
        sweep(where)
        _swept.add(where)
    prefix = f"{_PREFIX}{_HERE}-{os.getpid()}-"
    if folder:
        path = Path(tempfile.mkdtemp(dir=place, prefix=prefix))
    else:
        handle, name = tempfile.mkstemp(dir=place, prefix=prefix, suffix=ending)
        os.close(handle)
        path = Path(name)
    try:
        yield path
    finally:
        _remove(path)


def sweep(place: Path) -> None:
    """Remove the temporary files that killed processes left in a folder."""
    for path in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # removed meanwhile, or of another user
            machine, _, process = path.name.removeprefix(_PREFIX).rpartition("-")[0].rpartition("-")
            if machine == _HERE and process.isdigit() and os.name == "posix":
                left = not _runs(int(process))
            else:
                left = time.time() - path.lstat().st_mtime > _OLD
            if left:
                _remove(path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_at_once(folder: Path) -> None:
    """Remove a folder in one step, so that no other process sees half of it."""
    with temporary(folder.parent, folder=True) as waste:
        folder.rename(waste / folder.name)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """Files and folders that match a pattern, sorted, without hidden and temporary ones."""
    return sorted(
        path
        for path in folder.glob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def check_readable(path: Path) -> None:
    """Raise :class:`InputError` unless ``path`` is a file that can be read and is not empty."""
    with _naming(path):
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "does not exist"
            raise InputError(f"{path} {what}; give the path of a table.")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty (0 bytes).")
        path.open("rb").close()


def check_folder(path: Path) -> None:
    """Raise :class:`InputError` where ``path`` is no folder and cannot become one."""
    with _naming(path):
        if path.is_symlink() and not path.exists():
            raise InputError(f"{path} is a link that leads nowhere; give another folder.")
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder, or a name that is still free.")


def check_memory(path: object, size: int) -> None:
    """Raise :class:`NotDoneError` where the content of a file is larger than this machine's memory.

    ``size`` is what the file says that it unpacks to, in bytes.
    """
    if size > (memory := _memory()):
        raise NotDoneError(
            f"{path}: unpacks to {size / 1e9:,.1f} GB, and this machine has {memory / 1e9:,.1f} GB "
            "of memory."
        )


def _memory() -> float:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # systems that do not say
        return math.inf


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn errors of the system into sentences that name the path."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise system_error(error, path) from None
    except ValueError as error:  # such as a null character in a name
        raise InputError(f"{path}: no path that a file could have ({error}).") from None


def atomic(path: Path, write: Callable[[Path], object]) -> None:
    """Call ``write`` on a temporary file beside ``path``, then move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with temporary(path.parent, path.suffix) as staged:
        write(staged)
        staged.chmod(0o666 & ~_umask())
        staged.replace(path)


@contextmanager
def staged_folder(path: Path, gone: Collection[str] = ()) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` if the block succeeds, and is removed if not.

    Where ``path`` already exists, its files that the new folder does not have are kept, except
    those named in ``gone``, and the new folder replaces it in one step. Files are replaced one by
    one where one step is impossible: the folder is the current one, it is a file system of its
    own, or the file system cannot exchange two folders.
    """
    check_folder(path)
    with ExitStack() as stack:
        with _naming(path):
            home = path.resolve()
            place = home if _is_fixed(home) else home.parent
            place.mkdir(parents=True, exist_ok=True)
            stage = stack.enter_context(temporary(place, folder=True))
        yield stage
        stage.chmod(0o777 & ~_umask())
        if not _moved(stage, home):
            _replace(stage, home, {home / name for name in gone})


def _is_fixed(folder: Path) -> bool:
    return folder.is_dir() and (folder.is_mount() or Path.cwd().is_relative_to(folder))


def _moved(stage: Path, home: Path) -> bool:
    """Move the stage to its name; false where a folder of that name exists."""
    if home.exists():
        return False
    try:
        stage.rename(home)
    except OSError:
        if home.is_dir():  # another process was faster
            return False
        raise
    return True


def _replace(stage: Path, home: Path, gone: Collection[Path]) -> None:
    if stage.parent != home:
        shutil.copymode(home, stage)
        _carry_over(home, stage, gone)
        if _exchange(stage, home):
            return
    for file in sorted(path for path in stage.rglob("*") if path.is_symlink() or path.is_file()):
        target = home / file.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    for path in gone:
        path.unlink(missing_ok=True)


def _carry_over(old: Path, new: Path, gone: Collection[Path]) -> None:
    """Link the files that only the old folder has into the new one; copy them where links fail."""
    for path in sorted(old.iterdir()):
        target = new / path.name
        if path.name.startswith(_PREFIX) or path in gone:
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if target.exists() and is_folder != target.is_dir():
            raise InputError(f"{path} stands where {target.name} is to be written; move it away.")
        if is_folder:
            target.mkdir(exist_ok=True)
            shutil.copymode(path, target)
            _carry_over(path, target, gone)
        elif not target.exists():
            try:
                os.link(path, target, follow_symlinks=False)
            except (OSError, NotImplementedError):  # a file system without hard links
                shutil.copy2(path, target, follow_symlinks=False)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, which Python itself has no call for; false if impossible."""
    swap = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS
    names: list[Any] = [os.fsencode(one), os.fsencode(other)]
    if sys.platform == "linux":
        here = -100  # AT_FDCWD
        name, arguments = "renameat2", [here, names[0], here, names[1], swap]
    elif sys.platform == "darwin":
        name, arguments = "renamex_np", [*names, swap]
    else:
        return False
    function = getattr(ctypes.CDLL(None), name, None)
    return function is not None and function(*arguments) == 0


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_texts(folder: Path, texts: Mapping[str, str]) -> None:
    """Write texts by the names of their files, with the same bytes on every system."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
