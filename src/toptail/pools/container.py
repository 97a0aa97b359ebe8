"""What the containers have in common: equality, hash and repr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa


class Container:
    """Equality by content, a hash that goes with it, and a repr of one line.

    Two containers are equal if what they hold is: labels, and columns of the same names in
    the same order with the same numbers. Where they came from does not count, so that
    a container equals its copy on disk.
    """

    _ORIGIN: ClassVar = ("source", "sha256", "called", "skipped", "lengths")
    """Fields that say where the content came from."""

    def _summary(self) -> str:
        """Counts and names, without the numbers."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = (field.name for field in fields(self) if field.name not in self._ORIGIN)  # type: ignore[arg-type]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    def __hash__(self) -> int:
        return hash(self._summary())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"


def queries(n: int) -> str:
    """How many queries."""
    return f"{n:,} {'query' if n == 1 else 'queries'}"


def named(names: Iterable[object], most: int = 6) -> str:
    """The first names, and how many more there are."""
    texts = [str(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return list(a) == list(b) and all(_same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        floats = a.dtype.kind == "f" == b.dtype.kind  # entries that nobody looks at may be NaN
        return bool(np.array_equal(a, b, equal_nan=floats))
    if isinstance(a, pa.Array) and isinstance(b, pa.Array):
        return bool(a.equals(b))
    arrays = (np.ndarray, pa.Array)  # beside something that is no such array
    return not isinstance(a, arrays) and not isinstance(b, arrays) and bool(a == b)
