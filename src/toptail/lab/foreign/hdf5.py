"""HDF5 files by h5py, which is optional: arrays that lie in the file itself, and no others."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.pools.files import check_readable
from toptail.pools.guard import check_unpacked, refusing

Arrays = dict[str, NDArray[Any]]

_NAME: Final = 4_096
"""Bytes that a name counts for: groups inside groups can have many names in a small file."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """An HDF5 file as h5py shows it, with nothing in it that leads out of it.

    Links are not followed, since they may lead into other files, and neither are data that lie
    outside the file. Sizes are summed over all names before anything is read: a small file may
    unpack to a large one, and one part may have many names.
    """
    check_readable(path)
    try:
        h5py = importlib.import_module("h5py")
    except ModuleNotFoundError:
        raise InputError(
            f"{path}: reading HDF5 needs h5py, which is not installed: pip install 'toptail[hdf5]'."
        ) from None
    with refusing(path, "is not a readable HDF5 file"), h5py.File(path, "r") as file:
        names = size = 0
        for _, member in _members(file, ""):
            names += _NAME
            check_unpacked(path, names)
            size += 0 if member is None else math.prod(member.shape) * member.dtype.itemsize
        check_unpacked(path, size)
        yield file


def arrays_of(group: Any) -> Arrays:
    """Every array of a group and of the groups inside it, by its name: ``infos/qpos``."""
    return {name: np.asarray(data[()]) for name, data in _members(group, "") if data is not None}


def _members(group: Any, above: str) -> Iterator[tuple[str, Any]]:
    """Every name below a group, with its array; None for groups, texts and objects."""
    for name in group:
        link = group.get(name, getlink=True)
        if type(link).__name__ != "HardLink":
            raise ValueError(f"'{above}{name}' is a link to somewhere else")
        member = group[name]
        if not hasattr(member, "shape"):
            yield f"{above}{name}", None
            yield from _members(member, f"{above}{name}/")
        elif member.is_virtual or member.external:
            raise ValueError(f"'{above}{name}' lies outside the file")
        else:
            is_array = member.shape is not None and member.dtype.kind in "fiub"
            yield f"{above}{name}", member if is_array else None
