"""Locks of files and folders; they go with the process that holds them, however it ends."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, told
from toptail.io.guard import check_unpacked, refusing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class NoLocksError(OSError):
    """The file system there has no locks."""


def locks_exist() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


def try_lock(handle: int, *, shared: bool = False) -> bool:
    """Lock what is open, until it is closed; false where somebody else holds it."""
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # ENOLCK, ENOTSUP, ENOSYS, or what a network's disk says
        raise NoLocksError(error.errno, error.strerror) from None
    return True


@cache
def this_machine() -> str:
    """What tells this machine from others, also from others of its name."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return boot.read_text().strip() if boot.is_file() else platform.node()


PREFIX: Final = ".toptail-"
"""How the names of all temporary files and folders begin."""

_OLD: Final = 86_400.0
"""Seconds after which something is taken for left behind where there are no locks."""

_OF_A_MACHINE: Final = re.compile(rf"{re.escape(PREFIX)}[0-9a-f]{{8}}-")
"""Names that say which machine made them."""

_SWAP: Final = 2
"""The flag of Linux (RENAME_EXCHANGE) and of macOS (RENAME_SWAP)."""

_swept: set[Path] = set()
"""Folders that this process has looked through."""


@contextmanager
def temporary(place: Path, ending: str = "", *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder in ``place``, which is gone after the block unless it was moved."""
    if (where := place.absolute()) not in _swept:
        sweep(where)
        _swept.add(where)
    path, handle = _made(place, ending, folder)
    try:
        yield path
    finally:
        try:
            remove(path)
        finally:
            if handle is not None:
                os.close(handle)


def sweep(place: Path) -> None:
    """Remove what killed processes left in a folder; what a living one holds stays."""
    for path in place.glob(f"{PREFIX}*"):
        with suppress(OSError):  # gone meanwhile, or somebody else's
            _remove_if_left(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_at_once(folder: Path) -> None:
    """Remove a folder so that nobody ever sees half of it."""
    with temporary(folder.parent, folder=True) as waste:
        folder.rename(waste / folder.name)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders change places in one step; false where the system cannot."""
    here, names = -100, [os.fsencode(one), os.fsencode(other)]  # -100: names count from here
    if sys.platform == "linux":
        return _called("renameat2", here, names[0], here, names[1], _SWAP)
    return sys.platform == "darwin" and _called("renamex_np", *names, _SWAP)


def _called(name: str, *arguments: Any) -> bool:
    """Whether a function of the system is there and succeeded."""
    function = getattr(ctypes.CDLL(None), name, None)
    return function is not None and function(*arguments) == 0


def _made(place: Path, ending: str, folder: bool) -> tuple[Path, int | None]:
    """A new file or folder, and the open handle that keeps it locked."""
    while True:
        if folder:
            path = Path(tempfile.mkdtemp(dir=place, prefix=_own_prefix()))
            handle = os.open(path, os.O_RDONLY) if locks_exist() else None
        else:
            handle, name = tempfile.mkstemp(dir=place, prefix=_own_prefix(), suffix=ending)
            path = Path(name)
        if not locks_exist():
            if handle is not None:
                os.close(handle)
            return path, None
        assert handle is not None
        with suppress(NoLocksError):  # then it is swept when it is old
            if not (try_lock(handle) and _is_at(path, handle)):
                os.close(handle)  # taken for left behind in the moment before it was locked
                continue
        return path, handle


@cache
def _own_prefix() -> str:
    """How names begin of what this machine makes."""
    return f"{PREFIX}{hashlib.sha256(this_machine().encode()).hexdigest()[:8]}-"


def _is_of_another_machine(path: Path) -> bool:
    return _OF_A_MACHINE.match(path.name) is not None and not path.name.startswith(_own_prefix())


def _remove_if_left(path: Path) -> None:
    if not locks_exist() or _is_of_another_machine(path):
        if _is_old(path):
            remove(path)
        return
    kind = os.O_RDONLY if stat.S_ISDIR(path.lstat().st_mode) else os.O_RDWR
    handle = os.open(path, kind | os.O_NOFOLLOW)
    try:
        if _is_left(path, handle):
            remove(path)
    finally:
        os.close(handle)


def _is_left(path: Path, handle: int) -> bool:
    """Whether nobody holds what is open."""
    try:
        return try_lock(handle) and _is_at(path, handle)
    except NoLocksError:
        return _is_old(path)


def _is_old(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > _OLD


def _is_at(path: Path, handle: int) -> bool:
    """Whether a path still leads to what is open."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


_SMALLEST = zipfile.ZIP_LZMA
"""Codes of many thousand values take up to a tenth less room than with the usual deflation."""


def sha256(path: Path) -> str:
    """Content hash of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def entries(folder: Path, pattern: str = "*") -> list[Path]:
    """The files and folders that fit a pattern, sorted; what is hidden is nobody's data."""
    return sorted(
        path
        for path in folder.glob(pattern)
        if not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )


def check_readable(path: Path) -> None:
    """Raise :class:`InputError` unless ``path`` is a file with something in it."""
    with _telling(path):
        if not path.is_file():
            what = "is a folder, not a file" if path.is_dir() else "does not exist"
            raise InputError(f"{path} {what}; give the path of a table.")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty (0 bytes).")
        path.open("rb").close()


def check_folder(path: Path) -> None:
    """Raise :class:`InputError` where something stands in the way of a folder."""
    with _telling(path):
        if path.is_symlink() and not path.exists():
            raise InputError(f"{path} is a link that leads nowhere; give another folder.")
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; give a folder, or a name that is still free.")


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Say in one sentence what the system says about a path."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise told(error, path) from None
    except ValueError as error:  # such as a null character in a name
        raise InputError(f"{path}: no path that a file could have ({error}).") from None


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read every array of an npz file; pickled content is refused, never loaded."""
    check_readable(path)
    with refusing(path, "is not a readable .npz file"), path.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise InputError(f"{path}: holds one bare array; save named arrays with np.savez.")
        with zipfile.ZipFile(stream) as archive:
            check_unpacked(path, sum(info.file_size for info in archive.infolist()))
            return dict(_member(path, archive, info) for info in archive.infolist())


def _member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[str, NDArray[np.generic]]:
    """One array of an npz file, after a look at how large it says it is."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as file:
        shape, kind = _declared(path, name, file)
    if kind.hasobject:
        raise InputError(
            f"{path}: holds pickled Python objects, which are never loaded because unpickling "
            "runs code; save plain number, text or bool arrays instead."
        )
    # Entries without bytes would be as many as they please.
    if math.prod(shape) * max(kind.itemsize, 1) > info.file_size:
        raise InputError(f"{path}: '{name}' says it has shape {shape}, and holds less.")
    with archive.open(info) as file:
        array: NDArray[np.generic] = np.lib.format.read_array(file, allow_pickle=False)
        return name, array


def _declared(path: Path, name: str, file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type that an array's header states."""
    if file.read(6) != b"\x93NUMPY":
        raise InputError(f"{path}: '{name}' is no array; save named arrays with np.savez.")
    first = file.read(2)[:1] == b"\x01"
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    return shape, kind


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
    with temporary(path.parent, path.suffix) as staged:
        write(staged)
        staged.chmod(0o666 & ~_umask())
        staged.replace(path)


@contextmanager
def staged_folder(path: Path, gone: Collection[str] = ()) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` if the block succeeds, and vanishes if not.

    Where ``path`` already exists, the new folder gets those of its files that it does not have
    itself, but for those that are ``gone`` by then, and takes its place in one step. Only where
    that cannot be, files are replaced one by one: a folder that somebody works in, one that is a
    file system of its own, or a file system that cannot exchange folders.
    """
    check_folder(path)
    with ExitStack() as stack:
        with _telling(path):
            home = path.resolve()
            place = home if _is_fixed(home) else home.parent
            place.mkdir(parents=True, exist_ok=True)
            stage = stack.enter_context(temporary(place, folder=True))
        yield stage
        stage.chmod(0o777 & ~_umask())
        if not _moved(stage, home):
            _take_place(stage, home, {home / name for name in gone})


def _is_fixed(folder: Path) -> bool:
    """Whether a folder cannot be moved: it is a file system, or somebody works in it."""
    return folder.is_dir() and (folder.is_mount() or Path.cwd().is_relative_to(folder))


def _moved(stage: Path, home: Path) -> bool:
    """Whether the stage could be given its name because there is no such folder yet."""
    if home.exists():
        return False
    try:
        stage.rename(home)
    except OSError:
        if home.is_dir():  # somebody else was faster
            return False
        raise
    return True


def _take_place(stage: Path, home: Path, gone: Collection[Path]) -> None:
    """Put what is staged into a folder that is there."""
    if stage.parent != home:
        shutil.copymode(home, stage)
        _carry_over(home, stage, gone)
        if exchange(stage, home):
            return
    for file in sorted(path for path in stage.rglob("*") if path.is_symlink() or path.is_file()):
        target = home / file.relative_to(stage)
        target.parent.mkdir(parents=True, exist_ok=True)
        file.replace(target)
    for path in gone:
        path.unlink(missing_ok=True)


def _carry_over(old: Path, new: Path, gone: Collection[Path]) -> None:
    """Give a new folder what only the old one has, as hard links where there are such."""
    for path in sorted(old.iterdir()):
        target = new / path.name
        if path.name.startswith(PREFIX) or path in gone:
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
