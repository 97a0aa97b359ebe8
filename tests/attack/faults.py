"""Faults of the surroundings: full and read-only disks, odd terminals, locales and homes.

A command that cannot do what it was asked for says so in a sentence and by its exit code; once
the fault is gone, the same command does it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.attack.cases import CASES, Case
from tests.attack.cli import CODES, printable
from tests.attack.crash import Ground, Undisturbed, battleground
from tests.attack.events import Act
from tests.attack.forks import ROOT
from tests.attack.same import differences, snapshot
from tests.attack.state import State
from tests.attack.world import make_world

DISKS: Final[tuple[Act, ...]] = ("full", "read-only")
PER_CASE: Final = 12
"""Events of each case at which the disk fails, for each way in which it does."""

_AUDIT: Final = "audit scores.csv --resamples 100 --out out"
_NO_FCNTL: Final = "import sys; sys.modules['fcntl'] = None; from toptail.cli import run; run()"


def _usual() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "JAX_PLATFORMS": "cpu"}


def _call(
    folder: Path, line: str, *, how: str = "", limit: str = "", **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own; ``how`` is what the shell adds."""
    python = f"{sys.executable} -m toptail {line}" if not more.get("code") else ""
    environment = {**_usual(), **more.get("environment", {})}
    for name in more.get("without", ()):
        environment.pop(name, None)
    return subprocess.run(
        ["/bin/bash", "-c", f"{limit} exec {python or more['code']} {how}"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
    )


Fault = Callable[[Path], "subprocess.CompletedProcess[str]"]

SURROUNDINGS: Final[Mapping[str, tuple[Fault, tuple[int, ...]]]] = {
    "output to a full disk": (lambda f: _call(f, _AUDIT, how=">/dev/full"), (3,)),
    "help to a full disk": (lambda f: _call(f, "--help", how=">/dev/full"), (0, 3)),
    "closed output": (lambda f: _call(f, _AUDIT, how=">&-"), (0, 3)),
    "closed output and errors": (lambda f: _call(f, _AUDIT, how=">&- 2>&-"), (0, 3)),
    "closed input": (lambda f: _call(f, _AUDIT, how="<&-"), (0,)),
    "a reader that has seen enough": (lambda f: _call(f, _AUDIT, how="| head -c 1"), (0,)),
    "an ASCII terminal": (
        lambda f: _call(f, _AUDIT, environment={"PYTHONIOENCODING": "ascii"}), (0,),
    ),
    "an ASCII locale": (
        lambda f: _call(f, _AUDIT, environment={"LC_ALL": "C", "PYTHONUTF8": "0",
                                               "PYTHONCOERCECLOCALE": "0"}), (0,),
    ),
    "an unknown locale": (lambda f: _call(f, _AUDIT, environment={"LC_ALL": "xx_YY"}), (0,)),
    "no home": (lambda f: _call(f, "data list", without=["HOME"]), (0, 2)),
    "a home that is not there": (
        lambda f: _call(f, "data list", environment={"HOME": "/nowhere/at/all"}), (0,),
    ),
    "no path": (lambda f: _call(f, _AUDIT, environment={"PATH": ""}), (0,)),
    "no columns": (lambda f: _call(f, _AUDIT, environment={"COLUMNS": "0"}), (0,)),
    "columns that are no number": (
        lambda f: _call(f, _AUDIT, environment={"COLUMNS": "wide"}), (0,),
    ),
    "no folder for temporary files": (
        lambda f: _call(f, _AUDIT, environment={"TMPDIR": "/nowhere"}), (0, 3),
    ),
    "a file that may not grow": (lambda f: _call(f, _AUDIT, limit="ulimit -f 8;"), (3,)),
    "a file of size 0": (lambda f: _call(f, _AUDIT, limit="ulimit -f 0;"), (3,)),
    "few open files": (lambda f: _call(f, _AUDIT, limit="ulimit -n 12;"), (0, 3)),
    "little memory": (lambda f: _call(f, _AUDIT, limit="ulimit -v 1500000;"), (0, 3)),
    "little memory to train": (lambda f: _call(f, _train(), limit="ulimit -v 4000000;"), (0, 3)),
    "no locks": (
        lambda f: _call(f, "", code=f'{sys.executable} -c "{_NO_FCNTL}" {_AUDIT}'), (0,),
    ),
    "no locks to train": (
        lambda f: _call(f, "", code=f'{sys.executable} -c "{_NO_FCNTL}" {_train()}'), (0, 2, 3),
    ),
    "a folder that is gone": (
        lambda f: _call(f, f"audit {f}/scores.csv --resamples 100 --out out",
                        limit='mkdir gone; cd gone; rmdir "$PWD";'), (0, 2, 3),
    ),
    "out is a dangling link": (lambda f: _call(f, _AUDIT, limit="ln -s nowhere out;"), (0, 2, 3)),
    "out is a loop of links": (lambda f: _call(f, _AUDIT, limit="ln -s out out;"), (2, 3)),
    "out is a file": (lambda f: _call(f, _AUDIT, limit="touch out;"), (2,)),
    "out is too long": (lambda f: _call(f, f"{_AUDIT}{'x' * 300}"), (2, 3)),
    "out cannot be there": (lambda f: _call(f, f"{_AUDIT.replace('out', '/proc/x')}"), (2, 3)),
    "a small disk": (
        lambda f: _call(
            f, "", code=f"unshare -rm bash -c 'mkdir -p out && mount -t tmpfs -o size=64k t out && "
            f"{sys.executable} -m toptail audit scores.csv --resamples 100 --out out/a'"), (3,),
    ),
}  # fmt: skip
"""What is odd -> how a command is called in it, and the exit codes that may come of it."""


def _per_case(case: Case) -> int:
    """How often the disk fails; of a case that takes long, a quarter."""
    return PER_CASE // 4 if case.slow else PER_CASE


GOAL: Final = len(SURROUNDINGS) + len(DISKS) * sum(map(_per_case, CASES))
"""Faults of the whole run; a few less, where a case has fewer events than faults."""


def _train() -> str:
    return next(case.line for case in CASES if case.name == "train")


def fail(ground: Ground, case: Case, usual: Undisturbed, act: Act, at: int) -> list[str]:
    """Let the disk fail from an event on, then type the same again; what is not as it should be."""
    work = ground.fresh(case)
    failed = ground.run(case, case.words, at=at, act=act)
    problems = []
    if failed.traceback or failed.code not in (2, 3, usual.code):
        problems.append(f"ended with {failed.code}: {failed.err[-250:]!a}")
    again = ground.run(case, case.words)
    if again.code != usual.code or again.traceback:
        return [*problems, f"then ended with {again.code}: {again.err[-250:]!a}"]
    if case.again:
        problems += differences(usual.after, snapshot(work))
    return problems


def events_of(case: Case, act: Act, events: int) -> list[int]:
    """The events at which the disk fails, always the same."""
    count = min(_per_case(case), events)
    return sorted(Random(f"{case.name} {act}").sample(range(1, events + 1), count))


def surround(folder: Path, name: str) -> list[str]:
    """Run a command in odd surroundings; what is not as it should be."""
    shutil.rmtree(folder, ignore_errors=True)
    make_world(folder)
    call, codes = SURROUNDINGS[name]
    try:
        done = call(folder)
    except subprocess.TimeoutExpired:
        return ["did not end"]
    text = done.stdout + done.stderr
    if "Traceback (most recent call last)" in text or "Exception ignored" in text:
        return [f"traceback: {text[-300:]!a}"]
    if done.returncode not in codes:
        assert set(codes) <= set(CODES)
        return [f"ended with {done.returncode}, not {codes}: {text[-300:]!a}"]
    return [] if printable(text) else [f"unprintable: {text[-300:]!a}"]


def attack(state: State, home: Path, budget: int, seconds: float | None = None) -> None:
    """Make the faults that were not made yet."""
    end = None if seconds is None else time.monotonic() + seconds
    for number, name in enumerate(SURROUNDINGS):
        if budget > 0 and state.left("surroundings", [number]):
            budget -= 1
            _count(state, "surroundings", number, name, surround(home / "odd", name))
    with battleground(home) as ground:
        for case in sorted(CASES, key=lambda case: case.slow):
            if budget <= 0 or (end is not None and time.monotonic() > end):
                break
            usual = Undisturbed.of(ground, case)
            for act in DISKS:
                what = f"{case.name} {act}"
                for at in state.left(what, events_of(case, act, len(usual.events))):
                    if budget <= 0 or (end is not None and time.monotonic() > end):
                        break
                    budget -= 1
                    shown = f"{what} from event {at} ({usual.events[at - 1]})"
                    _count(state, what, at, shown, fail(ground, case, usual, act, at))


def _count(state: State, what: str, attack: int, shown: str, problems: list[str]) -> None:
    state.add(what, attack, "faults", "unhandled" if problems else "handled")
    if problems:
        state.find(what, attack, "unhandled", shown=shown, seen=problems[:5])
        print(f"  {shown}: {'; '.join(problems[:2])}"[:400], flush=True)
    state.save()
