"""Cases of a parametrized test of which only some run in `make test`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def quick(cases: Iterable[Any], chosen: Container[Any]) -> list[Any]:
    """All cases; those that are not chosen are marked slow."""
    return [
        case if case in chosen else pytest.param(case, marks=pytest.mark.slow) for case in cases
    ]
