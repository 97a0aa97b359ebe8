"""Files of PyTorch's ``torch.save`` as NumPy arrays, without PyTorch and without unpickling."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.errors import refusing
from toptail.io.files import check_memory
from toptail.lab.foreign.pickled import Array, PickledName, read_pickle

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
    "BFloat16Storage": "<u2",  # not as numbers, which NumPy lacks, but of this size
}


def read_torch(content: bytes, path: Path) -> Any:
    """Tensors and plain containers that ``torch.save`` wrote, as arrays; ``path`` is their file."""
    with (
        refusing(path, "holds no file of PyTorch", "expected what torch.save writes since 1.6"),
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        check_memory(path, sum(member.file_size for member in archive.infolist()))
        return read_tensors(archive, f"{root_of(archive)}data", path)


def root_of(archive: zipfile.ZipFile) -> str:
    """The folder of an archive of PyTorch's that everything lies in, with a slash behind it."""
    (index,) = (name for name in dict.fromkeys(archive.namelist()) if name.endswith("data.pkl"))
    root = index.removesuffix("data.pkl")
    order = f"{root}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise ValueError("its numbers are not in the usual byte order")
    return root


def read_tensors(archive: zipfile.ZipFile, index: str, path: Path) -> Any:
    """What ``INDEX.pkl`` of an archive holds, with the numbers of its tensors from ``INDEX/``."""
    known: dict[str, bytes] = {}

    def storage(told: Any) -> Array:
        """The numbers of a storage, whose bytes are read once."""
        word, kind, key, _, count = told
        if word != "storage" or not isinstance(kind, PickledName) or not isinstance(key, str):
            raise ValueError("it refers to something other than numbers")
        if key not in known:
            known[key] = archive.read(f"{index}/{key}")
        if not 0 <= int(count) * np.dtype(_STORAGES[kind.name]).itemsize <= len(known[key]):
            raise ValueError("it has a storage of more numbers than are in the file")
        return np.frombuffer(known[key] or b"\0" * 8, _STORAGES[kind.name], int(count))

    return read_pickle(archive.read(f"{index}.pkl"), path, storage)
