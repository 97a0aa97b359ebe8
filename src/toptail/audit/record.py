"""What made a result, and how it becomes JSON."""

from __future__ import annotations

import math
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np


def versions() -> dict[str, str]:
    """Versions that decide a result's last digits."""
    found = {"python": platform.python_version()}
    for name in ("toptail", "numpy", "scipy", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def jsonable(value: Any) -> Any:
    """Plain Python of the same shape; whatever is not a finite number becomes None."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
