"""Stored results: the JSON files of a study's folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from toptail.errors import InputError


def read_stored(path: Path) -> Any:
    """Parse a stored JSON file; None where there is none."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            f"{path} cannot be read as JSON ({error}); delete it and run the study again."
        ) from None
