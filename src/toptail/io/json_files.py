"""JSON: files written whole with finite numbers, read with an error that says what to do."""

from __future__ import annotations

import json
import math
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.files import atomic

_ADVICE: Final = "delete it and run the same command again"


def write_json(path: Path, content: Any) -> None:
    """Write JSON with full precision, atomically; NaN and infinity raise ``ValueError``."""
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    atomic(path, lambda target: target.write_text(text, encoding="utf-8"))


def read_json(path: Path, advice: str = _ADVICE, what: str = "cannot be read as JSON") -> Any:
    """The content of a JSON file; an :class:`InputError` with ``advice`` where it is damaged."""
    with refusing(path, what, advice):
        text = path.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=_finite, parse_float=_finite)


def read_json_if_exists(path: Path) -> Any:
    """The content of a JSON file; None where there is no such file."""
    return read_json(path) if path.is_file() else None


def read_object(path: Path, advice: str = _ADVICE) -> dict[str, Any]:
    """The content of a JSON file that must hold an object."""
    content = read_json(path, advice)
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object: {advice}.")
    return content


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is no number of JSON")
    return number


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
