"""What holds for every test: JAX compiles in a hurry.

Nearly all programs of the tests run for less time than they take to compile, so they are compiled
without optimization, by the older and quicker of the two ways to write loops. Whoever sets these
variables decides: ``JAX_DISABLE_MOST_OPTIMIZATIONS=0 XLA_FLAGS= pytest`` compiles as usual.
Processes that tests start inherit them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As started in a script's background ('make test &'): the tests of Ctrl-C would wait for ever,
    # and so would the processes that they start, which inherit what is ignored, but no handler.
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


@pytest.fixture
def usual_compiler() -> Iterator[None]:
    """Compile with optimization: long training, or bits that two programs must share."""
    import jax

    before = jax.config.read("jax_disable_most_optimizations")
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)


@pytest.fixture(scope="module")
def blank_figures() -> Iterator[None]:
    """Figures of studies are drawn and not rendered, which takes longer than all the rest."""
    from toptail.lab.studies import page
    from toptail.lab.studies.figures import Drawing

    def drawn(drawing: Drawing) -> tuple[bytes, bytes]:
        drawing.draw()
        return b"<svg/>", b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "svg_and_png", drawn)
        yield
