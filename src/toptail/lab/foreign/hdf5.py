"""HDF5 files by h5py, which is optional: arrays that lie in the file itself, and no others."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.files import check_readable
from toptail.pools.guard import check_unpacked, refusing

Arrays = dict[str, NDArray[Any]]


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file as h5py shows it."""
    check_readable(path)
    try:
        h5py = importlib.import_module("h5py")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: reading HDF5 needs h5py, which is not installed: pip install 'toptail[hdf5]'."
        ) from None
    with refusing(path, "is not a readable HDF5 file"), h5py.File(path, "r") as file:
        yield file


def arrays_of(group: Any, path: Path) -> Arrays:
    """Every array of a group and of the groups inside it, by its name: ``infos/qpos``.

    Links are not followed, since they may lead into other files, and neither are data that lie
    outside the file. What is read is looked at first: a small file may unpack to a large one.
    """
    found = dict(_sets(group, ""))
    size = sum(math.prod(s.shape) * s.dtype.itemsize for s in found.values())
    check_unpacked(path, size)
    return {name: np.asarray(data[()]) for name, data in found.items()}


def _sets(group: Any, above: str) -> Iterator[tuple[str, Any]]:
    for name in group:
        link = group.get(name, getlink=True)
        if type(link).__name__ != "HardLink":
            raise ValueError(f"'{above}{name}' is a link to somewhere else")
        member = group[name]
        if not hasattr(member, "shape"):
            yield from _sets(member, f"{above}{name}/")
        elif member.is_virtual or member.external:
            raise ValueError(f"'{above}{name}' lies outside the file")
        elif member.shape is not None and member.dtype.kind in "fiub":  # no texts, no objects
            yield f"{above}{name}", member
