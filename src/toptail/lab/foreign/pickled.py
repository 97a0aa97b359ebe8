"""Pickles read as data: their instructions are followed one by one, and nothing is ever called.

Python's own unpickler imports what a file names and calls it, which is as good as running the
file. With a ``find_class`` that gives stubs only, it still makes room for whatever number of
remembered parts a file names (a pickle of 8 bytes asks for 34 GB), and looks up keys that take
forever to hash (a tuple of itself twice, 60 times), before any stub is asked. This reader knows
arrays and plain containers, refuses every other name, and counts shared parts as often as they
are used.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from toptail.errors import refusing
from toptail.io.files import check_memory

Array = NDArray[Any]
Storages = Callable[[Any], Array]
"""A persistent id of PyTorch's -> the flat array that it stands for."""

_KINDS: Final = frozenset(
    ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "?")
)


class RefusedPickleError(ValueError):
    """A pickle asks for something other than arrays and plain containers."""


class PickledName(NamedTuple):
    """A name that a pickle asks for; what it stands for is never looked up."""

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
    """An array whose content comes with a later instruction."""

    keys: list[int] = field(default_factory=list)
    """Where it is remembered by then."""


class _Module:
    """An object of TorchScript's, whose tensors were looked at when they were made."""


def read_pickle(data: bytes, where: object, storages: Storages | None = None) -> Any:
    """The arrays and plain containers of a pickle; anything else is an ``InputError``.

    ``where`` is what the sentence calls the file. Where ``storages`` is given, tensors of PyTorch
    are read, too, with their numbers from there.
    """
    advice = "only arrays and plain containers are read, since unpickling runs code"

    def check(size: int) -> None:
        check_memory(where, size)

    with refusing(where, "cannot be read as a pickle", advice):
        machine = _Machine(storages, check)
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                check(_size(machine.stack[-1]))
                return machine.stack[-1]
            machine.follow(opcode.name, argument)
        raise RefusedPickleError("it has no end")


def _size(top: Any) -> int:
    """Bytes of all arrays, texts and containers; shared ones count as often as they are used."""
    sizes: dict[int, int] = {}
    opened: set[int] = set()
    waiting = [top]
    while waiting:
        value = waiting[-1]
        parts = () if id(value) in sizes else _parts(value)
        missing = [part for part in parts if id(part) not in sizes]
        if missing and id(value) in opened:
            raise RefusedPickleError("a part that contains itself")
        if missing:
            opened.add(id(value))
            waiting += missing
            continue
        if id(value) not in sizes:
            own = value.nbytes if isinstance(value, np.ndarray) else 8 + 16 * len(parts)
            own = len(value) if isinstance(value, str | bytes | bytearray) else own
            sizes[id(value)] = own + sum(sizes[id(part)] for part in parts)
        waiting.pop()
    return sizes[id(top)]


def _parts(value: Any) -> Collection[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list | tuple) else ()


class _Machine:
    """A pickle's stack, memory and marks."""

    def __init__(self, storages: Storages | None, check: Callable[[int], None]) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memory: dict[int, Any] = {}
        self._storages = storages
        self._check, self._copied = check, 0

    def follow(self, name: str, argument: Any) -> None:
        """Carry out one instruction."""
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in _EMPTY:
            self.stack.append(_EMPTY[name]())
        elif name in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._remember(len(self._memory) if argument is None else int(argument))
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self._memory[int(argument)])
        elif name in _TUPLES:
            self._take(_TUPLES[name])
        elif name == "GLOBAL":
            self.stack.append(PickledName(*argument.split(" ", 1)))
        elif (act := _ACTS.get(name)) is not None:
            act(self)
        elif name not in ("PROTO", "FRAME"):
            raise RefusedPickleError(f"the instruction {name}")

    def _remember(self, key: int) -> None:
        top = self.stack[-1]
        if isinstance(top, _Unfilled):
            top.keys.append(key)
        self._memory[key] = top

    def _take(self, count: int) -> None:
        """Make a tuple of the last so many."""
        if count > len(self.stack):
            raise RefusedPickleError("a tuple of more than there is")
        at = len(self.stack) - count
        self.stack[at:] = [tuple(self.stack[at:])]

    def _since_mark(self) -> list[Any]:
        at = self._marks.pop()
        taken = self.stack[at:]
        del self.stack[at:]
        return taken

    def mark(self) -> None:
        """Remember how high the stack is."""
        self._marks.append(len(self.stack))

    def collect(self) -> None:
        """A tuple of everything since the mark."""
        self.stack.append(tuple(self._since_mark()))

    def gather(self) -> None:
        """A list of everything since the mark."""
        self.stack.append(self._since_mark())

    def pair_up(self) -> None:
        """A dictionary of everything since the mark."""
        self.stack.append(_pairs(self._since_mark()))

    def append(self) -> None:
        """Put one more into a list."""
        last = self.stack.pop()
        _a(list, self.stack[-1]).append(last)

    def extend(self) -> None:
        """Put everything since the mark into a list."""
        items = self._since_mark()
        _a(list, self.stack[-1]).extend(items)

    def set_one(self) -> None:
        """Put one more into a dictionary."""
        value, key = self.stack.pop(), self.stack.pop()
        _a(dict, self.stack[-1]).update(_pairs((key, value)))

    def set_many(self) -> None:
        """Put everything since the mark into a dictionary."""
        pairs = _pairs(self._since_mark())
        _a(dict, self.stack[-1]).update(pairs)

    def name(self) -> None:
        """A name, of a module and what it has."""
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(PickledName(_a(str, module), _a(str, name)))

    def make(self) -> None:
        """What a call would give: an array or a container, made here."""
        given, what = _a(tuple, self.stack.pop()), self.stack.pop()
        maker = _MAKERS.get(what) if isinstance(what, PickledName) else None
        if maker is None and self._storages is not None and _is_scripted(what):
            maker = _Module
        if maker is None:
            raise RefusedPickleError(f"it asks for {_called(what)}")
        made = maker(*given)
        self._copied += len(made) if isinstance(made, bytes) else 0  # of a text that stays
        self._check(self._copied)
        self.stack.append(made)

    def fill(self) -> None:
        """Give an array its content, or a type its byte order."""
        state, what = self.stack.pop(), self.stack[-1]
        if isinstance(what, _Kind):
            what.order = _order(_a(tuple, state))
        elif isinstance(what, _Unfilled):
            _, shape, kind, fortran, raw = _a(tuple, state)
            self.stack[-1] = _array(shape, kind, raw, bool(fortran))
            self._memory.update(dict.fromkeys(what.keys, self.stack[-1]))
            what.keys.clear()
        elif not (isinstance(what, _Module) or (isinstance(what, dict) and _is_metadata(state))):
            raise RefusedPickleError(f"a state for {_called(what)}")

    def look_up(self) -> None:
        """A storage of PyTorch's."""
        if self._storages is None:
            raise RefusedPickleError("a reference to what is not in the file")
        self.stack.append(self._storages(self.stack.pop()))

    def drop(self) -> None:
        """Forget the last one."""
        self.stack.pop()


def _a(kind: type, value: Any) -> Any:
    """The value, which must be of a kind."""
    if not isinstance(value, kind):
        raise RefusedPickleError(f"{_called(value)} where a {kind.__name__} is expected")
    return value


def _called(value: object) -> str:
    return str(value) if isinstance(value, PickledName) else type(value).__name__


def _pairs(items: Sequence[Any]) -> dict[Any, Any]:
    """A dictionary of keys and values in turn; tuples inside tuples could take forever to hash."""
    if not all(key is None or isinstance(key, str | int | float) for key in items[::2]):
        raise RefusedPickleError("a dictionary whose keys are no names or numbers")
    return dict(zip(items[::2], items[1::2], strict=True))


def _is_metadata(state: object) -> bool:
    """Whether it is what PyTorch adds to a module's parameters: their versions."""
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
    code = _a(_Kind, kind)
    dtype = np.dtype(code.code).newbyteorder(code.order)
    sizes = tuple(int(_a(int, size)) for size in _a(tuple, shape))
    if not isinstance(raw, bytes | bytearray):
        raise RefusedPickleError("an array without its bytes")
    if min(sizes, default=0) < 0 or math.prod(sizes) * dtype.itemsize != len(raw):
        raise RefusedPickleError(f"an array of shape {sizes} with {len(raw)} bytes")
    flat = np.frombuffer(raw, dtype)
    return flat.reshape(sizes, order="F" if fortran else "C")


def _jax_array(fun: Any, _args: Any, state: Any, _about: Any = None) -> Array:
    """An array of JAX's, which holds the parts of one of NumPy's."""
    if fun not in _UNFILLED:
        raise RefusedPickleError(f"it asks for {_called(fun)}")
    _, shape, kind, fortran, raw = _a(tuple, state)
    return _array(shape, kind, raw, bool(fortran))


def _scalar(kind: Any, raw: Any) -> Any:
    return _array((), kind, raw, False)[()]


def _from_buffer(raw: Any, kind: Any, shape: Any, order: Any) -> Array:
    return _array(shape, kind, raw, order == "F")


def _encoded(text: Any, encoding: Any) -> bytes:
    """Bytes, as the pickles of old protocols have them."""
    if encoding != "latin1":
        raise RefusedPickleError("bytes in another encoding than Latin-1")
    return bytes(_a(str, text).encode("latin-1"))


def _mapping(items: Any = None) -> dict[Any, Any]:
    """The dictionary itself: copies could be asked for without end."""
    mapping: dict[Any, Any] = {} if items is None else _a(dict, items)
    return mapping


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_options: object) -> Array:
    sizes, steps = ([int(_a(int, n)) for n in _a(tuple, given)] for given in (size, stride))
    return strided(_a(np.ndarray, storage), int(_a(int, offset)), sizes, steps)


def strided(flat: Array, start: int, sizes: Sequence[int], steps: Sequence[int]) -> Array:
    """A tensor's numbers as they lie in a storage, which may hold those of others, too."""
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


def _parameter(tensor: Any, *_options: object) -> Any:
    return _a(np.ndarray, tensor)


def _is_scripted(what: object) -> bool:
    """Whether it names an object of TorchScript's that is no compiled one."""
    name = str(what)
    return name.startswith("__torch__.") and not name.startswith("__torch__.torch.classes.")


def _tagged(value: Any, tag: Any) -> Any:
    if "torch.classes" in _a(str, tag):
        raise RefusedPickleError(f"it asks for {tag}")
    return value


_UNFILLED: Final = tuple(
    PickledName(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")
)

_MAKERS: Final[dict[Any, Callable[..., Any]]] = {
    **dict.fromkeys(_UNFILLED, lambda *_given: _Unfilled()),
    **{PickledName(f"numpy.{core}.multiarray", "scalar"): _scalar for core in ("core", "_core")},
    **{
        PickledName(f"numpy.{core}.numeric", "_frombuffer"): _from_buffer
        for core in ("core", "_core")
    },
    PickledName("numpy", "dtype"): _kind,
    PickledName("jax._src.array", "_reconstruct_array"): _jax_array,
    PickledName("flax.core.frozen_dict", "FrozenDict"): _mapping,
    PickledName("collections", "OrderedDict"): _mapping,
    PickledName("_codecs", "encode"): _encoded,
    PickledName("torch._utils", "_rebuild_tensor_v2"): _tensor,
    PickledName("torch._utils", "_rebuild_parameter"): _parameter,
    PickledName("torch.jit._pickle", "restore_type_tag"): _tagged,
    **{
        PickledName("torch.jit._pickle", f"build_{kind}list"): lambda items: _a(list, items)
        for kind in ("int", "double", "bool", "tensor")
    },
}
"""The names that stand for something, and what is made in their place."""

_CONSTANTS: Final = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: Final[dict[str, type]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES: Final = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_LITERALS: Final = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    )
)
_ACTS: Final[dict[str, Callable[[_Machine], None]]] = {
    "MARK": _Machine.mark,
    "TUPLE": _Machine.collect,
    "LIST": _Machine.gather,
    "DICT": _Machine.pair_up,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "SETITEM": _Machine.set_one,
    "SETITEMS": _Machine.set_many,
    "STACK_GLOBAL": _Machine.name,
    "REDUCE": _Machine.make,
    "NEWOBJ": _Machine.make,
    "BUILD": _Machine.fill,
    "BINPERSID": _Machine.look_up,
    "POP": _Machine.drop,
}
