"""Where the files of other tools are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

FOREIGN: Final = Path(__file__).parent.parent / "fixtures" / "foreign"
DATA: Final = Path(__file__).parent.parent / "tasks" / "data"
POINT: Final = "pointmaze-medium-navigate-v0"


def checkpoint(agent: str, seed: int = 0) -> Path:
    return FOREIGN / "ogbench" / agent / f"sd{seed:03d}_20250101_000000" / "params_20.pkl"
