"""Files and folders that are there completely or not at all."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, told
from toptail.pools.guard import check_unpacked, refusing
from toptail.pools.temporary import PREFIX, exchange, temporary

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
