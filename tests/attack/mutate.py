"""Broken files: bytes that went wrong, and contents that nobody expects, from sound ones.

Every mutation follows from its random generator, so that a number names a file.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tests.attack.damage import NAMES, damaged, edit_csv, edit_json, edit_jsonl


def mutated(kind: str, sound: bytes, rng: Random) -> bytes:
    """A broken file of a kind (its ending), made of a sound one."""
    edit = _EDITS.get(kind)
    if edit is not None and rng.random() < 0.6:
        try:
            content = edit(sound, rng)
        except Exception:  # what was edited before need not be possible to edit again
            return damaged(sound, rng)
        if rng.random() < 0.85:
            return content
        sound = content
    return damaged(sound, rng)


# Arrays


def edit_npz(sound: bytes, rng: Random) -> bytes:
    """Named arrays with other types, shapes, names, or members that are no arrays."""
    with zipfile.ZipFile(io.BytesIO(sound)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(rng.choice((1, 1, 2))):
        name = rng.choice(list(members))
        choice = rng.random()
        if choice < 0.15:
            del members[name]
        elif choice < 0.25:
            members[f"{rng.choice(NAMES)}.npy".replace("\ud800", "?")] = members.pop(name)
        elif choice < 0.75:
            members[name] = _member(members[name], rng)
        elif choice < 0.9:
            members[name] = damaged(members[name], rng)
        else:
            members[rng.choice(("note.txt", "x.npy", "../x.npy", "header.npy"))] = b"no array"
        if not members:
            break
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name.replace("\x00", "") or "x"), content)
    return target.getvalue()


def _member(sound: bytes, rng: Random) -> bytes:
    choice = rng.random()
    if choice < 0.2:
        shape = rng.choice(("(1099511627776,)", "(2147483647, 2147483647)", "(-1,)", "(0, 0)", "x"))
        kind = rng.choice(("<f8", "|O", "<U1000000", "<M8[s]", "|V8", "<c16", ">i2"))
        return _npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}")
    if choice < 0.3:
        return _pickled()
    array = np.load(io.BytesIO(sound), allow_pickle=False)
    target = io.BytesIO()
    np.save(target, _array(array, rng), allow_pickle=False)
    return target.getvalue()


def _array(array: NDArray[Any], rng: Random) -> NDArray[Any]:
    """Another array of other type, shape or content."""
    shapes: tuple[Callable[[], NDArray[Any]], ...] = (
        lambda: array.astype(np.str_),
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[:0],
        lambda: array[: max(1, len(array) // 2)],
        lambda: np.repeat(array[..., None], 3, -1),
        lambda: np.full(array.shape, rng.choice((math.nan, math.inf, -1e308, 0.0, -1.0))),
        lambda: np.array(rng.choice((0, 1.5, "text", True, 2**60))),
        lambda: array.astype(rng.choice((np.int8, np.complex64, np.float16, np.bool_, np.uint64))),
        lambda: np.array([rng.choice(NAMES).replace("\ud800", "?")] * max(1, array.size)),
        lambda: np.zeros(array.shape, [("a", "<f4"), ("b", "<i8")]),
        lambda: np.full(array.shape, np.datetime64("NaT")),
    )
    try:
        with np.errstate(all="ignore"):
            return rng.choice(shapes)()
    except (TypeError, ValueError, IndexError, OverflowError):
        return np.zeros(3)


def _npy(header: str) -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + b"\x00" * 64


@cache
def _pickled() -> bytes:
    """An array of objects, one of which would run code where it is unpickled."""
    target = io.BytesIO()
    np.save(target, np.array([_Evil()], dtype=object), allow_pickle=True)
    return target.getvalue()


class _Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("unpickled",))


@cache
def bomb() -> bytes:
    """One million times smaller than what it says it holds: 4 GiB of zeros."""
    target = io.BytesIO()
    header = _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (536870912,), }")[:-64]
    with (
        zipfile.ZipFile(target, "w", zipfile.ZIP_BZIP2) as archive,
        archive.open("a.npy", "w") as f,
    ):
        f.write(header)
        for _ in range(64):  # as much as is quick to make: the header promises the rest
            f.write(bytes(1 << 20))
    return target.getvalue()


# Columns


def edit_parquet(sound: bytes, rng: Random) -> bytes:
    """A table with other types, names, nulls or metadata."""
    target = pa.BufferOutputStream()
    table = _table(pq.read_table(pa.BufferReader(sound)), rng)
    try:
        compression = rng.choice(("snappy", "none", "gzip", "zstd"))
        pq.write_table(table, target, compression=compression, use_dictionary=rng.random() < 0.5)
    except pa.ArrowException:
        return sound
    return bytes(target.getvalue())


def edit_arrow(sound: bytes, rng: Random) -> bytes:
    """The same in Arrow's own format."""
    target = pa.BufferOutputStream()
    table = _table(pa.feather.read_table(pa.BufferReader(sound)), rng)
    opener = pa.ipc.new_stream if rng.random() < 0.2 else pa.ipc.new_file
    with opener(target, table.schema) as writer:
        writer.write_table(table)
    return bytes(target.getvalue())


def _table(table: pa.Table, rng: Random) -> pa.Table:
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(table.num_columns)
        name, column = table.column_names[at], table.column(at).combine_chunks()
        choice = rng.random()
        if choice < 0.6:
            table = table.set_column(at, name, _column(column, rng))
        elif choice < 0.7:
            table = table.set_column(at, rng.choice(NAMES).replace("\ud800", "?"), column)
        elif choice < 0.8 and table.num_columns > 1:
            table = table.remove_column(at)
        elif choice < 0.9:
            roles = rng.choice((b"", b"{}", b"[]", b"null", b'{"scores": 3}', b'{"scores":["x"]}'))
            table = table.replace_schema_metadata({b"toptail": roles, b"pandas": roles})
        else:
            table = table.slice(0, rng.choice((0, 1, 2)))
    return table


def _column(column: pa.Array, rng: Random) -> pa.Array:
    size = len(column)
    made: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.nulls(size),
        lambda: pa.nulls(size, column.type),
        lambda: column.cast(pa.string()),
        lambda: column.cast(pa.string()).dictionary_encode(),
        lambda: pa.array([[1.0]] * size),
        lambda: pa.array([{"x": 1}] * size),
        lambda: pa.array([b"\xff\xfe"] * size, pa.binary()),
        lambda: pa.array([b"\xff\xfe"] * size, pa.binary()).view(pa.binary()),
        lambda: pa.array([rng.choice((math.nan, math.inf, 1e308, 5e-324))] * size),
        lambda: pa.array([2**63 - 1] * size),
        lambda: pa.array(range(size), pa.timestamp("ns")),
        lambda: pa.array(range(size), pa.int64()).cast(pa.decimal128(38, 2)),
        lambda: pa.array([True] * size),
        lambda: pa.array([rng.choice(NAMES).replace("\ud800", "?")] * size, pa.large_string()),
        lambda: pa.array([0.5] * size, pa.float32()).cast(pa.float16()),
        lambda: pa.array([None, *([1.5] * size)][:size]),
        lambda: pa.StringArray.from_buffers(
            size, pa.py_buffer(np.arange(size, -1, -1, dtype=np.int32)), pa.py_buffer(b"x" * size)
        ),
        lambda: pa.StringArray.from_buffers(
            size, pa.py_buffer(np.full(size + 1, -7, dtype=np.int32)), pa.py_buffer(b"x" * size)
        ),
    )
    try:
        return rng.choice(made)()
    except (pa.ArrowException, NotImplementedError):
        return pa.nulls(size)


# Tensors and code


def edit_safetensors(sound: bytes, rng: Random) -> bytes:
    """Tensors whose header says something else."""
    length = int.from_bytes(sound[:8], "little")
    header = edit_json(sound[8 : 8 + length], rng)
    said = rng.choice((len(header),) * 6 + (0, 1, len(header) + 5, 2**40, 2**64 - 1))
    return said.to_bytes(8, "little") + header + sound[8 + length :]


_BODIES: Final = (
    "return np.zeros(len(states))",
    "return np.zeros((len(states), 2))",
    "return np.zeros(len(states) + 1)",
    "return None",
    "return 'text'",
    "return [object()] * len(states)",
    "return np.full(len(states), np.nan)",
    "return np.full(len(states), 1e300)",
    "return np.arange(len(states)) * 1j",
    "return [[1], [2, 3]]",
    "raise SystemExit(0)",
    "raise SystemExit('bye\\x1b[31m')",
    "raise KeyboardInterrupt",
    "raise ValueError('two\\nlines \\x1b[31m')",
    "raise MemoryError",
    "raise GeneratorExit",
    "return score(states, actions, goals)",
    "states[:] = 0; actions[:] = 0; return states.sum(1)",
    "import sys; sys.exit(3)",
    "import os; os.environ.clear(); return np.zeros(len(states))",
    "print('\\x1b[2J'); return np.zeros(len(states))",
    "yield 1",
    "return lambda *a: 1",
)
_HEADS: Final = (
    "import numpy as np\n",
    "import nowhere\n",
    "import numpy as np\nraise SystemExit(0)\n",
    "import numpy as np\nraise BaseException('base')\n",
    "import numpy as np, sys\nsys.exit(5)\n",
    "",
    "\x00",
    "def :\n",
    "#" * 5000 + "\nimport numpy as np\n",
    "import numpy as np\nclass X(type): pass\n",
    "(" * 300 + "\n",
    "# coding: nowhere\nimport numpy as np\n",
)
_SIGNATURES: Final = (
    *("def score(states, actions, goals):", "def score():", "def score(states):"),
    *("def score(*rows):", "def score(a, b, c, d):", "async def score(a, b, c):", "class score:"),
    *("def score(states, actions, goals=None, *, more):", "def other(states, actions, goals):"),
)


def edit_code(sound: bytes, rng: Random) -> bytes:
    """A critic that does something else than score."""
    del sound
    head = rng.choice(_HEADS) if rng.random() < 0.3 else _HEADS[0]
    signature = rng.choice(_SIGNATURES) if rng.random() < 0.4 else _SIGNATURES[0]
    tail = rng.choice(
        ("", "score = 3\n", "score.step_reward = 'x'\n", "score.step_reward = 1e400\n")
    )
    text = f"{head}{signature}\n    {rng.choice(_BODIES)}\n{tail if rng.random() < 0.3 else ''}"
    return text.encode("utf-8", "surrogatepass")


_EDITS: Final[Mapping[str, Callable[[bytes, Random], bytes]]] = {
    "json": edit_json,
    "jsonl": edit_jsonl,
    "csv": edit_csv,
    "npz": edit_npz,
    "parquet": edit_parquet,
    "arrow": edit_arrow,
    "safetensors": edit_safetensors,
    "py": edit_code,
}
