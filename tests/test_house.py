"""The house: which room may import which, and what a light install may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import toptail
from tests.light import HEAVY

ROOT = Path(toptail.__file__).parent
LIGHT_ROOMS = ("stats", "pools", "audit", "report")
# Left to right: a room imports only from rooms before it (and from toptail.errors).
ORDER = (
    *("stats", "pools", "tasks", "critics", "training", "proposals", "judges", "audit", "report"),
    *("results", "studies", "bench", "commands", "cli"),
)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("room", ORDER)
def test_rooms_import_only_from_rooms_to_their_left(room: str) -> None:
    allowed = {"errors", *ORDER[: ORDER.index(room) + 1]}
    files = list((ROOT / room).rglob("*.py")) or [ROOT / f"{room}.py"]
    for path in files:
        for module in imports(path):
            if module.startswith("toptail."):
                assert module.split(".")[1] in allowed, f"{path} imports {module}"


@pytest.mark.parametrize("room", LIGHT_ROOMS)
def test_light_rooms_import_nothing_heavy(room: str) -> None:
    light = {"errors", *LIGHT_ROOMS}
    for path in (ROOT / room).rglob("*.py"):
        for module in imports(path):
            assert module.split(".")[0] not in HEAVY, f"{path} imports {module}"
            if module.startswith("toptail."):
                assert module.split(".")[1] in light, f"{path} imports {module}"


def test_every_room_has_its_place() -> None:
    rooms = {p.stem for p in ROOT.iterdir() if p.is_dir() or p.suffix == ".py"}
    assert rooms - {"__pycache__", "__init__", "__main__", "errors"} == set(ORDER)


def test_importing_toptail_and_its_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, toptail, toptail.cli; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"
