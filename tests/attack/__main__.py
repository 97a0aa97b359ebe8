"""The attack's command line.

    python -m tests.attack [crash|fuzz|cli|names|server|faults] [--budget N] [--state DIR]
    python -m tests.attack figures [--state DIR]

Without a part all of them run, one after the other, up to their goals. What was done is in the
state's folder: the same command goes on, and the figures add up as long as the attacked code is
the same. ``figures`` prints them and writes them into docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.attack.figures import line_of, write_figures
from tests.attack.forks import ROOT
from tests.attack.state import PARTS, State


def main() -> int:
    """Attack; the exit code is 1 where something did not hold."""
    words = _words()
    folder = words.state.resolve()
    if words.part == "figures":
        print(write_figures(folder, ROOT / "docs" / "reliability.md"))
        return 0
    held = True
    for part in [words.part] if words.part else PARTS:
        module: Any = import_module(f"tests.attack.{part}")
        attack: Callable[..., None] = module.attack
        state = State(folder, part)
        left = module.GOAL - state.made if words.budget is None else words.budget
        print(f"{part}: {max(left, 0):,} attacks to make", flush=True)
        attack(state, folder / part, left, words.seconds)
        state.save()
        print(f"{part}: {line_of(state)}", flush=True)
        held = held and not state.findings
    return 0 if held else 1


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="?", choices=[*PARTS, "figures"])
    parser.add_argument("--budget", type=int, help="attacks to make now; all that are left")
    parser.add_argument("--seconds", type=float, help="stop each part after so long")
    parser.add_argument("--state", type=Path, default=ROOT / "runs" / "attack")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
