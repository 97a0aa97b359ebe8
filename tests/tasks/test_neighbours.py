from __future__ import annotations

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.tasks import neighbours
from toptail.lab.tasks.neighbours import TREE_DIMENSIONS, Method, nearest_rows, nearest_to_points


def slow(
    points: np.ndarray, anchors: np.ndarray, count: int, trajectory: np.ndarray | None
) -> list[list[int]]:
    """Sort all rows by (distance, row)."""
    x = [[float(v) for v in row] for row in points.reshape(len(points), -1)]
    result = []
    for a in anchors.tolist():
        rest = [
            row
            for row in range(len(x))
            if row != a and (trajectory is None or trajectory[row] != trajectory[a])
        ]
        distance = {
            row: sum((p - q) ** 2 for p, q in zip(x[row], x[a], strict=True)) for row in rest
        }
        result.append(sorted(rest, key=lambda row: (distance[row], row))[:count])
    return result


@pytest.mark.parametrize("method", ["tree", "product"])
@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
@pytest.mark.parametrize("apart", [False, True])
def test_equal_to_sorting_all_rows(method: Method, dimension: int, apart: bool) -> None:
    rng = np.random.default_rng(dimension)
    # Whole numbers: distances are exact, and many are equal.
    points = rng.integers(0, 4, (150, dimension)).astype(np.float32)
    trajectory = np.repeat(np.arange(10), [5, 25, 15, 15, 15, 15, 15, 15, 10, 20])
    anchors = rng.choice(150, 30)
    group = trajectory if apart else None
    found = nearest_rows(points, anchors, 7, group, method)
    assert found.tolist() == slow(points, anchors, 7, group)
    assert found.dtype == np.int64


@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("dimension", [3, 29])
def test_both_methods_agree_on_real_numbers(dimension: int, shift: float) -> None:
    rng = np.random.default_rng(0)
    # A tight cloud inside a wide one, far from the origin: where products of vectors round most.
    points = (
        rng.normal(size=(3_000, dimension)) * np.where(np.arange(3_000) % 2, 1e-6, 10.0)[:, None]
    )
    points += shift
    anchors = np.arange(0, 3_000, 37)
    trajectory = np.arange(3_000) // 100
    for group in (None, trajectory):
        tree, product = (nearest_rows(points, anchors, 50, group, m) for m in ("tree", "product"))
        np.testing.assert_array_equal(tree, product)
    distance = np.linalg.norm(points[tree] - points[anchors, None], axis=2)
    assert (np.diff(distance, axis=1) >= -1e-12).all()


@pytest.mark.parametrize("method", ["tree", "product"])
def test_equal_points_and_all_neighbours(method: Method) -> None:
    same = np.zeros((6, 3))
    assert nearest_rows(same, np.array([2]), 5, method=method).tolist() == [[0, 1, 3, 4, 5]]
    apart = nearest_rows(same, np.array([2]), 4, np.array([0, 1, 1, 2, 2, 3]), method)
    assert apart.tolist() == [[0, 3, 4, 5]]


def test_blocks_of_anchors_join(monkeypatch: pytest.MonkeyPatch) -> None:
    points, anchors = np.random.default_rng(0).normal(size=(100, 12)), np.arange(0, 100, 3)
    whole = nearest_rows(points, anchors, 4)
    monkeypatch.setattr(neighbours, "_BLOCK", 700)  # seven anchors at a time
    np.testing.assert_array_equal(nearest_rows(points, anchors, 4), whole)


def test_the_dimension_chooses_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for name in ("_tree", "_product"):
        search = getattr(neighbours, name)

        def spy(*args: object, name: str = name, search: object = search) -> object:
            used.append(name)
            return search(*args)  # type: ignore[operator]

        monkeypatch.setattr(neighbours, name, spy)
    for dimension in (2, TREE_DIMENSIONS, TREE_DIMENSIONS + 1, 69):
        nearest_rows(np.eye(10, dimension), np.array([1]), 2)
    nearest_rows(np.zeros((5, 3, 23)), np.array([1]), 2)  # 69 dimensions, flattened
    assert used == ["_tree", "_tree", "_product", "_product", "_product"]


def test_what_cannot_be_found_is_refused() -> None:
    points, anchors = np.arange(12.0).reshape(6, 2), np.array([0, 3])
    trajectory = np.array([0, 0, 0, 1, 1, 2])
    assert nearest_rows(points, anchors, 5).shape == (2, 5)
    assert nearest_rows(points, anchors[:0], 5).shape == (0, 5)
    for given, message in (
        ((anchors, 6), r"Cannot find 6 neighbours: .* between 1 and 5"),
        ((anchors, 4, trajectory), r"Cannot find 4 neighbours: .* between 1 and 3"),
        ((anchors, 0), "Cannot find 0"),
        ((np.array([6]), 1), r"rows 0\.\.5"),
        ((np.array([-1]), 1), r"rows 0\.\.5"),
    ):
        with pytest.raises(InputError, match=message):
            nearest_rows(points, *given)
    points[4, 1] = np.nan
    with pytest.raises(InputError, match="Row 4 of the observations is not finite"):
        nearest_rows(points, anchors, 1)


@pytest.mark.parametrize("method", ["tree", "product"])
@pytest.mark.parametrize("dimension", [1, 2, 5, 40])
def test_free_points_equal_to_sorting_all_rows(method: Method, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    points = rng.integers(0, 4, (150, dimension)).astype(np.float32)
    # Some are rows, some lie between rows, one is far outside.
    targets = rng.integers(0, 8, (20, dimension)) / 2
    targets[0] = 1000.0
    found = nearest_to_points(points, targets, 7, method)
    for target, rows in zip(targets, found.tolist(), strict=True):
        distance = [
            sum((float(p) - q) ** 2 for p, q in zip(x, target, strict=True)) for x in points
        ]
        assert rows == sorted(range(150), key=lambda row: (distance[row], row))[:7]
    assert nearest_to_points(points, points[:5], 1, method)[:, 0].tolist() == [
        int(np.argmax((points == x).all(axis=1))) for x in points[:5]
    ]


@pytest.mark.parametrize("dimension", [3, 29])
def test_both_methods_agree_on_free_points(dimension: int) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(2_000, dimension)) + 1e5
    targets = (
        points[:40]
        + rng.normal(size=(40, dimension)) * np.where(np.arange(40) % 2, 1e-9, 50)[:, None]
    )
    tree, product = (nearest_to_points(points, targets, 30, m) for m in ("tree", "product"))
    np.testing.assert_array_equal(tree, product)


def test_free_points_that_have_no_neighbours_are_refused() -> None:
    points = np.arange(12.0).reshape(6, 2)
    assert nearest_to_points(points, points[:0], 6).shape == (0, 6)
    with pytest.raises(InputError, match=r"Cannot find 7 neighbours: .* between 1 and 6"):
        nearest_to_points(points, points, 7)
    with pytest.raises(InputError, match="2 columns and the points 1"):
        nearest_to_points(points, points[:, :1], 1)
    with pytest.raises(InputError, match="Row 2 of the points is not finite"):
        nearest_to_points(points, np.where(np.arange(6)[:, None] == 2, np.inf, points), 1)
