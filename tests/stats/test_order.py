"""Order statistics of a stream against a sort of everything."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.stats import rank
from toptail.stats.rank import OrderStatistics

RNG = np.random.default_rng(0)
NUMBERS = {
    "normal": RNG.normal(size=3_001),
    "one number": np.zeros(500),
    "ties": RNG.integers(-3, 3, 2_000).astype(np.float64),
    "lowest": np.concatenate([np.full(400, -np.inf), RNG.normal(size=300)]),
    "close together": 1.0 + 1e-14 * RNG.integers(0, 9, 2_000),
    "far apart": RNG.normal(size=1_000) * 10.0 ** RNG.integers(-300, 300, 1_000),
}


@pytest.mark.parametrize("few", [1 << 22, 3])
@pytest.mark.parametrize("name", NUMBERS)
def test_a_stream_gives_what_a_sort_gives(
    name: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank, "_FEW", few)
    numbers = NUMBERS[name]
    ranks = np.unique([0, numbers.size - 1, *RNG.integers(0, numbers.size, 9)])
    found = OrderStatistics(ranks)
    while found.found is None:
        one, other = found.blank(), found.blank()
        for piece in np.array_split(numbers, 5):
            (one if piece.size % 2 else other).add(piece)
        found.merge(one)
        found.merge(other)
        found.end()
    assert np.array_equal(found.found, np.sort(numbers)[ranks])


def test_no_rank_needs_no_pass() -> None:
    assert OrderStatistics(np.empty(0, dtype=np.int64)).found is not None
