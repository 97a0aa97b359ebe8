"""Arrays made small, to be kept where scores are many and room is little.

`InOrder` keeps the order of the numbers of each row, ties included, and the numbers themselves to
within a share of the row's range. `Among` keeps on which side of every number of another array a
number lies. Everything else is kept exactly. What is measured of scores goes by their order
(best-of-K, tau_b, AUC, recall, deciles), so that most of it does not change by a bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError

_SHORT = 16
"""Rows shorter than this share one lowest number: their own would take more room than it saves."""


@dataclass(frozen=True)
class InOrder:
    """Order within each row, along the last axis; the row's lowest and highest are exact."""

    bits: int
    """Size of a code: numbers are rounded to ``2**bits - 1`` steps of the row's range, and moved
    apart, by as little as their order allows, where different ones meet."""

    exact_last: int = 0
    """So many numbers at the end of each row stand beside it: they are kept exactly, and neither
    their order with the others nor the row's range counts."""


@dataclass(frozen=True)
class Among:
    """Order with every number of another array, which is kept exactly."""

    other: str
    """Name of the other array."""

    points: int = 64
    """Equal parts of the array's own range; no number moves by more than one of them."""


Way: TypeAlias = InOrder | Among
"""How an array is kept that is not kept exactly."""

_Arrays: TypeAlias = dict[str, NDArray[Any]]
_Info: TypeAlias = dict[str, Any]


def pack(
    arrays: Mapping[str, NDArray[Any]], ways: Mapping[str, Way]
) -> tuple[_Arrays, dict[str, _Info]]:
    """Small arrays, and for each of ``arrays`` how it is to be made of them, as JSON has it.

    An array without a way is kept exactly. ``error`` says of the others by which share of a range,
    at most, a number was changed: of the row's with `InOrder`, of the array's with `Among`.
    """
    into: _Arrays = {}
    infos = {}
    for name, array in arrays.items():
        way = ways.get(name)
        if isinstance(way, InOrder) and array[..., way.exact_last :].size:
            infos[name] = _put_order(into, name, array, way)
        elif isinstance(way, Among) and array.size and not np.isinf(array).any():
            if way.other in ways or way.other not in arrays:
                raise InputError(f"'{name}' needs '{way.other}' beside it, kept exactly.")
            infos[name] = _put_among(into, name, array, arrays[way.other], way)
        else:
            infos[name] = _put(into, name, array)
    return into, infos


def unpack(packed: Mapping[str, NDArray[Any]], infos: Mapping[str, _Info]) -> _Arrays:
    """The arrays that `pack` made small."""
    found: _Arrays = {}
    for name in sorted(infos, key=lambda name: infos[name]["as"] == "among"):
        info = infos[name]
        if info["as"] == "order":
            found[name] = _take_order(packed, name, info)
        elif info["as"] == "among":
            found[name] = _take_among(packed, name, info, found[info["other"]])
        else:
            found[name] = _take(packed, name, info)
    return {name: found[name] for name in infos}


def _put(into: _Arrays, name: str, array: NDArray[Any]) -> _Info:
    """Keep an array exactly, in the form that compresses best."""
    about: _Info = {"dtype": array.dtype.str, "shape": list(array.shape)}
    if array.dtype.kind not in "biuf" or array.itemsize > 8 or not array.size:
        into[name] = array
        return about | {"as": "plain"}
    if array.dtype.kind == "b":
        into[name] = np.packbits(array.ravel())
        return about | {"as": "bits"}
    if array.dtype.kind == "i":  # rows of a data set; codes, which have no sign, are small already
        table, at = np.unique(array, return_inverse=True)
        if 8 * table.size < array.size:
            codes = at.reshape(array.shape).astype(np.uint32)
            parts = {"table": table, "codes": codes}
            return about | {"as": "table", **_put_parts(into, name, parts)}
    ordered = _ordered(np.ascontiguousarray(array)).reshape(_rows(array.shape))
    low = ordered.min(axis=-1, keepdims=True)
    above = ordered - low
    size = max(1, (int(above.max()).bit_length() + 7) // 8)
    into[f"{name}.low"] = low
    into[f"{name}.planes"] = np.stack([(above >> 8 * i).astype(np.uint8) for i in range(size)])
    return about | {"as": "planes"}


def _take(packed: Mapping[str, NDArray[Any]], name: str, info: _Info) -> NDArray[Any]:
    dtype, shape = np.dtype(info["dtype"]), tuple(info["shape"])
    if info["as"] == "plain":
        return packed[name]
    if info["as"] == "bits":
        return np.unpackbits(packed[name], count=prod(shape)).reshape(shape).astype(bool)
    if info["as"] == "table":
        parts = _take_parts(packed, name, info)
        return np.asarray(parts["table"][parts["codes"]])
    low, planes = packed[f"{name}.low"], packed[f"{name}.planes"]
    ordered = low + sum(plane.astype(low.dtype) << 8 * i for i, plane in enumerate(planes))
    return _number(ordered, dtype).reshape(shape)


def _put_parts(into: _Arrays, name: str, parts: Mapping[str, NDArray[Any]]) -> _Info:
    return {"parts": {part: _put(into, f"{name}.{part}", array) for part, array in parts.items()}}


def _take_parts(packed: Mapping[str, NDArray[Any]], name: str, info: _Info) -> _Arrays:
    return {part: _take(packed, f"{name}.{part}", each) for part, each in info["parts"].items()}


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    return (-1, shape[-1]) if shape and shape[-1] >= _SHORT else (1, -1)


def _ordered(array: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers from 0 up in the order of the numbers: near numbers are near, bit for bit."""
    kind, size = array.dtype.kind, array.itemsize
    bits = array.view(f"u{size}")
    top = bits.dtype.type(1 << 8 * size - 1)
    if kind == "f":
        return np.where(bits & top, ~bits, bits | top)
    return bits ^ top if kind == "i" else bits


def _number(ordered: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The inverse of `_ordered`."""
    top = ordered.dtype.type(1 << 8 * dtype.itemsize - 1)
    if dtype.kind == "f":
        ordered = np.where(ordered & top, ordered ^ top, ~ordered)
    elif dtype.kind == "i":
        ordered = ordered ^ top
    return np.ascontiguousarray(ordered).view(dtype)


def _put_order(into: _Arrays, name: str, array: NDArray[Any], way: InOrder) -> _Info:
    width = array.shape[-1] - way.exact_last
    rows = array[..., :width].reshape(-1, width)
    # A row that is not finite gets whatever codes, and is then found not to come back.
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)
    codes, ends = _order_codes(finite, way.bits)
    back = _from_codes(codes, ends, way.bits)
    lost = np.flatnonzero(~_same_order(rows, back))
    back[lost] = rows[lost]
    parts = {"codes": codes, "ends": ends, "lost": lost, "lost_rows": rows[lost]}
    parts["last"] = array[..., width:]
    about = {"as": "order", "bits": way.bits, "shape": list(array.shape)}
    return about | _put_parts(into, name, parts) | {"error": _error(rows, back, ends)}


def _take_order(packed: Mapping[str, NDArray[Any]], name: str, info: _Info) -> NDArray[Any]:
    parts, shape = _take_parts(packed, name, info), info["shape"]
    rows = _from_codes(parts["codes"], parts["ends"], info["bits"])
    rows[parts["lost"]] = parts["lost_rows"]
    last = parts["last"]
    return np.concatenate([rows.reshape(*shape[:-1], shape[-1] - last.shape[-1]), last], axis=-1)


def _order_codes(rows: NDArray[Any], bits: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes ``[r, n]`` and the rows' lowest and highest numbers, ``[2, r]``.

    Among different numbers codes rise by at least one where, and only where, a code less the number
    of different numbers below does not fall. Of all sequences that do not fall, the middle between
    the running largest from below and the running smallest from above is never far from the
    wanted one: its largest distance is the smallest there is.
    """
    top = 2**bits - 1
    order = np.argsort(rows, axis=-1, kind="stable")
    values = np.take_along_axis(rows, order, axis=-1).astype(np.float64)
    low, high = values[:, :1], values[:, -1:]
    width = np.where(high > low, high - low, 1.0)
    below = np.cumsum(np.diff(values, axis=-1, prepend=low) > 0, axis=-1)
    wanted = np.rint((values - low) / width * top).astype(np.int64) - below
    up = np.maximum.accumulate(wanted, axis=-1)
    down = np.minimum.accumulate(wanted[:, ::-1], axis=-1)[:, ::-1]
    room = np.maximum(top - below[:, -1:], 0)
    sorted_codes = np.minimum(np.clip((up + down) // 2, 0, room) + below, top)
    codes = np.empty(rows.shape, np.uint8 if bits <= 8 else np.uint16 if bits <= 16 else np.uint32)
    np.put_along_axis(codes, order, sorted_codes.astype(codes.dtype), axis=-1)
    return codes, np.stack([rows.min(axis=-1), rows.max(axis=-1)])


def _from_codes(codes: NDArray[Any], ends: NDArray[Any], bits: int) -> NDArray[Any]:
    """Numbers at equal steps between the ends, both of which come out exactly."""
    low, high = ends.astype(np.float64)[..., None]
    share = codes / (2**bits - 1)
    return np.asarray(low * (1 - share) + high * share, dtype=ends.dtype)


def _same_order(rows: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether the numbers of each row are finite, and order, with ties, as the other's do."""
    order = np.argsort(rows, axis=-1, kind="stable")
    own, other = (np.take_along_axis(x, order, axis=-1) for x in (rows, others))
    rises, ties = other[:, 1:] > other[:, :-1], other[:, 1:] == other[:, :-1]
    same = np.where(own[:, 1:] > own[:, :-1], rises, ties)
    return np.asarray(same.all(axis=-1) & np.isfinite(rows).all(axis=-1))


def _error(rows: NDArray[Any], back: NDArray[Any], ends: NDArray[Any]) -> float:
    """The largest change, as a share of the row's range; of rows that vary."""
    low, high = ends.astype(np.float64)
    varies = high > low
    change = np.abs(back[varies].astype(np.float64) - rows[varies]).max(axis=-1, initial=0.0)
    return float((change / (high - low)[varies]).max(initial=0.0))


def _put_among(
    into: _Arrays, name: str, array: NDArray[Any], other: NDArray[Any], way: Among
) -> _Info:
    """Codes are places in the grid; a number is there (``met``) or lies below. NaN comes last."""
    known = ~np.isnan(array)
    own = array[known]
    ends = np.array([own.min(), own.max()] if own.size else [], dtype=array.dtype)
    grid = _grid(ends, other, way.points)
    at = np.searchsorted(grid, array)
    met = grid[np.minimum(at, grid.size - 1)] == array
    means = _means(at[known & ~met], array[known & ~met], grid)[_wide(ends, grid, way.points)]
    parts = {"codes": at.astype(np.uint32), "met": met, "ends": ends, "means": means}
    info = {"as": "among", "other": way.other, "points": way.points}
    back = _in_grid(parts, grid, way.points)[known].astype(np.float64)
    spread = float(np.ptp(ends.astype(np.float64))) if own.size else 0.0
    error = float(np.abs(back - own).max(initial=0.0)) / spread if spread else 0.0
    return info | _put_parts(into, name, parts) | {"error": error}


def _take_among(
    packed: Mapping[str, NDArray[Any]], name: str, info: _Info, other: NDArray[Any]
) -> NDArray[Any]:
    parts = _take_parts(packed, name, info)
    return _in_grid(parts, _grid(parts["ends"], other, info["points"]), info["points"])


def _grid(ends: NDArray[Any], other: NDArray[Any], points: int) -> NDArray[Any]:
    """The other array's numbers and equal steps between one's own ends, each once, in order."""
    low, high = ends.astype(np.float64) if ends.size else (np.nan, np.nan)
    steps = np.linspace(low, high, points + 1)[: None if ends.size else 0]
    return np.unique(np.concatenate([other.ravel(), steps.astype(ends.dtype)]))


def _wide(ends: NDArray[Any], grid: NDArray[Any], points: int) -> NDArray[np.bool_]:
    """Which gaps below numbers of the grid are so wide that their own mean is worth its room."""
    gaps = np.diff(grid.astype(np.float64), prepend=np.inf, append=-np.inf)
    return gaps > np.ptp(ends.astype(np.float64)) / points / 8 if ends.size else gaps > np.inf


def _middles(grid: NDArray[Any]) -> NDArray[Any]:
    """A number within each gap of the grid, if there is any, NaN behind the last one."""
    exact = grid.astype(np.float64)
    inner = (exact[:-1] + exact[1:]) / 2
    return np.concatenate([exact[:1], inner, [np.nan]]).astype(grid.dtype)


def _means(at: NDArray[Any], numbers: NDArray[Any], grid: NDArray[Any]) -> NDArray[Any]:
    """The mean of the numbers in each gap; its middle where there are none."""
    count = np.bincount(at, minlength=grid.size + 1)
    total = np.bincount(at, numbers.astype(np.float64), grid.size + 1)
    mean = np.divide(total, count, where=count > 0, out=np.zeros(grid.size + 1))
    return np.where(count > 0, mean, _middles(grid)).astype(grid.dtype)


def _in_grid(parts: Mapping[str, NDArray[Any]], grid: NDArray[Any], points: int) -> NDArray[Any]:
    """Numbers of the grid, or what stands for those of a gap."""
    within = _middles(grid)
    within[_wide(parts["ends"], grid, points)] = parts["means"]
    exact = np.append(grid, grid.dtype.type(np.nan))
    return np.asarray(np.where(parts["met"], exact[parts["codes"]], within[parts["codes"]]))
