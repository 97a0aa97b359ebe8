"""Returns of (query, candidate) pairs: computed once, kept in parts until the study is done."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.io.files import entries
from toptail.lab.store.units import Stored, fitting
from toptail.lab.tasks.trajectories import IntArray
from toptail.progress import Tick

Returns32: TypeAlias = NDArray[np.float32]
Judge: TypeAlias = Callable[[IntArray, IntArray, Callable[[int], None]], Returns32]
"""(query [m], candidate [m], called with how many rollouts have ended) -> returns [m, repeats]."""

PAIRS_PER_PART = 512
"""Pairs that are rolled out and stored together: what an interrupted run may lose. Fewer would
leave slots empty more often, when the last rollouts of a part are not over yet."""


class RolloutStore:
    """A table of returns that fills up.

    Finished parts lie in a folder until :meth:`clear`, those that others made in folders of their
    own below it. The returns depend on ``made_from``, and on
    query, candidate (the logged action is the last) and repetition, whose numbers are the shape.
    """

    def __init__(
        self, folder: Path, made_from: Mapping[str, Any], shape: tuple[int, int, int]
    ) -> None:
        self._folder, self._made_from = folder, dict(made_from)
        self._returns = np.full(shape, np.nan, np.float32)
        self._parts = len(entries(folder, "part-*.npz"))
        for path in entries(folder, "**/part-*.npz"):
            if (stored := fitting(path, self._made_from)) is not None:
                arrays = stored.arrays
                self.add(arrays["query"], arrays["candidate"], arrays["returns"])

    def add(self, query: IntArray, candidate: IntArray, returns: Returns32) -> None:
        """Enter known returns, ``[m, repeats]``."""
        self._returns[query, candidate] = returns

    def get(self, query: IntArray, candidate: IntArray) -> Returns32:
        """Returns of pairs ``[...]``: ``[..., repeats]``."""
        return self._returns[query, candidate]

    def fill(self, query: IntArray, candidate: IntArray, judge: Judge, tick: Tick) -> None:
        """Roll out the pairs (``[m]`` each) that are not known yet, part by part.

        The order of the pairs is kept; a pair that appears twice is rolled out once.
        """
        pair = query * self._returns.shape[1] + candidate
        _, first = np.unique(pair, return_index=True)
        first = np.sort(first)
        missing = first[np.isnan(self.get(query[first], candidate[first])).any(axis=-1)]
        repeats = self._returns.shape[2]
        total = len(missing) * repeats

        def told(before: int, ended: int) -> None:
            """Tell the progress after ``ended`` rollouts of a part, with ``before`` ahead of it."""
            tick(f"rollouts: {before + ended:,} of {total:,}", (before + ended) / total)

        for start in range(0, len(missing), PAIRS_PER_PART):
            part = missing[start : start + PAIRS_PER_PART]
            returns = judge(query[part], candidate[part], partial(told, start * repeats))
            arrays = {"query": query[part], "candidate": candidate[part], "returns": returns}
            Stored(self._made_from, arrays).write(self._path(self._parts))
            self._parts += 1
            self.add(**arrays)

    def clear(self) -> None:
        """Delete the parts: what they held is in the study's own file now."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, part: int) -> Path:
        return self._folder / f"part-{part:04d}.npz"
