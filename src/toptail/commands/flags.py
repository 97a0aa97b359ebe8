"""Flags: their types, the groups in which help lists them, lists, jobs, tables."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

import tyro

from toptail.api import HowJudged
from toptail.commands.terminal import progress_bar, say
from toptail.errors import InputError, how_to_install

if TYPE_CHECKING:
    from toptail.jobs.job import Job

Config = TypeVar("Config")
Group = TypeVar("Group")
Number = TypeVar("Number", int, float)

DECIDE, OUTPUT, SCALE = "What to decide", "Output", "Scale"
"""Groups of flags, as an annotation of their fields; a flag without one says what to read."""

Words: TypeAlias = tyro.conf.UseAppendAction[tuple[str, ...]]
"""The one list type: repeated, separated by commas, or both."""

Column: TypeAlias = Annotated[str | None, tyro.conf.arg(metavar="COLUMN")]
File: TypeAlias = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]
Names: TypeAlias = Annotated[Words, tyro.conf.arg(metavar="A,B,...")]
Count: TypeAlias = Annotated[int | None, tyro.conf.arg(metavar="N")]
Share: TypeAlias = Annotated[float | None, tyro.conf.arg(metavar="SHARE")]
Tables: TypeAlias = Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="TABLE")]
Statuses: TypeAlias = Annotated[Words, DECIDE, tyro.conf.arg(metavar="STATUS,...")]

ONE_WORD: Final = tyro.constructors.ConstructorRegistry()
"""Parsers of flags with one value; their errors say what was expected."""

_EXAMPLES: Final[Mapping[Any, str]] = {
    float: "a number such as 0.1",
    int: "a whole number such as 64",
    str: "a word",
    Path: "a path",
}


@ONE_WORD.primitive_rule
def _one_word(
    flag: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
    kind = without_none(flag.type)
    if kind not in _EXAMPLES:
        return None

    def read(words: list[str]) -> Any:
        try:
            return kind(words[0])
        except ValueError:
            raise ValueError(f"expected {_EXAMPLES[kind]}, not '{words[0]}'") from None

    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, (kind, int)),
        str_from_instance=lambda value: [str(value)],
    )


@ONE_WORD.primitive_rule
def _whole_numbers(
    flag: tyro.constructors.PrimitiveTypeInfo,
) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
    if flag.type != tuple[int, ...]:
        return None
    return tyro.constructors.PrimitiveConstructorSpec(
        nargs=1,
        metavar="N,N,...",
        instance_from_str=lambda words: numbers("This flag", words, int),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda value: [",".join(map(str, value))],
    )


def without_none(kind: Any) -> Any:
    """X of ``X | None``; any other type as it is."""
    if get_origin(kind) not in (Union, UnionType):
        return kind
    kinds = [each for each in get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 else kind


def parse(command: type[Config], words: Sequence[str], program: str = "toptail") -> Config:
    """A command from the words behind its name; exits with code 2 where they do not fit."""
    how = (tyro.conf.OmitArgPrefixes, tyro.conf.FlagCreatePairsOff)
    return tyro.cli(command, prog=program, args=words, config=how, registry=ONE_WORD)


def program_name() -> str:
    """The program that runs: ``toptail``, or one that is built on it."""
    started = Path(sys.argv[0] if sys.argv else "")
    name = started.parent.name if started.name == "__main__.py" else started.stem
    name = name.replace("_", "-")
    return name if name.startswith("toptail-") else "toptail"


def command_line() -> str:
    """What was typed, for the record."""
    return shlex.join([program_name(), *sys.argv[1:]])


def need_training(command: str) -> None:
    """Refuse in one sentence where packages of the extra ``train`` are missing."""
    missing = [name for name in ("jax", "optax", "safetensors") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"'{program_name()} {command}' needs {', '.join(missing)}; "
            f"install them with: {how_to_install('train')}."
        )


# Lists: given one by one, or separated by commas.

_COMMA: Final = re.compile(r",(?![^\[]*\])")


def parts(words: Sequence[str]) -> tuple[str, ...]:
    """Split words at commas, except inside brackets: ``raw[hidden=64,depth=2]`` is one part."""
    found = [part.strip() for word in words for part in _COMMA.split(word)]
    return tuple(part for part in found if part)


def names(words: Sequence[str]) -> tuple[str, ...]:
    """Names given one by one or separated by commas, each once."""
    return tuple(dict.fromkeys(parts(words)))


def statuses(words: Sequence[str], known: Collection[str]) -> set[str]:
    """The statuses of ``--fail-on``; an unknown or empty one raises an :class:`InputError`.

    A comma may stand at the end. An empty word may be a shell variable that was not set, and
    would let every result pass.
    """
    wanted = {*parts(words), *("" for word in words if not parts([word]))}
    unknown = sorted(wanted - set(known))
    if unknown:
        raise InputError(
            f"--fail-on: '{unknown[0]}' is not a status; those are {', '.join(known)}."
        )
    return wanted


def numbers(flag: str, words: Sequence[str], kind: Callable[[str], Number]) -> tuple[Number, ...]:
    """Numbers given one by one or separated by commas, at least one."""
    try:
        found = tuple(kind(part) for part in parts(words))
    except ValueError:
        found = ()
    if not found:
        whole, example = ("whole ", "42,43,44") if kind is int else ("", "0.25,0.40")
        raise InputError(
            f"{flag} takes {whole}numbers separated by commas, as in {example}; not "
            f"'{','.join(words)}'."
        )
    return found


def filled(group: type[Group], flags: object, **more: Any) -> Group:
    """A dataclass of arguments, filled from the flags of the same names that were given."""
    names = {field.name for field in fields(group)}  # type: ignore[arg-type]
    found = {name: getattr(flags, name) for name in names if hasattr(flags, name)} | more
    return group(**{name: x for name, x in found.items() if x is not None and x != ()})


# Jobs.

_OWN: Final = ("--list-jobs", "--job", "--ray")


@dataclass(frozen=True, kw_only=True)
class RayFlag:
    """Where the work is done."""

    ray: Annotated[str | None, SCALE, tyro.conf.arg(metavar="HOST:PORT|auto|local")] = None
    """Work on a Ray cluster whose nodes see the same folders; 'local' starts one here."""

    @property
    def address(self) -> str | None:
        """The cluster's address; none for one that is started here."""
        return None if self.ray == "local" else self.ray

    def mapped(self) -> Callable[..., Iterator[Any]]:
        """``map``, or the same on the cluster."""
        if self.ray is None:
            return map
        from toptail.jobs.executors import ray_map

        return partial(ray_map, address=self.address)


@dataclass(frozen=True, kw_only=True)
class JobFlags(RayFlag):
    """Which jobs of a command run, and where."""

    list_jobs: Annotated[bool, SCALE] = False
    """Print the jobs of the command, one JSON object a line, and do nothing; 'command' runs one."""
    job: Annotated[str | None, SCALE, tyro.conf.arg(metavar="ID")] = None
    """Run only the job of this id, or of its beginning, as --list-jobs lists it."""

    def jobs(self) -> list[Job]:
        """The jobs, those first that others need."""
        raise NotImplementedError

    def by_jobs(self) -> bool:
        """Do what the flags of this class ask for; returns whether nothing else is left to do."""
        if self.list_jobs:
            for job in self.jobs():
                say(job.line([program_name(), *own_words(), "--job", job.id]))
        elif self.job is not None:
            from toptail.jobs.job import find_job

            job = find_job(self.jobs(), self.job)
            words = "is done" if job.run() else "was done already"
            say(f"{job.name} ({job.id}) {words}")
        elif self.ray is not None:
            self._on_cluster()
        return self.list_jobs or self.job is not None

    def _on_cluster(self) -> None:
        from toptail.jobs.executors import Ray

        start = time.monotonic()
        with progress_bar() as tick:
            jobs = [job for job in self.jobs() if not job.last]
            done = Ray(self.jobs, self.address).run(jobs, tick)
        work = sum(each.seconds for each in done.values())
        nodes = ", ".join(sorted({each.node for each in done.values()})) or "no node"
        say(
            f"{len(done)} of {len(jobs)} jobs were missing: {work:.0f} s of work in "
            f"{time.monotonic() - start:.0f} s on {nodes}"
        )


def own_words(words: Sequence[str] | None = None) -> list[str]:
    """The command line without the flags that say which jobs run, and where."""
    result: list[str] = []
    typed = iter(sys.argv[1:] if words is None else words)
    for word in typed:
        flag, equals, _ = word.partition("=")
        if flag not in _OWN:
            result.append(word)
        elif flag != "--list-jobs" and not equals:
            next(typed, None)
    return result


# Flags of commands that read a table of scored candidates.


@dataclass(frozen=True, kw_only=True)
class PoolFlags:
    """Columns that every command with a table reads."""

    scores: Names = ()
    """Score columns; by default every number column that may be one."""
    values: Column = None
    """The value column to judge by; by default 'value' or 'correct'."""
    query: Annotated[str | None, tyro.conf.arg(metavar="COLUMN,...")] = None
    """The column that says which candidates form one pool, or several that do so together; by
    default 'query'."""
    candidate: Column = None
    """Labels of candidates, unique inside a query; by default 'candidate'."""
    cheap: Column = None
    """Values of a cheap judge of every candidate, where --values has those of some."""
    missing: Annotated[
        Literal["lowest", "drop", "error"] | None, tyro.conf.arg(metavar="lowest|drop|error")
    ] = None
    """Candidates without a score: take them last (lowest), or leave them out (drop). By default an
    incomplete column is left out, and refused if --scores names it."""
    min_pool: Count = None
    """Leave out pools with fewer candidates; by default those below the 5 % quantile of sizes."""

    def query_columns(self) -> str | tuple[str, ...] | None:
        found = names((self.query or "",))
        return found if len(found) > 1 else self.query


def check_tables(tables: Sequence[str]) -> None:
    if not tables:
        raise InputError("Give the path of a table of scored candidates.")


def source(tables: Sequence[str]) -> str | list[str]:
    return tables[0] if len(tables) == 1 else list(tables)


@dataclass(frozen=True, kw_only=True)
class JudgedFlags(PoolFlags):
    """Columns of queries, and how candidates got their values."""

    group: Column = None
    """Labels of queries to report by; by default 'group' where there is one."""
    cluster: Column = None
    """Labels of queries to resample together; by default 'cluster' where there is one."""
    replicates: Annotated[Words, tyro.conf.arg(metavar="V1,V2,...")] = ()
    """Two or more value columns that are independent replicates of one noisy judge."""
    p_judged: Column = None
    """Chances with which candidates were chosen for judging; by default 'p_judged'."""
    unjudged: Annotated[str | None, tyro.conf.arg(metavar="NUMBER|bounds")] = None
    """What a candidate without a value counts as; 'bounds' audits both extremes."""
    plan: File = None
    """The plan that 'toptail plan' made of this table."""
    answers: File = None
    """Values of the plan's candidates: query, candidate, value; by default the plan's own."""
    pairs: File = None
    """Instead of values: judged pairs with the columns query, a, b, wins and p_judged."""
    value_range: Annotated[Words, tyro.conf.arg(metavar="LO,HI")] = ()
    """The smallest and the largest value there can be, where that is known."""

    def judged(self) -> HowJudged:
        """The arguments of the library that say how candidates got their values."""
        return filled(
            HowJudged,
            self,
            replicates=names(self.replicates),
            unjudged=self._unjudged(),
            value_range=self._value_range(),
        )

    def _unjudged(self) -> float | Literal["bounds"] | None:
        if self.unjudged is None or self.unjudged == "bounds":
            return self.unjudged  # type: ignore[return-value]
        try:
            return float(self.unjudged)
        except ValueError:
            raise InputError(f"--unjudged {self.unjudged} must be a number or bounds.") from None

    def _value_range(self) -> tuple[float, float] | None:
        if not self.value_range:
            return None
        ends = numbers("--value-range", self.value_range, float)
        if len(ends) != 2:
            raise InputError("--value-range takes the smallest and the largest value, as in 0,1.")
        return ends[0], ends[1]
