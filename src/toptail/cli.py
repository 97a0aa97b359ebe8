"""The command line: which commands there are, and how errors reach a person."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import tyro

from toptail import __version__
from toptail.commands.audit import Audit
from toptail.commands.check import CheckCommand
from toptail.commands.choose import Choose
from toptail.commands.data import Data
from toptail.commands.demo import Demo
from toptail.commands.options import ONE_WORD, respelled
from toptail.commands.output import drop, open_output
from toptail.commands.parent import end_with_parent
from toptail.commands.plan import PlanCommand
from toptail.commands.report import Report
from toptail.commands.run_job import RunJob
from toptail.commands.runs import Runs
from toptail.commands.train import Train
from toptail.errors import Exit, InputError, NotDoneError, brief, printable, system_error
from toptail.report.text import NOT_MEANT

_Command = (
    Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[CheckCommand, tyro.conf.subcommand("check")]
    | Annotated[Choose, tyro.conf.subcommand("choose")]
    | Annotated[PlanCommand, tyro.conf.subcommand("plan")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[RunJob, tyro.conf.subcommand("run-job")]
    | Annotated[Runs, tyro.conf.subcommand("runs")]
    | Annotated[Report, tyro.conf.subcommand("report")]
)


_EXTRA = {
    **dict.fromkeys(("jax", "jaxlib", "flax", "optax", "safetensors"), "train"),
    "ray": "ray",
    **dict.fromkeys(("gymnasium", "mujoco", "ogbench"), "sim"),
}
"""Which extra installs a package that a light installation does not have."""


_JOIN = "put several into one table"
_ONE_TABLE = {
    "audit": f"compare it with an older one by --baseline OLD, or {_JOIN}, with a --group column",
    "choose": _JOIN,
    "plan": _JOIN,
}
"""Command that takes one table -> what to do with two."""


@dataclass(frozen=True)
class Program:
    """A command line: its name, its commands, and what it is for."""

    name: str
    """What is typed."""
    commands: Any
    """The union of its subcommands, as tyro takes it."""
    purpose: str
    """One sentence for the help."""


TOPTAIL = Program("toptail", _Command, "Is this critic safe to maximize?")


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
        return _say(error.for_command_line, error.code)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        return _say(
            f"this command needs the package '{package}', which is not installed: "
            f"pip install 'toptail[{_EXTRA[package]}]'.",
            Exit.INPUT,
        )
    except OverflowError as error:
        return _say(f"a number that was given is too large ({error}).", Exit.INPUT)
    except OSError as error:
        said = system_error(error)
        return _say(said.for_command_line, said.code)
    except KeyboardInterrupt as error:
        notes: list[str] = getattr(error, "__notes__", [])
        return _say(" ".join(["interrupted", *notes]), Exit.INTERRUPTED)
    except MemoryError as error:
        why = f" ({brief(error)})" if str(error) else ""
        return _say(f"the memory of this machine is not enough for that{why}.", Exit.NOT_DONE)


def _run(args: Sequence[str], program: Program) -> int:
    command = _parsed(respelled(args), program)
    try:
        return int(command.run())
    except SystemExit as error:  # of something that the command calls: the work is not done
        raise NotDoneError(
            f"The process was asked to end in the middle of the work (sys.exit({error.code!r}))."
        ) from error


def _parsed(args: Sequence[str], program: Program) -> Any:
    """The command that the words ask for; tyro says what is wrong with them, and repeats them."""
    if all(map(str.isprintable, args)):
        return _asked(args, program)
    out, err = StringIO(), StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            return _asked(args, program)
    except SystemExit:
        said = f"{out.getvalue()}{err.getvalue()}".splitlines()
        sys.stderr.write("".join(f"{printable(line)}\n" for line in said))
        raise


def _asked(args: Sequence[str], program: Program) -> Any:
    said = _description(program)
    try:
        return tyro.cli(
            program.commands, prog=program.name, description=said, args=args, registry=ONE_WORD
        )
    except SystemExit as refused:
        if refused.code and args[0] in _ONE_TABLE and len(_files(args)) > 1:
            _say(f"'{args[0]}' takes one table; {_ONE_TABLE[args[0]]}.", Exit.INPUT)
        raise


def _files(args: Sequence[str]) -> list[str]:
    """The words that follow no flag and are files."""
    return [w for before, w in pairwise(args) if before[:1] != "-" and Path(w).exists()]


def _description(program: Program) -> str:
    codes = "; ".join(f"{code.value}, {code.meaning}" for code in Exit)
    asked = f"{program.purpose} ({program.name} {__version__})"
    meant = f"{NOT_MEANT}\n\n" if program is TOPTAIL else ""
    return f"{asked}\n\n{meant}Exit codes: {codes}."


def _say(sentence: str, code: Exit) -> Exit:
    with suppress(OSError):  # where even that cannot be written, the code says it
        sys.stderr.write(f"toptail: {printable(sentence)}\n")
    return code


def _ended(program: Program) -> int:
    """The exit code of the command, or the one that tyro asks for after its help."""
    try:
        return main(program=program)
    except SystemExit as asked:
        return int(asked.code or Exit.FINE)


def run(program: Program = TOPTAIL) -> None:
    """Entry point of the console script: leaves with the exit code, whatever happens."""
    end_with_parent()
    open_output()
    try:
        code = _ended(program)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _say("interrupted", Exit.INTERRUPTED)
    except OSError as error:  # what was printed last did not arrive
        code = _say(system_error(error, "the output").for_command_line, Exit.NOT_DONE)
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
