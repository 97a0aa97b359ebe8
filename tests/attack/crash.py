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
from tests.attack.state import State, source_digest
from tests.attack.turns import Turns
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
def battleground(home: Path) -> Iterator[Ground]:
    """Forks, and a local server that has a data set; worlds that other code made go."""
    worlds = home / f"worlds-{source_digest()}"
    for other in set(home.glob("worlds-*")) - {worlds}:
        shutil.rmtree(other, ignore_errors=True)
    with Forks(home / "compiled") as forks, sound_mirror() as address:
        variables = {"TOPTAIL_DATA": "data", "TOPTAIL_MIRRORS": address}
        yield Ground(forks, worlds, variables)


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


def attack(state: State, home: Path, turns: Turns) -> None:
    """Kill, each time where the least time was spent so far."""
    spent = dict.fromkeys((case.name for case in CASES), 0.0)
    ready, waiting = turns.split(CASES)
    with battleground(home) as ground:
        while (ready or waiting) and not turns.over:
            if not ready:
                ready.append(waiting.pop(0))
            case = min(ready, key=lambda case: spent[case.name])
            if next(_left(state, case), None) is None:
                ready.remove(case)
                continue
            usual = undisturbed(state, ground, case)
            began = time.monotonic()  # making the world is no part of the attack
            at = turns.first(case.name, _left(state, case)) if usual else None
            if usual is None or at is None:
                ready.remove(case)
            else:
                _attack_once(state, ground, case, usual, at)
            spent[case.name] += time.monotonic() - began


def undisturbed(state: State, ground: Ground, case: Case) -> Undisturbed | None:
    """What a case's command does undisturbed; None, and a finding, where that is no success."""
    try:
        usual = Undisturbed.of(ground, case)
    except RuntimeError as error:
        state.find(case.name, 0, "fails undisturbed", line=case.line, seen=[str(error)[-500:]])
        state.save()
        print(f"  {case.name} cannot be attacked: {ascii(str(error))[-300:]}", flush=True)
        return None
    state.note(case.name, len(usual.events))
    return usual


def _left(state: State, case: Case) -> Iterator[int]:
    """The kills of a case that were not made; one where its events were not counted yet."""
    return state.left(case.name, points(case, state.whole.facts.get(case.name, 1)))


def _attack_once(state: State, ground: Ground, case: Case, usual: Undisturbed, at: int) -> None:
    problems = kill(ground, case, usual, at)
    state.add(case.name, at, "kills", "different" if problems else "same")
    if problems:
        kind = usual.events[at - 1]
        state.find(case.name, at, "different", event=kind, line=case.line, seen=problems[:6])
        print(f"  {case.name}, before event {at} ({kind}): {'; '.join(problems[:3])}", flush=True)
    state.save()
