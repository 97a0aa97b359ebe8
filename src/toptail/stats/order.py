"""Order statistics of numbers that never lie in memory together."""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from toptail.stats.best_of_k import Floats, Ints

_BITS: Final = 20
"""How many bits of a number one pass decides."""
_FEW: Final = 1 << 22
"""When at most so many numbers are left, they are stored and sorted in the next pass."""


class OrderStatistics:
    """The numbers at given ranks of a stream, exact, after at most five passes over it.

    Floats are ordered as their bits, read as whole numbers. A pass counts the numbers that share
    their highest bits with a wanted one; once those are few, the next pass stores and sorts them.
    Call :meth:`add` for every piece and :meth:`end` after the last one, until :attr:`found` is not
    None.

    Examples
    --------
    >>> middle = OrderStatistics(np.array([2]))
    >>> while middle.found is None:
    ...     for piece in ([5.0, -1.0], [3.0], [4.0, 0.0]):
    ...         middle.add(np.array(piece))
    ...     middle.end()
    >>> middle.found
    array([3.])
    """

    def __init__(self, ranks: Ints) -> None:
        self.found: Floats | None = None if ranks.size else np.empty(0)
        """The numbers ``[ranks]``, once they are known."""
        self._rank = ranks.astype(np.int64)
        self._known = 0
        self._prefix = np.zeros(ranks.size, dtype=np.uint64)
        self._open = np.zeros(1, dtype=np.uint64)
        self._counts = np.zeros((1, 1 << _BITS), dtype=np.int64)
        self._stored: list[NDArray[np.uint64]] | None = None

    def add(self, numbers: Floats) -> None:
        """Count or store one piece of the stream."""
        key = _keys(numbers)
        if self._known:
            head = key >> np.uint64(64 - self._known)
            at = np.searchsorted(self._open, head)
            at[at == self._open.size] = 0
            meant = self._open[at] == head
            key, at = key[meant], at[meant]
        else:
            at = np.zeros(key.size, dtype=np.int64)
        if self._stored is not None:
            self._stored.append(key)
            return
        width = self._counts.shape[1]
        digit = (key << np.uint64(self._known)) >> np.uint64(64 - _width(self._known))
        cell = at * width + digit.astype(np.int64)
        self._counts += np.bincount(cell, minlength=self._counts.size).reshape(-1, width)

    def blank(self) -> OrderStatistics:
        """An empty counter for other pieces of the same pass, for :meth:`merge`."""
        other = copy(self)
        other._counts = np.zeros_like(self._counts)
        other._stored = None if self._stored is None else []
        return other

    def merge(self, other: OrderStatistics) -> None:
        """Add the counts of a :meth:`blank` one."""
        if self._stored is not None and other._stored is not None:
            self._stored += other._stored
        else:
            self._counts += other._counts

    def end(self) -> None:
        """Finish a pass."""
        if self._stored is not None:
            self._settle(np.sort(np.concatenate(self._stored)))
            return
        bits = _width(self._known)
        below = np.cumsum(self._counts, axis=1)
        group = np.searchsorted(self._open, self._prefix)
        digit = np.array(
            [np.searchsorted(below[g], r, "right") for g, r in zip(group, self._rank, strict=True)],
            dtype=np.int64,
        )
        inside = self._counts[group, digit]
        self._rank -= below[group, digit] - inside
        self._prefix = (self._prefix << np.uint64(bits)) | digit.astype(np.uint64)
        self._known += bits
        self._open, first = np.unique(self._prefix, return_index=True)
        if self._known == 64:
            self.found = _numbers(self._prefix)
        elif int(inside[first].sum()) <= _FEW:
            self._stored = []
        else:
            self._counts = np.zeros((self._open.size, 1 << _width(self._known)), dtype=np.int64)

    def _settle(self, key: NDArray[np.uint64]) -> None:
        head = key >> np.uint64(64 - self._known)
        self.found = _numbers(key[np.searchsorted(head, self._prefix) + self._rank])


def _width(known: int) -> int:
    return min(_BITS, 64 - known)


def _keys(numbers: Floats) -> NDArray[np.uint64]:
    """Whole numbers in the order of the floats."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.uint64)
    flip = np.where(bits >> np.uint64(63), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1 << 63))
    return bits ^ flip


def _numbers(key: NDArray[np.uint64]) -> Floats:
    """The floats that :func:`_keys` came from."""
    flip = np.where(key >> np.uint64(63), np.uint64(1 << 63), np.uint64(0xFFFFFFFFFFFFFFFF))
    return (key ^ flip).view(np.float64)
