"""Named arrays in npz files, and npz files with a JSON header and a hash over both."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError, refusing
from toptail.io.files import atomic, check_memory, check_readable

T = TypeVar("T")

_HEADER = "header"


def read_arrays(path: Path) -> dict[str, NDArray[np.generic]]:
    """Read every array of an npz file; pickled content is refused, never loaded."""
    check_readable(path)
    with refusing(path, "is not a readable .npz file"), path.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise InputError(f"{path}: holds one bare array; save named arrays with np.savez.")
        with zipfile.ZipFile(stream) as archive:
            check_memory(path, sum(info.file_size for info in archive.infolist()))
            return dict(_member(path, archive, info) for info in archive.infolist())


def one_of(path: Path, arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """One array of the file at ``path``; the error of a missing one names the others."""
    if name not in arrays:
        raise InputError(f"{path}: there is no array '{name}'; it has {', '.join(arrays)}.")
    return arrays[name]


def _member(
    path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo
) -> tuple[str, NDArray[np.generic]]:
    """One array of an npz file, once its header agrees with its size."""
    name = info.filename.removesuffix(".npy")
    with archive.open(info) as file:
        shape, kind = _declared(path, name, file)
    if kind.hasobject:
        raise InputError(
            f"{path}: holds pickled Python objects, which are never loaded because unpickling "
            "runs code; save plain number, text or bool arrays instead."
        )
    # A type of no bytes could declare any number of entries.
    if math.prod(shape) * max(kind.itemsize, 1) > info.file_size:
        raise InputError(f"{path}: '{name}' says it has shape {shape}, and holds less.")
    with archive.open(info) as file:
        array: NDArray[np.generic] = np.lib.format.read_array(file, allow_pickle=False)
        return name, array


def _declared(path: Path, name: str, file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    if file.read(6) != b"\x93NUMPY":
        raise InputError(f"{path}: '{name}' is no array; save named arrays with np.savez.")
    first = file.read(2)[:1] == b"\x01"
    read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    shape, _, kind = read(file)
    return shape, kind


def write_arrays(
    path: Path,
    arrays: Mapping[str, NDArray[np.generic]],
    *,
    compressed: bool = False,
    small: bool = False,
) -> None:
    """Write named arrays as an npz file, atomically.

    ``compressed`` uses the fastest deflation: recorded numbers are mostly noise, which more effort
    does not shrink. ``small`` uses LZMA, which shrinks small integers by up to a tenth more.
    """
    packed = zipfile.ZIP_LZMA if small else zipfile.ZIP_DEFLATED
    kind = packed if compressed or small else zipfile.ZIP_STORED

    def write(target: Path) -> None:
        with zipfile.ZipFile(target, "w", kind, compresslevel=1) as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)

    atomic(path, write)


@dataclass(frozen=True)
class HashedFormat:
    """A kind of npz file with a JSON header and a hash; a file that was changed is refused."""

    name: str
    """The name of the format, which the file holds."""

    what: str
    """What such a file is, as in "is not a file of frozen queries"."""

    advice: str
    """What to do about one that was changed, as in "freeze the queries again"."""

    beside: bool = False
    """Where the name stands: in the header under ``format``, so that it is hashed with it and the
    arrays are hashed in their order; or ``beside`` the header and not hashed, with the arrays
    sorted by name."""

    def sha256(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
        digest = hashlib.sha256(self._text(header).encode())
        for name in sorted(arrays) if self.beside else arrays:
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def write(
        self,
        path: Path,
        header: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        *,
        small: bool = False,
    ) -> None:
        """Write a file atomically; ``small`` as in :func:`write_arrays`."""
        words = [self._text(header), self.sha256(header, arrays)]
        if self.beside:
            words.insert(0, self.name)
        write_arrays(path, {**arrays, _HEADER: np.array(words)}, small=small)

    def read(self, path: Path, build: Callable[[dict[str, Any], dict[str, NDArray[Any]]], T]) -> T:
        """Return ``build(header, arrays)`` for a file that :meth:`write` made.

        An `InputError` of ``build`` is passed on, because it says more than a wrong hash.
        """
        arrays: dict[str, NDArray[Any]] = dict(read_arrays(path))
        try:
            *beside, text, recorded = (str(word) for word in arrays.pop(_HEADER))
            header = json.loads(text)
            (name,) = beside if self.beside else [header.pop("format")]
            sound = name == self.name and self.sha256(header, arrays) == recorded
            content = build(header, arrays)
        except (InputError, MemoryError):
            raise
        except Exception:  # a header or arrays of any other shape
            sound = False
        if not sound:
            raise InputError(
                f"{path} is not {self.what}, or was changed after it was written (its hash does "
                f"not fit): {self.advice}."
            )
        return content

    def _text(self, header: Mapping[str, Any]) -> str:
        """The header as it is stored and hashed."""
        named = header if self.beside else {"format": self.name, **header}
        return json.dumps(named, sort_keys=True, allow_nan=False)
