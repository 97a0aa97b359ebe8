"""Provenance of a result, and its conversion to JSON."""

from __future__ import annotations

import math
import platform
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from toptail.pools import JudgedPicks, ScoredPools
from toptail.provenance import installed


def versions() -> dict[str, str]:
    """Versions of the packages that decide a result's last digits."""
    packages = ("toptail", "numpy", "scipy", "pyarrow")
    return {"python": platform.python_version()} | {name: installed(name) for name in packages}


def record_of(data: ScoredPools | JudgedPicks, seed: int, command: str) -> dict[str, Any]:
    """Command, versions, seed and data of a result."""
    return {
        "command": command,
        "versions": versions(),
        "seed": seed,
        "source": data.source,
        "sha256": data.sha256,
    }


def jsonable(value: Any) -> Any:
    """Plain Python of the same shape; whatever is not a finite number becomes None."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
