"""How long-running work reports progress, and which program called the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

Tick: TypeAlias = Callable[[str, float], None]
"""Called with the stage of the work, and the share of it that is done, from 0 to 1."""


def no_tick(_stage: str, _share: float) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Caller:
    """The program on whose behalf the library works."""

    command: str | None = None
    """The command to record as what made a result; by default the name of the function."""
    tick: Tick = no_tick
    mapped: Callable[..., Iterator[Any]] = map
    """Works through the parts of a streamed table, called as ``map`` is; a cluster has its own."""


_CALLER: ContextVar[Caller] = ContextVar("toptail caller", default=Caller())  # noqa: B039


def caller() -> Caller:
    """The program that calls; by default one that records and shows nothing."""
    return _CALLER.get()


@contextmanager
def called_by(program: Caller) -> Iterator[None]:
    """Let audits and choices inside report to a program.

    >>> from toptail import audit, builtin_pools
    >>> with called_by(Caller(command="my tool")):
    ...     audit(builtin_pools(20, 4), resamples=100).to_dict()["record"]["command"]
    'my tool'
    """
    before = _CALLER.set(program)
    try:
        yield
    finally:
        _CALLER.reset(before)
