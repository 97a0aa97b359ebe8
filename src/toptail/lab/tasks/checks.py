"""What a data set file must hold: keys, types, shapes, numbers, ends, simulator state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.names import TaskName

Arrays = dict[str, NDArray[Any]]

REQUIRED = ("observations", "actions", "terminals")
STATE_TOLERANCE = 1e-3
"""How far an observation may be from the simulator state it should repeat."""
_BOUND = 1.0 + 1e-6


def check_arrays(arrays: Arrays, source: str, task: TaskName | None) -> None:
    """Raise :class:`InputError` with one sentence unless the arrays are a sound data set."""
    for name in REQUIRED:
        if name not in arrays:
            raise InputError(
                f"{source} has no array '{name}' (it has {', '.join(sorted(arrays)) or 'none'}): "
                "expected OGBench's layout with observations, actions and terminals."
            )
    _check_types(arrays, source)
    _check_rows(arrays, source)
    _check_dimensions(arrays, source, task)
    _check_ends(arrays["terminals"], source)
    for name in ("observations", "actions", "qpos", "qvel"):
        if name in arrays:
            _check_finite(name, arrays[name], source)
    _check_actions(arrays["actions"], source)
    _check_simulator_state(arrays, source, task)


def _check_types(arrays: Arrays, source: str) -> None:
    allowed = {
        "observations": ("float32", "uint8"),
        "actions": ("float32", "int32", "int64"),
        "terminals": ("bool",),
        "qpos": ("float32",),
        "qvel": ("float32",),
        "button_states": ("int64",),
    }
    for name, types in allowed.items():
        if name in arrays and arrays[name].dtype.name not in types:
            raise InputError(
                f"{source}: '{name}' is {arrays[name].dtype.name}, expected {' or '.join(types)}: "
                f"save it with .astype('{types[0]}')."
            )


def _check_rows(arrays: Arrays, source: str) -> None:
    rows = arrays["observations"].shape[:1]  # of a single number: none
    flat = {"terminals": 1}
    if arrays["actions"].dtype.kind == "i":
        flat["actions"] = arrays["actions"].ndim  # Powderworld: one number per row
    for name, array in arrays.items():
        if name not in ("observations", *REQUIRED, "qpos", "qvel", "button_states"):
            continue
        dimensions = flat.get(name, 2)
        if name == "observations" and array.dtype == np.uint8:
            dimensions = array.ndim
        if array.ndim != dimensions:
            raise InputError(
                f"{source}: '{name}' has shape {array.shape}, expected {dimensions} dimension(s)."
            )
        if array.shape[:1] != rows:
            own, first = (sum(shape) for shape in (array.shape[:1], rows))
            raise InputError(
                f"{source}: '{name}' has {own} rows and 'observations' has {first}: "
                "every array needs one row per time step."
            )


def _check_dimensions(arrays: Arrays, source: str, task: TaskName | None) -> None:
    if task is None or task.dimensions is None:
        return
    for name, columns in zip(("observations", "actions"), task.dimensions, strict=True):
        if arrays[name].shape[1:] != (columns,):
            raise InputError(
                f"{source}: '{name}' has {arrays[name].shape[1:]} columns, but {task.name} has "
                f"({columns},): the file is of another task, or its name is wrong."
            )


def _check_ends(terminals: NDArray[np.bool_], source: str) -> None:
    if not len(terminals):
        raise InputError(f"{source} has no rows: expected at least one trajectory.")
    if not terminals[-1]:
        raise InputError(
            f"{source}: the last row ({len(terminals) - 1}) is not the end of a trajectory "
            "('terminals' is false there): the file was cut, or its ends were not stored."
        )
    single = np.flatnonzero(terminals & np.concatenate([[True], terminals[:-1]]))
    if len(single):
        raise InputError(
            f"{source}: the trajectory at row {single[0]} has a single row: expected at least "
            "two, so that it has a transition."
        )


def _check_finite(name: str, array: NDArray[Any], source: str) -> None:
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return
    row, column = np.argwhere(~np.isfinite(array))[0]
    raise InputError(
        f"{source}: '{name}' is {array[row, column]} at row {row}, column {column}: "
        "expected finite numbers; the file is damaged or the simulator had failed."
    )


def _check_actions(actions: NDArray[Any], source: str) -> None:
    if actions.dtype.kind != "f" or np.abs(actions).max() <= _BOUND:
        return
    row, column = np.argwhere(np.abs(actions) > _BOUND)[0]
    raise InputError(
        f"{source}: 'actions' is {actions[row, column]:.6g} at row {row}, column {column}: "
        "expected actions within ±1, clipped as they were executed."
    )


def _check_simulator_state(arrays: Arrays, source: str, task: TaskName | None) -> None:
    if ("qpos" in arrays) != ("qvel" in arrays):
        present, absent = ("qpos", "qvel") if "qpos" in arrays else ("qvel", "qpos")
        raise InputError(
            f"{source} has '{present}' but no '{absent}': a simulator state needs both."
        )
    if task is None or "qpos" not in arrays or arrays["observations"].dtype == np.uint8:
        return
    if task.has_buttons and "button_states" not in arrays:
        raise InputError(
            f"{source} has no 'button_states', which are part of {task.name}'s simulator state."
        )
    for observed, state, what in _repeated_state(arrays, task):
        if observed.shape != state.shape:
            raise InputError(
                f"{source}: '{what}' has {arrays[what].shape[1]} columns, which does not fit the "
                f"observations of {task.name}: the simulator state is of another task."
            )
        wrong = np.flatnonzero(np.abs(observed - state).max(axis=1) > STATE_TOLERANCE)
        if len(wrong):
            raise InputError(
                f"{source}: the observation of row {wrong[0]} does not match its '{what}' "
                f"({len(wrong)} such rows): the arrays are shifted or not of one simulation."
            )


def _repeated_state(
    arrays: Arrays, task: TaskName
) -> Iterator[tuple[NDArray[Any], NDArray[Any], str]]:
    """Yield the parts of an observation that repeat simulator state, beside that state."""
    observations, qpos, qvel = arrays["observations"], arrays["qpos"], arrays["qvel"]
    if task.family == "pointmaze":
        yield observations, qpos, "qpos"
    elif task.family in ("antmaze", "antsoccer"):
        positions = 15 if task.family == "antmaze" else 22
        yield observations[:, :positions], qpos, "qpos"
        yield observations[:, positions:], qvel, "qvel"
    elif task.family == "humanoidmaze":
        yield observations[:, :2], qpos[:, :2], "qpos"
        yield observations[:, 2:23], qpos[:, 7:], "qpos"
        yield observations[:, 42:], qvel, "qvel"
    elif task.family in ("cube", "scene", "puzzle"):
        yield observations[:, :6], qpos[:, :6], "qpos"
        yield observations[:, 6:12], qvel[:, :6], "qvel"
