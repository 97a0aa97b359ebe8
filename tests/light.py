"""Python as a light install has it: without the packages that train and simulate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = ("jax", "jaxlib", "flax", "optax", "mujoco", "ogbench", "gymnasium", "torch")

_BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_light(code: str, *args: str | Path, missing: tuple[str, ...] = HEAVY) -> str:
    """Run code in a fresh process in which importing anything heavy fails; what it printed."""
    start = f"MISSING = {missing!r}\n{_BLOCK}\n{code}"
    command = [sys.executable, "-c", start, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
