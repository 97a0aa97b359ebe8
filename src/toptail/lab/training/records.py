"""What a run writes down about where it came from: hashes, versions, machine, time."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from toptail.pools import guard

PACKAGES = ("toptail", "jax", "jaxlib", "flax", "optax", "numpy", "scipy")
"""Packages whose versions can change a result's last digits."""


def digest(content: Mapping[str, Any]) -> str:
    """Hash of a JSON-able mapping; the same content gives the same 16 digits."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Say in which entries two contents differ: ``steps (100 and 200)``."""
    found: list[str] = []
    for name in sorted(a.keys() | b.keys()):
        one, other = a.get(name), b.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            found += differences(one, other, f"{prefix}{name}.")
        elif one != other:
            found.append(f"{prefix}{name} ({one} and {other})")
    return found


def versions() -> dict[str, str]:
    """Installed versions of everything that decides a result."""
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def machine() -> str:
    """The kind of machine and of accelerator, such as ``x86_64, NVIDIA H200``."""
    import jax  # only here: who reads what runs left needs no JAX

    return f"{platform.machine()}, {jax.devices()[0].device_kind}"


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file of a run that holds an object."""
    return guard.read_object(path, "a run without it is trained again")
