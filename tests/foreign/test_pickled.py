"""Pickles are read as data: sound ones as they are, hostile ones not at all."""

from __future__ import annotations

import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax.core import freeze

from toptail.errors import InputError
from toptail.lab.foreign.pickled import read_pickle


def sound() -> dict[str, Any]:
    return {
        "a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.int64(3)},
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "big endian": np.arange(3, dtype=">f8"),
        "flags": np.array([True, False]),
        "list": [1, 2.5, None, True, "text", (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), 10**30],
        "empty": [{}, [], ()],
        "ordered": OrderedDict(x=1),
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_and_containers_come_back(protocol: int) -> None:
    content = sound()
    content["again"] = content["a"]["kernel"]
    found = read_pickle(pickle.dumps(content, protocol), "x.pkl")
    assert found.keys() == content.keys()
    for name in ("fortran", "big endian", "flags"):
        np.testing.assert_array_equal(found[name], content[name])
        assert found[name].dtype == content[name].dtype
    np.testing.assert_array_equal(found["a"]["kernel"], content["a"]["kernel"])
    assert found["again"] is found["a"]["kernel"]
    assert found["a"]["step"] == 3
    assert found["list"] == content["list"]
    assert found["empty"] == [{}, [], ()]
    assert found["ordered"] == {"x": 1}


def test_jax_arrays_and_frozen_dictionaries_become_plain() -> None:
    content = {"w": jnp.arange(4.0).reshape(2, 2), "tree": freeze({"b": jnp.ones(())})}
    found = read_pickle(pickle.dumps(content), "x.pkl")
    np.testing.assert_array_equal(found["w"], [[0, 1], [2, 3]])
    assert type(found["w"]) is np.ndarray
    assert found["tree"]["b"].shape == ()


class Runs:
    """Would run a command where it is unpickled."""

    def __init__(self, function: Callable[..., Any], *given: Any) -> None:
        self.reduced = (function, given)

    def __reduce__(self) -> Any:
        return self.reduced


def _lines(*lines: bytes) -> bytes:
    return b"\n".join(lines) + b"\n."


def _tuples(depth: int) -> bytes:
    """A tuple of itself twice, again and again: few bytes that take forever to hash or print."""
    twice = b"".join(b"h%ch%c\x86q%c0" % (n, n, n + 1) for n in range(depth))
    return b"\x80\x02)q\x000" + twice


_JAX = pickle.dumps(jnp.ones(2))
_BYTES = pickle.dumps(np.zeros(3, np.int8), 4)

HOSTILE = {
    "a command": pickle.dumps(Runs(os.system, "touch unpickled")),
    "eval": pickle.dumps({"x": Runs(eval, "1 + 1")}),
    "getattr": pickle.dumps(Runs(getattr, "text", "upper")),
    "a module to import": _lines(b"cevil_module\nrun", b"(tR"),
    "an instance": _lines(b"(ios\nsystem"),
    "an object": _lines(b"(cos\nsystem", b"o"),
    "a state that is set": _lines(b"cevil_module\nRun", b")\x81}b"),
    "an extension": b"\x80\x02\x82\x01.",
    "a reference elsewhere": b"\x80\x02U\x01xQ.",
    "a named reference": _lines(b"Pelsewhere"),
    "an array of objects": pickle.dumps(np.array([{}], dtype=object)),
    "an array with parts": pickle.dumps(np.zeros(2, [("a", "f4")])),
    "dates": pickle.dumps(np.array(["2020-01-01"], "M8[D]")),
    "complex numbers": pickle.dumps(np.zeros(2, complex)),
    "a set": pickle.dumps({1, 2}),
    "a slice": pickle.dumps(slice(1)),
    "jax of something else": _JAX.replace(b"_reconstruct\x94", b"_xeconstruct\x94"),
    "more shape than bytes": _BYTES.replace(b"K\x03\x85", b"K\x09\x85"),
    "no end": pickle.dumps(sound())[:-1],
    "half": pickle.dumps(sound())[:200],
    "nothing": b"",
    "no pickle": b"hello",
    "bytes that are said to come": b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f",
    "a memory that is not there": b"\x80\x02j\xff\xff\xff\x7f.",
    "an append to nothing": b"\x80\x02K\x01K\x02a.",
    "a mark that is not there": b"\x80\x02t.",
    "a key that is a tuple of tuples": b"\x80\x02)q\x000" + _tuples(60)[6:] + b"}h\x3cK\x01s.",
    "a call of a tuple of tuples": _tuples(60) + b"h\x3c)R.",
    "a type that is a tuple of tuples": _tuples(60) + b"cnumpy\ndtype\nh\x3c\x85R.",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_ones_are_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_module.py").write_text("open('imported', 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match=r"^x.pkl cannot be read as a pickle \(") as refused:
        read_pickle(HOSTILE[name], "x.pkl")
    assert str(refused.value).isprintable()
    assert "evil_module" not in sys.modules
    assert [path.name for path in tmp_path.iterdir()] == ["evil_module.py"]


def test_those_pickles_do_what_they_are_taken_for() -> None:
    """That Python itself would run them, or the test above shows nothing."""
    assert pickle.loads(HOSTILE["eval"]) == {"x": 2}
    assert pickle.loads(HOSTILE["getattr"])() == "TEXT"


def test_a_large_number_in_the_memory_takes_no_memory() -> None:
    assert read_pickle(b"\x80\x02K\x07r\xff\xff\xff\x7f.", "x.pkl") == 7


def test_lists_in_lists_need_no_depth() -> None:
    assert isinstance(read_pickle(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "x"), list)


def test_shared_parts_are_not_copied() -> None:
    text = b"X" + (1_000).to_bytes(4, "little") + b"x" * 1_000 + b"q\x000"
    encoded = b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R"
    made_again = read_pickle(b"\x80\x02" + text + b"](" + encoded * 300 + b"e.", "x.pkl")
    assert len(made_again) == 300
    assert {id(part) for part in made_again} == {id(made_again[0])}
    ordered = b"ccollections\nOrderedDict\nh\x00\x85R"
    same = read_pickle(b"\x80\x02}q\x000](" + ordered * 300 + b"e.", "x.pkl")
    assert {id(part) for part in same} == {id(same[0])}
