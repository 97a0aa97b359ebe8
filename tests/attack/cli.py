"""Hostile command lines, made of the commands' own flags and types."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from tests.attack.cases import CASES, commands
from tests.attack.crash import battleground
from tests.attack.damage import NAMES
from tests.attack.forks import Ended, Line, cores
from tests.attack.state import State
from tests.attack.turns import Turns
from tests.attack.world import POINT, make_world

GOAL: Final = 1000
"""Command lines of the whole run."""
SECONDS: Final = 15.0
"""When a line that still works is ended: what it does is not the question here."""
MEMORY: Final = (4 << 30) + cores() * (1 << 30)
"""Bytes beyond what a process has when it begins: JAX has threads for every core, and each of
them reserves addresses; without them compiled code ends the process."""
CODES: Final = (0, 1, 2, 3, 130)
"""The exit codes that the documentation names."""

_INTEGERS: Final = (
    *("-1", "0", "1", "2", "3", "x", "", "1.5", "1e9", "1000000000", "99999999999999999999"),
    *("-99999999999999999999", "nan", "0x10", "1_0", "٣", "+1", " 1"),
)
_FLOATS: Final = (
    *("nan", "inf", "-inf", "-1", "0", "1", "0.5", "1e308", "5e-324", "x", "", "1e999", "-0.0"),
)
_PATHS: Final = (
    *("scores.csv", "older.csv", "picks.csv", "mine.npz", "judge.npz", "critic.py", "data", "out"),
    *(f"data/{POINT}.npz", "data/walks.npz", "nothing", "nothing/there", "", " ", "-", ".", "~"),
    *("/dev/null", "/dev/null/x", "/proc/nothing/x", "dangling", "loop", "x" * 300, "a/" * 2500),
    *(
        "nul\x00",
        "empty.csv",
        "empty.npz",
        "folder.csv",
        "folder.npz",
        "no\udcffutf8",
        "out\x1b[31m",
    ),
)
_WORDS: Final = (
    *(
        "a",
        "b",
        "a,b",
        ",",
        "a,,b",
        "all",
        "none",
        "1,2,4",
        "1,x",
        "0,1",
        "=",
        "a=b",
        "mine=judge.npz",
    ),
    *(
        "critic.py:score",
        "mine=critic.py:score",
        "critic.py:",
        ":score",
        "safe",
        "unsafe",
        "tab:main",
    ),
    *("raw", "raw,tdq", "tdq", "PointMaze", POINT, "walks", "queries", "tables", "ant", "humanoid"),
)


@dataclass(frozen=True)
class Flag:
    """A flag or a positional word of a command."""

    name: str
    """As typed, ``--resamples``; empty for a positional word."""
    kind: Any
    """Its type."""
    needed: bool
    """Whether the command does not go without."""

    def typed(self, rng: Random) -> list[str]:
        """The flag with some value, as words of a command line."""
        if self.kind is bool:
            return [self.name]
        value = self._value(rng)
        if not self.name:
            return [value]
        return [f"{self.name}={value}"] if rng.random() < 0.3 else [self.name, value]

    def _value(self, rng: Random) -> str:
        if rng.random() < 0.15:
            return rng.choice(NAMES)
        if get_origin(self.kind) is Literal and rng.random() < 0.7:
            return str(rng.choice(get_args(self.kind)))
        pools = {int: _INTEGERS, float: _FLOATS, Path: _PATHS}
        return rng.choice(pools.get(self.kind, (*_WORDS, *_PATHS, *_INTEGERS)))


@cache
def known_flags() -> dict[str, list[Flag]]:
    """Every command with its flags."""
    return {typed: list(flags_of(owner)) for typed, owner in commands()}


def flags_of(owner: type) -> Iterator[Flag]:
    """The flags of a command, those of its settings included."""
    hints = get_type_hints(owner, include_extras=True)
    for entry in fields(owner):
        kind, about = _bare(hints[entry.name])
        if is_dataclass(kind):
            yield from flags_of(kind)  # type: ignore[arg-type]
            continue
        positional = tyro.conf.Positional in about
        name = "" if positional else f"--{entry.name.replace('_', '-')}"
        yield Flag(name, kind, entry.default is MISSING and entry.default_factory is MISSING)


def _bare(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A type without what is said about it, and that."""
    about: tuple[Any, ...] = ()
    while get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        about += tuple(more)
    if get_origin(hint) in (Union, UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    return hint, about


def hostile_line(number: int) -> list[str]:
    """The n-th hostile command line."""
    rng = Random(f"line {number}")
    if rng.random() < 0.6:
        return _spoilt(rng)
    typed, flags = rng.choice(list(known_flags().items()))
    words = typed.split()
    for flag in flags:
        if rng.random() < (0.9 if flag.needed else 0.2):
            words += flag.typed(rng)
    return _disturbed(words, rng)


def _spoilt(rng: Random) -> list[str]:
    """A line that works, with other values and further flags."""
    case = rng.choice([case for case in CASES if case.name not in ("demo", "choose")])
    flags = known_flags()[case.command]
    known = {flag.name: flag for flag in flags if flag.name}
    words = case.words
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(case.command.split()), len(words))
        if words[at] in known and at + 1 < len(words) and known[words[at]].kind is not bool:
            words[at : at + 2] = known[words[at]].typed(rng)
        else:
            words += rng.choice(flags).typed(rng)
    return _disturbed(words, rng)


def _disturbed(words: list[str], rng: Random) -> list[str]:
    if rng.random() < 0.1:
        words.insert(
            rng.randrange(len(words) + 1), rng.choice((*NAMES, "--help", "--", "-v", "-x"))
        )
    if rng.random() < 0.05:
        del words[rng.randrange(len(words))]
    return [word.replace("\x00", "") for word in words]  # no system passes a NUL


def judged(ended: Ended) -> str:
    """How a command line ended, in a word."""
    if ended.traceback:
        return "tracebacks"
    if ended.late:
        return "ended"
    if ended.code not in CODES:
        return "crashes"
    if ended.code and not (ended.err + ended.out).strip():
        return "silent"
    return "answered" if printable(ended.out + ended.err) else "unprintable"


def printable(text: str) -> bool:
    """Whether a terminal shows a text as it is: lines of characters and nothing else."""
    return all(char.isprintable() or char in "\n\r" for char in text)


def furnish(folder: Path) -> None:
    """Put into a world what nobody should have there."""
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    for name in ("empty.csv", "empty.npz"):
        (folder / name).write_text("")
    for name in ("folder.csv", "folder.npz"):
        (folder / name).mkdir()


def attack(state: State, home: Path, turns: Turns) -> None:
    """Type lines."""
    world, work = home / "world", home / "inside" / "work"
    shutil.rmtree(world, ignore_errors=True)
    make_world(world)
    furnish(world)
    with battleground(home) as ground:
        while (number := turns.first("lines", state.left("lines", count()))) is not None:
            words = hostile_line(number)
            shutil.rmtree(work.parent, ignore_errors=True)
            shutil.copytree(world, work, symlinks=True)
            how = {**ground.environment, "HOME": str(work), "XDG_CACHE_HOME": str(work / ".cache")}
            line = Line(words, str(work), seconds=SECONDS, memory=MEMORY, environment=how)
            report(state, number, words, ground.forks.run(line))
            state.save()


def report(state: State, number: int, words: Sequence[str], ended: Ended) -> None:
    """Count a line, and keep it where it shows something."""
    outcome = judged(ended)
    state.add("lines", number, "lines", outcome)
    if outcome not in ("answered", "ended"):
        said = ascii((ended.err or ended.out)[-400:])
        state.find("line", number, outcome, code=ended.code, words=list(words), said=said)
        print(
            f"  {outcome} {ended.code}: {ascii(' '.join(words))[:200]}\n    {said[-200:]}",
            flush=True,
        )
