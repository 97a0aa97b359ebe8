"""Whether a training fits the device, said before it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from toptail.errors import NotDoneError
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.offline import OfflineData

_MEMINFO = Path("/proc/meminfo")


def tree_bytes(tree: Any) -> int:
    """Bytes of all arrays of a tree; shapes without arrays count as well."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def data_shapes(trajectories: Trajectories) -> OfflineData:
    """The shapes that a data set will have on the device, before anything is put there."""
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
    """Free memory of the device; on the CPU that of the machine; None where nobody says."""
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
    """What a compiled program holds beside its arguments, by the compiler's own account."""
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
