"""Python as a light install has it: without the packages that train and simulate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEAVY = ("jax", "jaxlib", "flax", "optax", "mujoco", "ogbench", "gymnasium", "torch")

_BLOCK = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {HEAVY!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


def run_light(code: str, *args: str | Path) -> str:
    """Run code in a fresh process in which importing anything heavy fails; what it printed."""
    command = [sys.executable, "-c", f"{_BLOCK}\n{code}", *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
