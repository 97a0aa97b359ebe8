"""Pickles and files of ``torch.save`` read as data: nothing that they name is ever called.

Python's own unpickler imports what a file names and calls it, which is as good as running the
file. With a ``find_class`` that returns stubs only, it still makes room for whatever number of
memo entries a file names (a pickle of 8 bytes asks for 34 GB), and hashes keys that take forever
(a tuple of itself twice, 60 times), before any stub is asked. This reader follows the instructions
itself, knows arrays and plain containers, and refuses every other name. Parts that are used many
times are shared, never copied.
"""

from __future__ import annotations

import io
import math
import pickletools
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toptail.errors import refusing

Array = NDArray[Any]
Storages = Callable[[Any], Array]
"""A persistent id of PyTorch -> the flat array of that storage."""

_KINDS: Final = frozenset(
    ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "?")
)


class RefusedPickleError(ValueError):
    """A pickle asks for something other than arrays and plain containers."""


class PickledName(NamedTuple):
    """A name in a pickle; the object of that name is never looked up."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass
class _Kind:
    """A type of numbers, before and after its byte order is known."""

    code: str
    order: str = "="


@dataclass
class _Unfilled:
    """An array whose content comes with a later instruction, and its places in the memo."""

    keys: list[int] = field(default_factory=list)


def read_pickle(data: bytes, where: object, storages: Storages | None = None) -> Any:
    """The arrays and plain containers of a pickle; anything else is an ``InputError``.

    ``where`` names the file in the message. With ``storages``, tensors of PyTorch are read, too,
    with their numbers from there.
    """
    advice = "only arrays and plain containers are read, since unpickling runs code"
    with refusing(where, "cannot be read as a pickle", advice):
        reader = _Reader(storages)
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return reader.stack[-1]
            reader.carry_out(opcode.name, argument)
        raise RefusedPickleError("it has no end")


_FRESH: Final[dict[str, Callable[[], Any]]] = {
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_LITERALS: Final = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    )
)


class _Reader:
    """A pickle's stack, memo and marks."""

    def __init__(self, storages: Storages | None) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._storages = storages
        self._encoded: dict[int, tuple[str, bytes]] = {}

    def carry_out(self, name: str, argument: Any) -> None:
        stack = self.stack
        match name:
            case "PROTO" | "FRAME":
                pass
            case "PUT" | "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                self._remember(len(self._memo) if argument is None else int(argument))
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(self._memo[int(argument)])
            case "GLOBAL":
                stack.append(PickledName(*argument.split(" ", 1)))
            case "STACK_GLOBAL":
                last, module = stack.pop(), stack.pop()
                stack.append(PickledName(_require(str, module), _require(str, last)))
            case "MARK":
                self._marks.append(len(stack))
            case "TUPLE":
                stack.append(tuple(self._since_mark()))
            case "LIST":
                stack.append(self._since_mark())
            case "DICT":
                stack.append(_pairs(self._since_mark()))
            case "APPEND":
                last = stack.pop()
                _require(list, stack[-1]).append(last)
            case "APPENDS":
                items = self._since_mark()
                _require(list, stack[-1]).extend(items)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                _require(dict, stack[-1]).update(_pairs((key, value)))
            case "SETITEMS":
                pairs = _pairs(self._since_mark())
                _require(dict, stack[-1]).update(pairs)
            case "REDUCE" | "NEWOBJ":
                arguments, what = _require(tuple, stack.pop()), stack.pop()
                stack.append(self._build(what, arguments))
            case "BUILD":
                self._fill(stack.pop())
            case "BINPERSID":
                if self._storages is None:
                    raise RefusedPickleError("a reference to what is not in the file")
                stack.append(self._storages(stack.pop()))
            case "POP":
                stack.pop()
            case _:
                self._push(name, argument)

    def _push(self, name: str, argument: Any) -> None:
        if name in _FRESH:
            self.stack.append(_FRESH[name]())
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in _TUPLES and _TUPLES[name] <= len(self.stack):
            at = len(self.stack) - _TUPLES[name]
            self.stack[at:] = [tuple(self.stack[at:])]
        else:
            raise RefusedPickleError(f"the instruction {name}")

    def _remember(self, key: int) -> None:
        top = self.stack[-1]
        if isinstance(top, _Unfilled):
            top.keys.append(key)
        self._memo[key] = top

    def _since_mark(self) -> list[Any]:
        at = self._marks.pop()
        taken = self.stack[at:]
        del self.stack[at:]
        return taken

    def _build(self, what: Any, arguments: tuple[Any, ...]) -> Any:
        """What the call in the pickle would return, built here without calling it."""
        if not isinstance(what, PickledName):
            raise RefusedPickleError(f"it asks for {_type_name(what)}")
        if what == _ENCODE:
            return self._bytes(*arguments)
        if what in _MAKERS:
            return _MAKERS[what](*arguments)
        raise RefusedPickleError(f"it asks for {what}")

    def _bytes(self, text: Any, encoding: Any) -> bytes:
        """Bytes, as old protocols have them; those of one text are made once."""
        if encoding != "latin1":
            raise RefusedPickleError("bytes in another encoding than Latin-1")
        if id(text) not in self._encoded:
            self._encoded[id(text)] = text, _require(str, text).encode("latin-1")
        return self._encoded[id(text)][1]

    def _fill(self, state: Any) -> None:
        """Give an array its content, or a type its byte order."""
        what = self.stack[-1]
        if isinstance(what, _Kind):
            what.order = _order(_require(tuple, state))
        elif isinstance(what, _Unfilled):
            _, shape, kind, fortran, raw = _require(tuple, state)
            self.stack[-1] = _array(shape, kind, raw, bool(fortran))
            self._memo.update(dict.fromkeys(what.keys, self.stack[-1]))
            what.keys.clear()
        elif not (isinstance(what, dict) and _is_metadata(state)):
            raise RefusedPickleError(f"a state for {_type_name(what)}")


def _require(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise RefusedPickleError(f"{_type_name(value)} where a {kind.__name__} is expected")
    return value


def _type_name(value: object) -> str:
    return str(value) if isinstance(value, PickledName) else type(value).__name__


def _pairs(items: Sequence[Any]) -> dict[Any, Any]:
    """A dictionary from alternating keys and values.

    Keys are names or numbers alone: nested tuples could take forever to hash.
    """
    if not all(key is None or isinstance(key, str | int | float) for key in items[::2]):
        raise RefusedPickleError("a dictionary whose keys are no names or numbers")
    return dict(zip(items[::2], items[1::2], strict=True))


def _is_metadata(state: object) -> bool:
    """Whether a state holds only the version numbers that PyTorch stores with parameters."""
    return isinstance(state, dict) and set(state) <= {"_metadata"}


def _kind(code: object, *_options: object) -> _Kind:
    if not isinstance(code, str) or code not in _KINDS:
        raise RefusedPickleError("numbers of a type that is not read")
    return _Kind(code)


def _order(state: tuple[Any, ...]) -> str:
    """The byte order of a type that has no fields."""
    order, fields = state[1], state[2:5]
    if order not in ("<", ">", "=", "|") or any(part is not None for part in fields):
        raise RefusedPickleError("a type of numbers with parts")
    return str(order)


def _array(shape: Any, kind: Any, raw: Any, fortran: bool) -> Array:
    """An array of exactly as many bytes as its shape needs."""
    code = _require(_Kind, kind)
    dtype = np.dtype(code.code).newbyteorder(code.order)
    sizes = tuple(int(_require(int, size)) for size in _require(tuple, shape))
    if not isinstance(raw, bytes | bytearray):
        raise RefusedPickleError("an array without its bytes")
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != len(raw):
        raise RefusedPickleError(f"an array of shape {sizes} with {len(raw)} bytes")
    flat = np.frombuffer(raw, dtype)
    return flat.reshape(sizes, order="F" if fortran else "C")


def _jax_array(fun: Any, _args: Any, state: Any, _about: Any = None) -> Array:
    """An array of JAX, which is pickled as the parts of a NumPy array."""
    if fun not in _UNFILLED:
        raise RefusedPickleError(f"it asks for {_type_name(fun)}")
    _, shape, kind, fortran, raw = _require(tuple, state)
    return _array(shape, kind, raw, bool(fortran))


def _mapping(items: Any = None) -> dict[Any, Any]:
    """The dictionary itself, not a copy: a file could ask for copies without end."""
    mapping: dict[Any, Any] = {} if items is None else _require(dict, items)
    return mapping


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_options: object) -> Array:
    sizes, steps = (
        [int(_require(int, n)) for n in _require(tuple, numbers)] for numbers in (size, stride)
    )
    return _strided(_require(np.ndarray, storage), int(_require(int, offset)), sizes, steps)


def _strided(flat: Array, start: int, sizes: Sequence[int], steps: Sequence[int]) -> Array:
    """A tensor as a view of a storage, which other tensors may share."""
    if start < 0 or len(sizes) != len(steps) or min([*sizes, *steps], default=0) < 0:
        raise RefusedPickleError("a tensor that does not fit its storage")
    if math.prod(sizes) > flat.size:  # a step of 0 would make many of few
        raise RefusedPickleError("a tensor of more numbers than its storage has")
    if math.prod(sizes) == 0:
        return np.empty(sizes, flat.dtype)
    last = start + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    if last >= flat.size:
        raise RefusedPickleError("a tensor that does not fit its storage")
    strides = [step * flat.itemsize for step in steps]
    return np.lib.stride_tricks.as_strided(flat[start:], sizes, strides, writeable=False)


_ENCODE: Final = PickledName("_codecs", "encode")


def _of_numpy(module: str, name: str) -> tuple[PickledName, ...]:
    """A name in NumPy 1 and in NumPy 2."""
    return tuple(PickledName(f"numpy.{core}.{module}", name) for core in ("core", "_core"))


_UNFILLED: Final = _of_numpy("multiarray", "_reconstruct")

_MAKERS: Final[dict[Any, Callable[..., Any]]] = {
    **dict.fromkeys(_UNFILLED, lambda *_: _Unfilled()),
    **dict.fromkeys(
        _of_numpy("multiarray", "scalar"), lambda kind, raw: _array((), kind, raw, False)[()]
    ),
    **dict.fromkeys(
        _of_numpy("numeric", "_frombuffer"),
        lambda raw, kind, shape, order: _array(shape, kind, raw, order == "F"),
    ),
    PickledName("numpy", "dtype"): _kind,
    PickledName("jax._src.array", "_reconstruct_array"): _jax_array,
    PickledName("flax.core.frozen_dict", "FrozenDict"): _mapping,
    PickledName("collections", "OrderedDict"): _mapping,
    PickledName("torch._utils", "_rebuild_tensor_v2"): _tensor,
    PickledName("torch._utils", "_rebuild_parameter"): lambda x, *_: _require(np.ndarray, x),
}
"""Known names, and the function that makes the result of their call."""

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
    advice = "expected what torch.save writes since 1.6"
    with (
        refusing(path, "holds no file of PyTorch", advice),
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        require_plausible(sum(member.file_size for member in archive.infolist()), len(content))
        return _read_tensors(archive, f"{_root_of(archive)}data", path)


def require_plausible(size: int, packed: int) -> None:
    """Refuse a file of ``packed`` bytes whose parts take more than 1,000 times that, and 1 GB."""
    if size > max(1_000 * packed, 1 << 30):
        raise ValueError(f"it unpacks to {size / 1e9:,.1f} GB or more from {packed / 1e6:,.1f} MB")


def _root_of(archive: zipfile.ZipFile) -> str:
    """The folder of an archive of PyTorch in which everything lies, with a slash behind it."""
    (index,) = (name for name in dict.fromkeys(archive.namelist()) if name.endswith("data.pkl"))
    root = index.removesuffix("data.pkl")
    order = f"{root}byteorder"
    if order in archive.namelist() and archive.read(order) != b"little":
        raise ValueError("its numbers are not in the usual byte order")
    return root


def _read_tensors(archive: zipfile.ZipFile, index: str, path: Path) -> Any:
    """The content of ``INDEX.pkl`` in an archive, with its tensors' numbers from ``INDEX/``."""
    known: dict[str, bytes] = {}

    def storage(reference: Any) -> Array:
        word, kind, key, _, count = reference
        if word != "storage" or not isinstance(kind, PickledName) or not isinstance(key, str):
            raise ValueError("it refers to something other than numbers")
        if key not in known:
            known[key] = archive.read(f"{index}/{key}")
        if not 0 <= int(count) * np.dtype(_STORAGES[kind.name]).itemsize <= len(known[key]):
            raise ValueError("it has a storage of more numbers than are in the file")
        return np.frombuffer(known[key] or b"\0" * 8, _STORAGES[kind.name], int(count))

    return read_pickle(archive.read(f"{index}.pkl"), path, storage)
