"""Faults of the surroundings: full and read-only disks, odd terminals, locales and homes.

A command that cannot do what it was asked for says so in a sentence and by its exit code; once
the fault is gone, the same command does it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from tests.attack.cases import CASES, TRAIN, Case
from tests.attack.cli import printable
from tests.attack.crash import Ground, Undisturbed, battleground, undisturbed
from tests.attack.events import Act
from tests.attack.forks import cores, python_path
from tests.attack.same import differences, snapshot
from tests.attack.state import State
from tests.attack.turns import Turns
from tests.attack.world import make_world

DISKS: Final[tuple[Act, ...]] = ("full", "read-only")
PER_CASE: Final = 12
"""Events of each case at which the disk fails, for each way in which it does."""

_AUDIT: Final = "audit scores.csv --resamples 100 --out out"
_PYTHON: Final = f"{sys.executable} -m toptail"
_NO_LOCKS: Final = (
    f"{sys.executable} -c \"import sys; sys.modules['fcntl'] = None; "
    'from toptail.cli import run; run()"'
)


@dataclass(frozen=True)
class Odd:
    """A command line in odd surroundings."""

    codes: tuple[int, ...]
    """The exit codes that may come of it."""
    line: str = _AUDIT
    """What is typed."""
    before: str = ""
    """What the shell does before."""
    after: str = ""
    """Where the shell lets input and output go."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the usual ones; an empty HOME is none."""
    program: str = _PYTHON
    """What the line is given to."""
    needs: str = ":"
    """A command that fails where this machine does not allow such surroundings."""

    @property
    def possible(self) -> bool:
        """Whether this machine allows it."""
        return subprocess.run(["/bin/bash", "-c", self.needs], capture_output=True).returncode == 0

    def run(self, folder: Path) -> subprocess.CompletedProcess[str]:
        """Run it in a folder, in a process of its own."""
        usual = {"PYTHONPATH": python_path(), "JAX_PLATFORMS": "cpu"}
        variables = {**os.environ, **usual, "FOLDER": str(folder), **self.environment}
        if not variables.get("HOME"):
            variables.pop("HOME", None)
        return subprocess.run(
            ["/bin/bash", "-c", f"{self.before} exec {self.program} {self.line} {self.after}"],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        )


_ASCII: Final = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
_TO_TRAIN: Final = 3_000_000 + 500_000 * cores()
"""Kilobytes of addresses that JAX's threads, some for every core, and little else take."""
_SMALL_DISK: Final = "mkdir out && mount -t tmpfs -o size=64k t out && exec"

SURROUNDINGS: Final[Mapping[str, Odd]] = {
    "output to a full disk": Odd((3,), after=">/dev/full"),
    "help to a full disk": Odd((3,), "--help", after=">/dev/full"),
    "closed output": Odd((0, 3), after=">&-"),
    "closed output and errors": Odd((0, 3), after=">&- 2>&-"),
    "closed input": Odd((0,), after="<&-"),
    "a reader that has seen enough": Odd((0,), after="| head -c 1"),
    "an ASCII terminal": Odd((0,), environment={"PYTHONIOENCODING": "ascii"}),
    "an ASCII locale": Odd((0,), environment=_ASCII),
    "an unknown locale": Odd((0,), environment={"LC_ALL": "xx_YY"}),
    "no home": Odd((0, 2), "data list", environment={"HOME": ""}),
    "a home that is not there": Odd((0,), "data list", environment={"HOME": "/nowhere/at/all"}),
    "no path": Odd((0,), environment={"PATH": ""}),
    "no columns": Odd((0,), environment={"COLUMNS": "0"}),
    "columns that are no number": Odd((0,), environment={"COLUMNS": "wide"}),
    "no folder for temporary files": Odd((0, 3), environment={"TMPDIR": "/nowhere"}),
    "a file that may not grow": Odd((3,), before="ulimit -f 8;"),
    "a file of size 0": Odd((3,), before="ulimit -f 0;"),
    "few open files": Odd((0, 3), before="ulimit -n 12;"),
    "little memory": Odd((0, 3), before="ulimit -v 1500000;"),
    "little memory to train": Odd((0, 3), TRAIN, before=f"ulimit -v {_TO_TRAIN};"),
    "no locks": Odd((0,), program=_NO_LOCKS),
    "no locks to train": Odd((0, 2, 3), TRAIN, program=_NO_LOCKS),
    "a folder that is gone": Odd(
        (0, 2, 3),
        'audit "$FOLDER/scores.csv" --resamples 100 --out out',
        before='mkdir gone; cd gone; rmdir "$PWD";',
    ),
    "out is a dangling link": Odd((0, 2, 3), before="ln -s nowhere out;"),
    "out is a loop of links": Odd((2, 3), before="ln -s out out;"),
    "out is a file": Odd((2,), before="touch out;"),
    "out is too long": Odd((2, 3), f"{_AUDIT}{'x' * 300}"),
    "out cannot be there": Odd((2, 3), "audit scores.csv --resamples 100 --out /proc/x/y"),
    "a small disk": Odd(
        (3,),
        f"{_AUDIT}/a'",
        program=f"unshare -rm bash -c '{_SMALL_DISK} {_PYTHON}",
        needs="unshare -rm mount -t tmpfs -o size=64k t /mnt",
    ),
    "no memory for the libraries": Odd(
        (3,), before="ulimit -v 400000;", environment={"OPENBLAS_NUM_THREADS": "1"}
    ),
}
"""What is odd, and how a command is called in it."""


def _per_case(case: Case) -> int:
    """How often the disk fails; of a case that takes long, a quarter."""
    return PER_CASE // 4 if case.slow else PER_CASE


GOAL: Final = len(SURROUNDINGS) + len(DISKS) * sum(map(_per_case, CASES))
"""Faults of the whole run; a few less, where a case has fewer events than faults."""


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
    odd = SURROUNDINGS[name]
    try:
        done = odd.run(folder)
    except subprocess.TimeoutExpired:
        return ["did not end"]
    text = done.stdout + done.stderr
    if "Traceback (most recent call last)" in text or "Exception ignored" in text:
        return [f"traceback: {text[-300:]!a}"]
    if done.returncode not in odd.codes:
        return [f"ended with {done.returncode}, not {odd.codes}: {text[-300:]!a}"]
    return [] if printable(text) else [f"unprintable: {text[-300:]!a}"]


def attack(state: State, home: Path, turns: Turns) -> None:
    """Make the faults that were not made yet."""
    for number, (name, odd) in enumerate(SURROUNDINGS.items()):
        if (
            odd.possible
            and turns.first("surroundings", state.left("surroundings", [number])) is not None
        ):
            _count(state, "surroundings", number, name, surround(home / "odd", name))
    mine, others = (sorted(cases, key=lambda case: case.slow) for cases in turns.split(CASES))
    with battleground(home) as ground:
        for case in [*mine, *others]:
            for act in DISKS:
                _fail_all(state, ground, case, act, turns)


def _fail_all(state: State, ground: Ground, case: Case, act: Act, turns: Turns) -> None:
    """Let the disk fail at every event of a case that is attacked and was not yet."""
    what = f"{case.name} {act}"
    if turns.over or turns.begun(what) + len(state.done(what)) >= _per_case(case):
        return
    usual = undisturbed(state, ground, case)
    if usual is None:
        return
    wanted = events_of(case, act, len(usual.events))
    while (at := turns.first(what, state.left(what, wanted))) is not None:
        shown = f"{what} from event {at} ({usual.events[at - 1]})"
        _count(state, what, at, shown, fail(ground, case, usual, act, at))


def _count(state: State, what: str, attack: int, shown: str, problems: list[str]) -> None:
    state.add(what, attack, "faults", "unhandled" if problems else "handled")
    if problems:
        state.find(what, attack, "unhandled", shown=shown, seen=problems[:5])
        print(f"  {shown}: {'; '.join(problems[:2])}"[:400], flush=True)
    state.save()
