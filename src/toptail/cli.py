"""The command line: which commands there are, and how errors reach a person."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from io import StringIO, TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import Any

from toptail import __version__
from toptail.audit.settings import NOT_MEANT
from toptail.errors import (
    Exit,
    InputError,
    NotDoneError,
    brief,
    how_to_install,
    printable,
    system_error,
)


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands."""

    sentence: str
    """The sentence beside it in the list of commands."""
    where: str = ""
    """Module and class, ``toptail.commands.audit:Audit``. The module is imported when the command
    runs, so that help is quick and an audit loads no lab."""
    parts: Mapping[str, Command] = field(default_factory=dict)
    """The commands of a group, by name."""

    def load(self) -> type:
        """The command's dataclass."""
        module, _, name = self.where.partition(":")
        found: type = getattr(import_module(module), name)
        return found


@dataclass(frozen=True)
class Program:
    """A command line: its name, what it is for, and its commands."""

    name: str
    """The word that starts it in a shell."""
    about: str
    """The first paragraphs of its help: what it is for, and examples."""
    commands: Mapping[str, Command]


_AT = "toptail.commands"

TOPTAIL = Program(
    "toptail",
    f"""Is this score safe to maximize?

  toptail demo                                   five built-in scorers, in seconds
  toptail audit scores.parquet --scores reward   a table of judged candidates

{NOT_MEANT}""",
    {
        "audit": Command("Tell whether each scorer of a table is safe.", f"{_AT}.audit:Audit"),
        "choose": Command(
            "Choose what to deploy: selector, parameters and K.", f"{_AT}.choose:Choose"
        ),
        "plan": Command("Say which candidates of a table to judge.", f"{_AT}.plan:PlanCommand"),
        "check": Command(
            "Tell whether the best of K by a critic is safe, on a task.",
            f"{_AT}.check:CheckCommand",
        ),
        "data": Command(
            "List, download, describe, collect and import data sets.",
            parts={
                "list": Command("List OGBench's data sets.", f"{_AT}.data:ListData"),
                "get": Command("Download a published data set.", f"{_AT}.data:GetData"),
                "info": Command("Describe a data set file.", f"{_AT}.data:InfoData"),
                "collect": Command("Collect a data set here.", f"{_AT}.data:CollectData"),
                "import": Command(
                    "Bring in data of Minari, D4RL or OGBench.", f"{_AT}.data:ImportData"
                ),
            },
        ),
        "train": Command("Train critics on a data set.", f"{_AT}.train:Train"),
        "runs": Command("List training runs, or record that one is invalid.", f"{_AT}.runs:Runs"),
        "demo": Command("Audit five scorers whose curves are known.", f"{_AT}.demo:Demo"),
    },
)

_EXTRA = {
    **dict.fromkeys(("jax", "jaxlib", "optax", "safetensors"), "train"),
    "ray": "ray",
    **dict.fromkeys(("gymnasium", "mujoco", "ogbench"), "sim"),
}
"""Which extra installs a package that a light installation does not have."""


_SIDE_BY_SIDE = "tables stand side by side, before the flags"
_TABLES = {
    "audit": f"{_SIDE_BY_SIDE}; an older one to compare with is given by --baseline OLD",
    "choose": _SIDE_BY_SIDE,
    "plan": _SIDE_BY_SIDE,
}
"""Command that takes tables -> how they are given."""


def main(argv: Sequence[str] | None = None, program: Program = TOPTAIL) -> int:
    """Run one command and return its exit code; see :class:`toptail.errors.Exit`.

    What a person or the machine caused is one sentence on stderr; anything else is a bug, and
    raised.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    if args == ["--version"]:
        sys.stdout.write(f"{program.name} {__version__}\n")
        return Exit.FINE
    try:
        return _run(args, program)
    except (InputError, NotDoneError) as error:
        return _say(error.for_command(), error.code)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        return _say(
            f"this command needs the package '{package}', which is not installed: "
            f"{how_to_install(_EXTRA[package])}.",
            Exit.INPUT,
        )
    except OverflowError as error:
        return _say(f"a number that was given is too large ({error}).", Exit.INPUT)
    except OSError as error:
        said = system_error(error)
        return _say(said.for_command(), said.code)
    except KeyboardInterrupt as error:
        notes: list[str] = getattr(error, "__notes__", [])
        return _say(" ".join(["interrupted", *notes]), Exit.INTERRUPTED)
    except MemoryError as error:
        why = f" ({brief(error)})" if str(error) else ""
        return _say(f"the memory of this machine is not enough for that{why}.", Exit.NOT_DONE)


def _run(args: Sequence[str], program: Program) -> int:
    if not args or args[0] in ("-h", "--help"):
        _print(program_page(program))
        return Exit.FINE if args else Exit.INPUT
    name, entry, words = _find_command(program, args)
    if not entry.where or {"-h", "--help"} & set(words):
        from toptail.commands.help import command_page

        _print(command_page(entry.load(), name) if entry.where else _group_page(entry, name))
        return Exit.FINE if words else Exit.INPUT
    command = parsed(args, program)
    try:
        return int(command.run())
    except (InputError, NotDoneError) as error:
        from toptail.commands.help import flags_in

        known = {flag.field for flag in flags_in(type(command))}
        return _say(error.for_command(known), error.code)
    except SystemExit as error:  # of something that the command calls: the work is not done
        raise NotDoneError(
            f"The process was asked to end in the middle of the work (sys.exit({error.code!r}))."
        ) from error


def _find_command(program: Program, args: Sequence[str]) -> tuple[str, Command, Sequence[str]]:
    """The command that the words begin with, its full name, and the words behind it."""
    name, entry = program.name, Command("", parts=program.commands)
    words = list(args)
    while words and not entry.where and words[0] not in ("-h", "--help"):
        if words[0] not in entry.parts:
            close = get_close_matches(words[0], entry.parts, 1)
            meant = f" (did you mean '{close[0]}'?)" if close else ""
            raise InputError(
                f"'{name}' has no command '{words[0]}'{meant}; it has {', '.join(entry.parts)}."
            )
        name, entry = f"{name} {words[0]}", entry.parts[words.pop(0)]
    return name, entry, words


def parsed(args: Sequence[str], program: Program) -> Any:
    """Parse the words into a command; tyro's message about wrong words is printed, escaped."""
    from toptail.commands.flags import parse

    name, entry, words = _find_command(program, args)
    said = StringIO()
    try:
        with redirect_stderr(said):
            return parse(entry.load(), words, name)
    except SystemExit as refused:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in said.getvalue().splitlines()))
        if refused.code and args[0] in _TABLES and len(_files(args)) > 1:
            _say(f"'{args[0]}': {_TABLES[args[0]]}.", Exit.INPUT)
        raise


def _files(args: Sequence[str]) -> list[str]:
    """The words that follow no flag and are files."""
    return [w for before, w in pairwise(args) if before[:1] != "-" and Path(w).exists()]


def program_page(program: Program) -> str:
    """The help of the program: examples, commands, exit codes."""
    from toptail.commands.help import listed, paragraphs

    name = program.name
    usage = f"Usage: {name} COMMAND [FLAGS]   ('{name} COMMAND --help' has more)"
    commands = listed({name: each.sentence for name, each in program.commands.items()})
    codes = listed({str(code.value): code.meaning for code in Exit})
    page = (paragraphs(program.about), usage, f"Commands:\n{commands}", f"Exit codes:\n{codes}")
    return "\n\n".join((*page, f"{name} {__version__}"))


def _group_page(group: Command, name: str) -> str:
    from toptail.commands.help import listed

    parts = listed({part: each.sentence for part, each in group.parts.items()})
    return f"{group.sentence}\n\nUsage: {name} COMMAND [FLAGS]\n\nCommands:\n{parts}"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _say(sentence: str, code: Exit) -> Exit:
    with suppress(OSError):  # where even that cannot be written, the code says it
        sys.stderr.write(f"toptail: {printable(sentence)}\n")
    return code


def _exit_code(program: Program) -> int:
    """The exit code of the command, or the one that tyro asks for where words do not fit."""
    try:
        return main(program=program)
    except SystemExit as asked:
        return int(asked.code or Exit.FINE)


def run(program: Program = TOPTAIL) -> None:
    """Entry point of the console script: leaves with the exit code, whatever happens."""
    open_output()
    try:
        code = _exit_code(program)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _say("interrupted", Exit.INTERRUPTED)
    except OSError as error:  # what was printed last did not arrive
        code = _say(system_error(error, "the output").for_command(), Exit.NOT_DONE)
        drop(sys.stdout.fileno())
    except Exception:
        traceback.print_exc()
        code = _say("this is a bug; please report it with the lines above.", Exit.NOT_DONE)
    if code == Exit.INTERRUPTED:  # at once: JAX can crash in its exit handlers after Ctrl-C
        with suppress(OSError):
            sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


class PipeOutput(TextIOWrapper):
    """Standard output that ignores a closed pipe.

    A reader such as ``head`` may close it early; the command still finishes, with its exit code.
    """

    def write(self, text: str) -> int:
        """Write; drop the text once the pipe is closed."""
        try:
            return super().write(text)
        except BrokenPipeError:
            drop(self.fileno())
            return len(text)

    def flush(self) -> None:
        """Flush; do nothing once the pipe is closed."""
        try:
            super().flush()
        except BrokenPipeError:
            drop(self.fileno())


def open_output() -> None:
    """Let standard output take any character and a closed pipe; replace outputs that are closed."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdout, TextIOWrapper):
        how = (sys.stdout.encoding, "backslashreplace", None, sys.stdout.line_buffering)
        sys.stdout = PipeOutput(sys.stdout.detach(), *how)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def drop(handle: int) -> None:
    """Redirect an open file to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, handle)
    os.close(nowhere)
