"""The JSON files that are part of this package."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def packaged(name: str) -> Any:
    """The content of a file beside this one."""
    return json.loads((files("toptail_paper.claims") / name).read_text(encoding="utf-8"))
