"""Files of PyTorch's ``torch.save`` as NumPy arrays, without PyTorch and without unpickling."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.lab.foreign.pickled import Array, PickledName, read_pickle
from toptail.pools.guard import check_unpacked, refusing

_STORAGES: Final = {
    "FloatStorage": "<f4",
    "DoubleStorage": "<f8",
    "HalfStorage": "<f2",
    "LongStorage": "<i8",
    "IntStorage": "<i4",
    "ShortStorage": "<i2",
    "CharStorage": "<i1",
    "ByteStorage": "<u1",
    "BoolStorage": "|b1",
}


def read_torch(content: bytes, path: Path) -> Any:
    """Tensors and plain containers that ``torch.save`` wrote, as arrays; ``path`` is their file."""
    with (
        refusing(path, "holds no file of PyTorch", "expected what torch.save writes since 1.6"),
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        check_unpacked(path, sum(member.file_size for member in archive.infolist()))
        (index,) = (name for name in archive.namelist() if name.endswith("data.pkl"))
        root = index.removesuffix("data.pkl")
        if (
            f"{root}byteorder" in archive.namelist()
            and archive.read(f"{root}byteorder") != b"little"
        ):
            raise ValueError("its numbers are not in the usual byte order")
        known: dict[str, Array] = {}

        def storage(told: Any) -> Array:
            """The numbers of a storage, read once."""
            word, kind, key, _, count = told
            if word != "storage" or not isinstance(kind, PickledName) or not isinstance(key, str):
                raise ValueError("it refers to something other than numbers")
            if key not in known:
                dtype = np.dtype(_STORAGES[kind.name])
                known[key] = np.frombuffer(archive.read(f"{root}data/{key}"), dtype, int(count))
            return known[key]

        return read_pickle(archive.read(index), path, storage)
