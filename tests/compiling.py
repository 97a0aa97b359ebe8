"""Programs that are compiled in a hurry, where compiling takes nearly all of a test's time."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest


@pytest.fixture
def quick_compiler() -> Iterator[None]:
    """Compile without optimization."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
