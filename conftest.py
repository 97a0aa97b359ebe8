"""What holds for every test: JAX compiles in a hurry, and no worker needs more than 2 GB.

Nearly all programs of the tests run for less time than they take to compile, so they are compiled
without optimization, by the older and quicker of the two ways to write loops. Whoever sets these
variables decides: ``JAX_DISABLE_MOST_OPTIMIZATIONS=0 XLA_FLAGS= pytest`` compiles as usual.
Processes that tests start inherit them. Compiled programs are dropped between modules once they are
large; the last lines of a run say how much memory each worker needed at most.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any, Final

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As started in a script's background ('make test &'): the tests of Ctrl-C would wait for ever,
    # and so would the processes that they start, which inherit what is ignored, but no handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a worker for each core, and no more threads
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


def pytest_collection_finish() -> None:
    """Exempt what the imports made from later garbage collections, which then take less time."""
    gc.collect()
    gc.freeze()


LARGE: Final = 1 << 30
"""Bytes of a test process from which on compiled programs are dropped after a module."""

_peaks: Final[dict[str, int]] = {}


@pytest.fixture(scope="module", autouse=True)
def small_process() -> Iterator[None]:
    """Give compiled programs back, which JAX keeps for as long as the process lives."""
    yield
    if not is_large():
        return
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library keeps what it has
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def is_large() -> bool:
    """Whether this process holds more memory than a worker should keep between modules."""
    pages = Path("/proc/self/statm")
    return pages.exists() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > LARGE


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Note the most memory that this process had; a worker tells the one that started it."""
    peak = getrusage(RUSAGE_SELF).ru_maxrss << 10  # Linux counts in kilobytes
    getattr(session.config, "workeroutput", _peaks)["here"] = peak


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker told at its end; one that died tells nothing."""
    _peaks[node.gateway.id] = getattr(node, "workeroutput", {}).get("here", 0)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how much memory each process needed."""
    said = ", ".join(f"{name} {size / 2**30:.1f} GB" for name, size in sorted(_peaks.items()))
    terminalreporter.write_line(f"Memory at most: {said}")


@pytest.fixture
def usual_compiler() -> Iterator[None]:
    """Compile with optimization: long training, or bits that two programs must share."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


_BLANK: Final = {
    "svg": b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "png": bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
        "0000000a4944415478da63f80f00010101001cb08c990000000049454e44ae426082"
    ),
}


@pytest.fixture(scope="session", autouse=True)
def _blank_figures() -> Iterator[pytest.MonkeyPatch]:
    """Figures are drawn and not rendered, which takes longer than all the rest of a report."""
    from matplotlib.figure import Figure

    def savefig(_: Figure, file: Any, *, format: str | None = None, **__: Any) -> None:  # noqa: A002
        content = _BLANK[format or Path(file).suffix[1:]]
        if hasattr(file, "write"):
            file.write(content)
        else:
            Path(file).write_bytes(content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", savefig)
        yield patch


@pytest.fixture
def rendered_figures(_blank_figures: pytest.MonkeyPatch) -> Iterator[None]:
    """Figures are rendered as usual."""
    from matplotlib.figure import Figure

    blank = Figure.savefig
    _blank_figures.undo()
    yield
    _blank_figures.setattr(Figure, "savefig", blank)
