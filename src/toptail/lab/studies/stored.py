"""Arrays with a header and a hash in one npz file, written whole and refused if changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.files import read_arrays, write_arrays

_FORMAT = "toptail-semantics-1"
"""The name of the study that had such files first; all studies write it."""


@dataclass(frozen=True, eq=False)
class Stored:
    """What one file of a study holds: scores, candidates, or values."""

    header: Mapping[str, Any]
    """What the arrays are and where they come from, as JSON has it."""

    arrays: Mapping[str, NDArray[Any]]
    """The arrays by name."""

    @property
    def sha256(self) -> str:
        """Hash of header and arrays."""
        digest = hashlib.sha256(_text(self.header).encode())
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            digest.update(array.data)
        return digest.hexdigest()

    def under(self, prefix: str) -> dict[str, NDArray[Any]]:
        """The arrays called ``PREFIX/NAME``, by NAME."""
        start = f"{prefix}/"
        found = {name: array for name, array in self.arrays.items() if name.startswith(start)}
        return {name.removeprefix(start): array for name, array in found.items()}

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        header = np.array([_FORMAT, _text(self.header), self.sha256])
        write_arrays(path, {**self.arrays, "header": header})

    @classmethod
    def read(cls, path: Path) -> Stored:
        """Read a file that :meth:`write` made, and refuse one whose content was changed."""
        arrays = read_arrays(path)
        try:
            kind, text, recorded = (str(item) for item in arrays.pop("header"))
            stored = cls(json.loads(text), arrays)
            sound = kind == _FORMAT and isinstance(stored.header, dict)
            sound = sound and stored.sha256 == recorded
        except (KeyError, ValueError, TypeError):
            sound = False
        if not sound:
            raise InputError(
                f"{path} is not a file that a study stored, or was changed after it was written "
                "(its hash does not fit): delete it and run the study again."
            )
        return stored


def _text(header: Mapping[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, allow_nan=False)
