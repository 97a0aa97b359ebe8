"""How long work says where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Tick: TypeAlias = Callable[[str, float], None]
"""Called with what is being done, and the share of the whole that is done, from 0 to 1."""


def no_tick(_stage: str, _share: float) -> None:
    """Show no progress."""
