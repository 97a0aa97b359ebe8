"""A critic as a user adds one, in one file: the contract must hold for it, too.

`ranked` draws a further column of the batch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final

from toptail.lab.critics import registry
from toptail.lab.critics.base import Critic
from toptail.lab.critics.registry import CRITICS, Entry, load, read_entry

EXAMPLES: Final = ("ranked",)


def example_entry(name: str) -> Entry:
    entry = read_entry(Path(__file__).parent / f"{name}.py")
    assert entry is not None
    return entry


def class_of(name: str) -> type[Critic]:
    """The class of a critic of the registry, or of an example."""
    if name not in EXAMPLES:
        return load(name)
    module = import_module(f"{__name__}.{name}")
    kind: type[Critic] = getattr(module, name.capitalize())
    return kind


@contextmanager
def registered(name: str) -> Iterator[Entry]:
    """An example as if its file lay in the folder of the critics."""
    assert isinstance(CRITICS, dict)
    module = f"{registry.__package__}.{name}"
    CRITICS[name] = entry = example_entry(name)
    sys.modules[module] = import_module(f"{__name__}.{name}")
    caches = (registry._known,)
    for cache in caches:
        cache.cache_clear()
    try:
        yield entry
    finally:
        del CRITICS[name], sys.modules[module]
        for cache in caches:
            cache.cache_clear()
