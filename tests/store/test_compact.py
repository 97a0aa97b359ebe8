"""Arrays made small: order exactly, values nearly, and everything else bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.store.compact import Among, InOrder, Way, pack, unpack

Array = NDArray[Any]

ANY = st.floats(width=32, allow_subnormal=True)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
NEAR = st.integers(0, 40).map(lambda i: np.float32(1.0) + np.float32(i) * np.float32(2**-23))
"""Numbers that lie next to each other: some rows have fewer of them than codes."""
SHAPES = npst.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9)


def arrays(elements: Any) -> Any:
    return npst.arrays(np.float32, SHAPES, elements=elements)


def through(array: Array, way: Way | None = None, **beside: Array) -> tuple[Array, dict[str, Any]]:
    """The array as it comes back, and what is said of it."""
    packed, infos = pack({"x": array, **beside}, {} if way is None else {"x": way})
    back = unpack(packed, infos)["x"]
    assert back.shape == array.shape
    assert back.dtype == array.dtype
    return back, infos["x"]


def same_bits(a: Array, b: Array) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def ranks(row: Array) -> list[tuple[int, int]]:
    """How many numbers lie below each, and how many are equal: order with ties, slowly."""
    return [(sum(a < x for a in row), sum(a == x for a in row)) for x in row]


@given(arrays(ANY))
@settings(deadline=None)
def test_any_float_comes_back_bit_for_bit(array: Array) -> None:
    assert same_bits(through(array)[0], array)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(-5, 300).reshape(5, 61),
        np.tile(np.array([7, -1, 500_000]), (40, 20)),  # a table of few
        np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max]),
        np.arange(7, dtype=np.uint8),
        np.array([1.5, -0.0, 0.0, np.nan, -np.inf]),
        np.tile(np.array([True, False, False]), (5, 3)),
        np.array(["near", "far"]),
        np.zeros((3, 0), np.float32),
        np.array(4.0),
        np.linspace(0, 1, 3, dtype=np.longdouble),
        np.random.default_rng(0).normal(size=(3, 40)).astype(np.float32)[:, ::-1],
    ],
)
def test_every_other_kind_comes_back_bit_for_bit(array: Array) -> None:
    assert same_bits(through(array)[0], array)


@pytest.mark.parametrize("elements", [ANY, FINITE, NEAR, st.sampled_from([-1.0, 0.0, 2.5])])
@pytest.mark.parametrize("bits", [1, 3, 8, 12])
def test_the_order_of_every_row_is_kept_with_its_ties(elements: Any, bits: int) -> None:
    @given(arrays(elements))
    @settings(deadline=None, max_examples=60)
    def holds(array: Array) -> None:
        back, info = through(array, InOrder(bits))
        rows, others = (x.reshape(-1, array.shape[-1]) for x in (array, back))
        for row, other in zip(rows, others, strict=True):
            if not np.isfinite(row).all():
                assert same_bits(row, other)
                continue
            assert ranks(row) == ranks(other)
            assert other.min() == row.min()
            assert other.max() == row.max()
            spread = float(row.max()) - float(row.min())
            change = np.abs(other.astype(np.float64) - row).max()
            assert change <= info["error"] * spread * (1 + 1e-9)

    holds()


def slow_codes(row: Array, top: int) -> float:
    """The least largest distance of rising codes from where the numbers lie, by trying all.

    Numbers of a row are different here. Dynamic programming over codes: the best that can be done
    with the first i numbers if the last of them has the code c.
    """
    row = np.sort(row.astype(np.float64))
    wanted = np.rint((row - row[0]) / (row[-1] - row[0]) * top)
    best = {c: abs(c - wanted[0]) for c in range(top + 1)}
    for w in wanted[1:]:
        reach, after = np.inf, {}
        for c in range(top + 1):
            after[c] = max(reach, abs(c - w))
            reach = min(reach, best[c])
        best = after
    return float(min(best.values()))


@given(st.lists(st.integers(0, 10_000), min_size=2, max_size=12, unique=True))
@settings(deadline=None)
def test_different_numbers_are_moved_apart_by_as_little_as_can_be(numbers: list[int]) -> None:
    row = np.array([numbers], np.float32)
    top = 2**5 - 1
    packed, infos = pack({"x": row}, {"x": InOrder(5)})
    back = unpack(packed, infos)["x"]
    low, high = float(row.min()), float(row.max())
    own = np.rint((back.astype(np.float64) - low) / (high - low) * top)
    wanted = np.rint((row.astype(np.float64) - low) / (high - low) * top)
    assert np.abs(own - wanted).max() == slow_codes(row[0], top)


def test_rows_that_have_no_room_are_kept_exactly() -> None:
    row = np.arange(9.0, dtype=np.float32) ** 3
    array = np.stack([row, np.where(np.arange(9) < 3, row, 0.0).astype(np.float32)])
    back, info = through(array, InOrder(3))  # eight codes for nine numbers
    assert same_bits(back[0], array[0])
    assert info["parts"]["lost"]["shape"] == [1]


def test_what_stands_beside_a_row_is_exact_and_does_not_stretch_it() -> None:
    rng = np.random.default_rng(0)
    array = rng.normal(size=(50, 2, 9)).astype(np.float32)
    array[..., -1] = 1e6
    back, info = through(array, InOrder(8, exact_last=1))
    assert same_bits(back[..., -1], array[..., -1])
    assert same_bits(back[..., :-1].max(axis=-1), array[..., :-1].max(axis=-1))
    assert info["error"] < 0.02
    assert np.abs(back - array).max() < 0.1


def test_rows_of_nothing_but_what_stands_beside_are_exact() -> None:
    array = np.random.default_rng(0).normal(size=(5, 1)).astype(np.float32)
    assert same_bits(through(array, InOrder(8, exact_last=1))[0], array)


def test_eight_bits_move_scores_of_a_pool_by_little() -> None:
    scores = np.random.default_rng(0).normal(size=(1_000, 64)).astype(np.float32)
    errors = [through(scores, InOrder(bits))[1]["error"] for bits in (7, 8, 12)]
    assert errors[0] < 0.15
    assert errors[1] < 0.03
    assert errors[2] < 0.001


@pytest.mark.parametrize("elements", [FINITE, NEAR, st.sampled_from([-1.0, 0.0, np.nan, 2.5])])
def test_every_number_stays_on_its_side_of_all_others(elements: Any) -> None:
    pairs = st.tuples(arrays(elements), npst.arrays(np.float32, st.integers(1, 9), elements=FINITE))

    @given(pairs)
    @settings(deadline=None, max_examples=100)
    def holds(pair: tuple[Array, Array]) -> None:
        array, other = pair
        back, info = through(array, Among("other", points=4), other=other)
        assert np.array_equal(np.isnan(back), np.isnan(array))
        for x, y in zip(array.ravel(), back.ravel(), strict=True):
            if not np.isnan(x):
                assert [(x < o, x == o) for o in other] == [(y < o, y == o) for o in other]
        known = array[~np.isnan(array)].astype(np.float64)
        assert info["error"] <= 1 / 4 + 1e-6
        if known.size:
            ends = back[~np.isnan(array)]
            assert (ends.min(), ends.max()) == (known.min(), known.max())
            spread = known.max() - known.min()
            change = np.abs(back[~np.isnan(array)].astype(np.float64) - known).max()
            assert change <= info["error"] * spread * (1 + 1e-9)

    holds()


def test_means_of_other_goals_hardly_move() -> None:
    """A distance profile has the mean score of other goals as its zero: digits that are drawn."""
    rng = np.random.default_rng(0)
    scores, negatives = 2 + rng.normal(size=3_000), rng.normal(size=(3_000, 49))
    logits, tailed = (scores, negatives), (-np.exp(-scores), -np.exp(-negatives))
    for pair in (logits, tailed):
        own, array = (x.astype(np.float32) for x in pair)
        back, _ = through(array, Among("other"), other=own)
        scale = float(own.mean()) - float(array.mean())
        assert abs(float(back.mean()) - float(array.mean())) < 1e-4 * scale


def test_infinite_numbers_are_kept_exactly() -> None:
    array, other = np.array([np.inf, 1.0], np.float32), np.zeros(1, np.float32)
    assert same_bits(through(array, Among("other"), other=other)[0], array)


def test_the_other_array_must_be_there_and_exact() -> None:
    x, other = np.ones((2, 3), np.float32), np.arange(3, dtype=np.float32)
    ways: dict[str, Way] = {"x": Among("other")}
    for content, more in (({"x": x}, {}), ({"x": x, "other": other}, {"other": InOrder(8)})):
        with pytest.raises(InputError, match="'x' needs 'other' beside it, kept exactly"):
            pack(content, {**ways, **more})
