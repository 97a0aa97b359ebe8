"""The house: which room may import which, and what a light install may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import toptail

ROOT = Path(toptail.__file__).parent
HEAVY = ("jax", "flax", "optax", "mujoco", "ogbench", "gymnasium", "torch")
LIGHT_ROOMS = ("stats", "pools", "audit", "report")
# A room imports only from the rooms listed for it (and from toptail.errors).
ALLOWED = {
    "stats": set(),
    "pools": {"stats"},
    "audit": {"stats", "pools"},
    "report": {"stats", "pools", "audit"},
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("room", LIGHT_ROOMS)
def test_light_rooms_import_nothing_heavy_and_only_rooms_to_their_left(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        for module in imports(path):
            assert module.split(".")[0] not in HEAVY, f"{path} imports {module}"
            if module.startswith("toptail."):
                other = module.split(".")[1]
                assert other in {room, "errors"} | ALLOWED[room], f"{path} imports {module}"


def test_importing_toptail_and_its_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, toptail, toptail.cli; "
        f"print([m for m in {HEAVY!r} if m in sys.modules], 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False"
