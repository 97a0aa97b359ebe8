"""Named arrays, a JSON header and a hash over both in one npz file, refused once changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.io.files import read_arrays, write_arrays

T = TypeVar("T")

_HEADER = "header"


@dataclass(frozen=True)
class HashedFormat:
    """One kind of such files."""

    names: tuple[str, ...]
    """What the format is called: the first name is written, all of them are read."""

    what: str
    """What a file of it is, as in "is not a file of frozen queries"."""

    advice: str
    """What to do about one that was changed, as in "freeze the queries again"."""

    beside: bool = False
    """Whether the name stands beside the header, so that it is no part of the hash, which then
    goes by the arrays' names; else it is the header's ``format``, and their order counts."""

    def sha256(self, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
        """Hash of a header and its arrays."""
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
        """Write a file, whole or not at all; compressed if ``small``."""
        words = [self._text(header), self.sha256(header, arrays)]
        if self.beside:
            words.insert(0, self.names[0])
        write_arrays(path, {**arrays, _HEADER: np.array(words)}, small=small)

    def read(self, path: Path, build: Callable[[dict[str, Any], dict[str, NDArray[Any]]], T]) -> T:
        """What ``build`` makes of the header and the arrays of a file that :meth:`write` made.

        An `InputError` of ``build`` is passed on: it says more than that the hash does not fit.
        """
        arrays: dict[str, NDArray[Any]] = dict(read_arrays(path))
        try:
            *beside, text, recorded = (str(word) for word in arrays.pop(_HEADER))
            header = json.loads(text)
            (name,) = beside if self.beside else [header.pop("format")]
            sound = name in self.names and self.sha256(header, arrays) == recorded
            content = build(header, arrays)
        except (InputError, MemoryError):
            raise
        except Exception:  # whatever can be wrong with what somebody else wrote
            sound = False
        if not sound:
            raise InputError(
                f"{path} is not {self.what}, or was changed after it was written (its hash does "
                f"not fit): {self.advice}."
            )
        return content

    def _text(self, header: Mapping[str, Any]) -> str:
        """The header as it is stored and hashed."""
        named = header if self.beside else {"format": self.names[0], **header}
        return json.dumps(named, sort_keys=True, allow_nan=False)
