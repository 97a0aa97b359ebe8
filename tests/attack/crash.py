"""Crash points: kill -9 before the n-th file event, the same command again, and a comparison.

A command that was killed at any moment and typed again leaves what it would have left undisturbed,
bit for bit but for recorded times, and nothing else.
"""

from __future__ import annotations

import json
import random
import shlex
import shutil
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.attack.cases import CASES, Case
from tests.attack.forks import Ended, Forks, Line
from tests.attack.same import Tree, differences, snapshot
from tests.attack.server import sound_mirror
from tests.attack.state import State
from tests.attack.world import make_world

GOAL: Final = 1000
"""Kills of the whole run."""


@dataclass(frozen=True)
class Ground:
    """Where commands are attacked."""

    forks: Forks
    """Runs them."""
    home: Path
    """Folder of the worlds."""
    environment: Mapping[str, str]
    """Variables that all of them see."""

    def run(self, case: Case, words: Sequence[str], **how: Any) -> Ended:
        """Run a command line in the case's folder."""
        work = str(self.work(case))
        line = Line(words, work, environment=self.environment, first=case.first, **how)
        return self.forks.run(line)

    def work(self, case: Case) -> Path:
        """The folder that a case's command runs in."""
        return self.home / case.name / "work"

    def before(self, case: Case) -> Path:
        """The folder as it is before the command, made once."""
        ready = self.home / case.name / "before"
        if not ready.is_dir():
            shutil.rmtree(self.home / case.name, ignore_errors=True)
            work = self.work(case)
            make_world(work)
            for line in case.before:
                ended = self.run(replace(case, first=""), shlex.split(line))
                if ended.code:
                    raise RuntimeError(f"{line} ended with {ended.code}: {ended.err}")
            if case.prepare is not None:
                case.prepare(work)
            work.rename(ready)
        return ready

    def fresh(self, case: Case) -> Path:
        """The case's folder as it is before the command."""
        before = self.before(case)
        shutil.rmtree(self.work(case), ignore_errors=True)
        shutil.copytree(before, self.work(case), symlinks=True)
        return self.work(case)


@dataclass(frozen=True)
class Undisturbed:
    """What a command does when nobody attacks it."""

    code: int
    """Its exit code."""
    events: tuple[str, ...]
    """Its file events."""
    before: Tree
    """The folder before."""
    after: Tree
    """The folder after."""

    @classmethod
    def of(cls, ground: Ground, case: Case) -> Undisturbed:
        """Run the command, once for all sittings."""
        kept = ground.home / case.name / "undisturbed.json"
        if kept.is_file():
            content = json.loads(kept.read_text())
            return cls(**{**content, "events": tuple(content["events"])})
        made = cls._run(ground, case)
        kept.write_text(json.dumps(asdict(made)))
        return made

    @classmethod
    def _run(cls, ground: Ground, case: Case) -> Undisturbed:
        work = ground.fresh(case)
        before = snapshot(work)
        ended = ground.run(case, case.words)
        if ended.traceback or ended.code not in (0, 1):
            raise RuntimeError(f"{case.line} ended with {ended.code}: {ended.err}{ended.out}")
        return cls(ended.code, ended.events, before, snapshot(work))


@contextmanager
def battleground(home: Path, *, anew: bool = False) -> Iterator[Ground]:
    """Forks, and a local server that has a data set; worlds that other code made go if ``anew``."""
    if anew:
        shutil.rmtree(home / "worlds", ignore_errors=True)
    with Forks(home / "compiled") as forks, sound_mirror() as address:
        variables = {"TOPTAIL_DATA": "data", "TOPTAIL_MIRRORS": address}
        yield Ground(forks, home / "worlds", variables)


def kill(ground: Ground, case: Case, usual: Undisturbed, at: int) -> list[str]:
    """Kill the command before an event, and type it again; what is then not as it should be."""
    work = ground.fresh(case)
    killed = ground.run(case, case.words, at=at)
    if killed.code != -signal.SIGKILL:
        return [f"was not killed but ended with {killed.code}: {killed.err[-300:]}"]
    problems = [line for name in case.whole for line in _torn(usual, snapshot(work), name)]
    again = ground.run(case, case.words)
    if again.code != usual.code or again.traceback:
        said = " ".join((again.err or again.out).split())[-300:]
        return [*problems, f"the same command then ended with {again.code}: {said}"]
    found = snapshot(work)
    if not case.again:  # other numbers, but the same files
        return problems + differences(dict.fromkeys(usual.after, ""), dict.fromkeys(found, ""))
    return problems + differences(usual.after, found)


def _torn(usual: Undisturbed, found: Tree, name: str) -> list[str]:
    """Whether a folder is neither as it was nor as it becomes."""
    trees = [_inside(tree, name) for tree in (usual.before, usual.after, found)]
    return [] if trees[2] in trees[:2] else [f"{name} is neither as before nor as after"]


def _inside(tree: Tree, name: str) -> dict[str, str]:
    return {path: what for path, what in tree.items() if path.startswith(f"{name}/")}


def points(case: Case, events: int) -> list[int]:
    """The events of a case in the order in which they are attacked: mixed, always the same."""
    order = list(range(1, events + 1))
    random.Random(case.name).shuffle(order)
    return order


def attack(state: State, home: Path, budget: int, seconds: float | None = None) -> None:
    """Make so many kills more, each where the least time was spent so far."""
    end = None if seconds is None else time.monotonic() + seconds
    spent = dict.fromkeys((case.name for case in CASES), 0.0)
    usual: dict[str, Undisturbed] = {}
    with battleground(home, anew=not state.done) as ground:
        for _ in range(budget):
            open_cases = [case for case in CASES if _left(state, case)]
            if not open_cases or (end is not None and time.monotonic() > end):
                break
            case = min(open_cases, key=lambda case: spent[case.name])
            began = time.monotonic()
            if case.name not in usual:
                usual[case.name] = Undisturbed.of(ground, case)
                state.facts[case.name] = len(usual[case.name].events)
                began = time.monotonic()  # making the world is no part of the attack
            if left := _left(state, case):
                _attack_once(state, ground, case, usual[case.name], left[0])
            spent[case.name] += time.monotonic() - began


def _left(state: State, case: Case) -> list[int]:
    """The kills of a case that were not made; one where its events were not counted yet."""
    return state.left(case.name, points(case, state.facts.get(case.name, 1)))


def _attack_once(state: State, ground: Ground, case: Case, usual: Undisturbed, at: int) -> None:
    problems = kill(ground, case, usual, at)
    state.add(case.name, at, "kills", "different" if problems else "same")
    if problems:
        kind = usual.events[at - 1]
        state.find(case.name, at, "different", event=kind, line=case.line, seen=problems[:6])
        print(f"  {case.name}, before event {at} ({kind}): {'; '.join(problems[:3])}", flush=True)
    state.save()
