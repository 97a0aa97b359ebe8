"""Compiled programs of a batch of runs, and whether they fit the device's memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import NotDoneError
from toptail.lab.critics.base import Info, Params
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, run_steps
from toptail.lab.training.offline import OfflineData

_MEMINFO = Path("/proc/meminfo")


def tree_bytes(tree: Any) -> int:
    """Bytes of all arrays of a tree, or of arrays with its shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def data_shapes(trajectories: Trajectories) -> OfflineData:
    """The shapes that a data set will have on the device."""
    rows = len(trajectories)

    def shape(dtype: Any, *dims: int) -> Any:
        return jax.ShapeDtypeStruct(dims, dtype)

    return OfflineData(
        observations=shape(jnp.float32, rows, *trajectories.observations.shape[1:]),
        actions=shape(jnp.float32, rows, *trajectories.actions.shape[1:]),
        last=shape(jnp.int32, rows),
        transitions=shape(jnp.int32, len(trajectories.transitions)),
    )


def free_bytes(device: jax.Device | None = None) -> int | None:
    """Free memory of the device, or of the machine on a CPU; None where it is not known."""
    device = device or jax.devices()[0]
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    if device.platform != "cpu" or not _MEMINFO.is_file():
        return None
    lines = (line.split() for line in _MEMINFO.read_text().splitlines())
    kilobytes = {parts[0]: int(parts[1]) for parts in lines if len(parts) > 1}
    available = kilobytes.get("MemAvailable:")
    return None if available is None else 1024 * available


def program_bytes(compiled: Any) -> int:
    """Memory of a compiled program in addition to its arguments, by the compiler's analysis."""
    stats = compiled.memory_analysis()
    if stats is None:
        return 0
    new = stats.output_size_in_bytes - stats.alias_size_in_bytes
    return int(stats.temp_size_in_bytes + max(new, 0))


def check_fits(what: str, needed: int, free: int | None) -> None:
    """Raise :class:`NotDoneError` where less is free than needed."""
    if free is None or needed <= free:
        return
    raise NotDoneError(
        f"{what} needs {_gigabytes(needed)} of memory and {_gigabytes(free)} are free on "
        f"{jax.devices()[0]}: {_gigabytes(needed - free)} are missing; train fewer seeds at a "
        "time, choose a smaller batch size, or use a larger device."
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.2f} GB"


Advance: TypeAlias = Callable[[TrainState, OfflineData], tuple[TrainState, Info]]
"""(state, data) -> (state some steps later, info); states have one row per run, info [runs, steps].
"""


def width(seeds: int) -> int:
    """Rows of the state of a batch of so many seeds: at least two.

    XLA compiles a map of width 1 differently from a wider one. A seed that runs alone therefore
    gets a twin, and ends with the same bits as in a larger batch.
    """
    return max(seeds, 2)


def with_twin(seeds: Sequence[int]) -> list[int]:
    """The seed of each row of a batch's state: a single seed twice."""
    return [*seeds, *seeds][: width(len(seeds))]


def take_row(params: Params, row: int) -> Params:
    """One seed's parameters out of stacked ones on the host."""
    own: Params = jax.tree.map(lambda leaf: np.array(leaf[row]), params)
    return own


def state_shapes(config: TrainConfig, rows: int, data: OfflineData) -> TrainState:
    """Shapes of a batch's state; ``data`` may hold shapes alone."""
    return _state_shapes(config, rows, shapes_of(data))


def fresh_state(config: TrainConfig, seeds: Sequence[int], data: OfflineData) -> TrainState:
    """The state of a batch before its first step, one row per seed."""
    state: TrainState = _init(config)(keys_of(with_twin(seeds)), data)
    return state


def keys_of(seeds: Sequence[int]) -> jax.Array:
    """The key of each seed."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


@lru_cache(maxsize=4)
def compile_chunk(config: TrainConfig, steps: int, rows: int, shapes: OfflineData) -> Any:
    """Compile ``steps`` steps of a batch of ``rows`` rows, given only shapes.

    Returns
    -------
    A compiled `Advance` that takes over its state's memory.
    """
    advance = jax.vmap(lambda s, d: run_steps(config, s, d, steps), in_axes=(0, None))
    lowered = jax.jit(advance, donate_argnums=0).lower(state_shapes(config, rows, shapes), shapes)
    return lowered.compile()


def shapes_of(data: OfflineData) -> OfflineData:
    """The shapes of a data set on the device."""
    shapes: OfflineData = jax.eval_shape(lambda rows: rows, data)
    return shapes


@lru_cache(maxsize=16)
def _state_shapes(config: TrainConfig, rows: int, data: OfflineData) -> TrainState:
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    shapes: TrainState = jax.eval_shape(_init(config), keys, data)
    return shapes


@lru_cache(maxsize=16)
def _init(config: TrainConfig) -> Callable[..., Any]:
    return jax.jit(jax.vmap(partial(init_state, config), in_axes=(0, None)))
