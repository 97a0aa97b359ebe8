"""The attack's command line.

    python -m tests.attack [crash|fuzz|cli|names|server|faults ...] [--budget N] [--state DIR]
    python -m tests.attack --workers 12 --seconds 540
    python -m tests.attack figures [--state DIR]

Without a part all of them run, one after the other, up to their goals; with several workers at
the same time. What was done is in the state's folder: the same command goes on, and the figures
add up as long as the attacked code is the same. ``figures`` prints them and writes them into
docs/reliability.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from tests.attack.figures import line_of, write_figures
from tests.attack.forks import ROOT, die_with_parent
from tests.attack.state import PARTS, State
from tests.attack.turns import Turns, alone
from tests.attack.workers import route, taken, work, work_together


def main() -> int:
    """Attack; the exit code is 1 where something did not hold."""
    words = _words()
    folder, parts = words.state.resolve(), words.parts or list(PARTS)
    if parts == ["figures"]:
        print(write_figures(folder, ROOT / "docs" / "reliability.md"))
        return 0
    if words.worker is not None:
        return _help(words, folder, parts)
    with alone(folder):
        return _attack(words, folder, parts)


def _attack(words: argparse.Namespace, folder: Path, parts: Sequence[str]) -> int:
    for part in parts:
        _begin(folder, part, words.budget)
    held = words.workers == 1 or work_together(folder, parts, words.workers, words.seconds)
    for part in parts:
        state = State(folder, part) if words.workers > 1 else work(folder, part, words.seconds)
        print(f"{part}: {line_of(state)}", flush=True)
        held = held and not state.whole.findings
    return 0 if held else 1


def _begin(folder: Path, part: str, budget: int | None) -> None:
    """Say, and write down for the workers, how many attacks there are to make."""
    left = import_module(f"tests.attack.{part}").GOAL - State(folder, part).made
    left = max(left, 0) if budget is None else budget
    Turns.open(taken(folder, part), left)
    print(f"{part}: {left:,} attacks to make", flush=True)


def _help(words: argparse.Namespace, folder: Path, parts: Sequence[str]) -> int:
    """Be one of several workers, until all parts are made or the time of all is up."""
    die_with_parent()
    failed = 0
    end = None if words.seconds is None else time.monotonic() + words.seconds
    for part, share in route(words.worker, words.workers, parts):
        seconds = None if end is None else end - time.monotonic()
        try:
            work(folder, part, seconds, words.worker, share)
        except Exception:  # the other parts are made all the same
            traceback.print_exc()
            failed = 1
    return failed


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "figures"], metavar="part")
    parser.add_argument("--budget", type=int, help="attacks of a part to make now; all left")
    parser.add_argument(
        "--seconds", type=float, help="stop each part after so long; several workers: the whole"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes that share the attacks")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--state", type=Path, default=ROOT / "runs" / "attack")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
