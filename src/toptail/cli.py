"""The command line: which commands there are, and how errors reach a person."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, make_dataclass
from importlib import import_module
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

from toptail import __version__
from toptail.audit.settings import NOT_MEANT
from toptail.commands.options import ONE_WORD, respelled
from toptail.commands.output import drop, open_output
from toptail.errors import Exit, InputError, NotDoneError, brief, printable, system_error

_COMMANDS: dict[str, tuple[str, str]] = {
    "audit": ("audit:Audit", "Tell whether each scorer of a table is safe to maximize."),
    "check": (
        "check:CheckCommand",
        "Tell whether the best of K by a critic is safe.",
    ),
    "choose": ("choose:Choose", "Choose what to deploy: selector, parameters and K."),
    "plan": ("plan:PlanCommand", "Say which candidates of a table to judge."),
    "demo": ("demo:Demo", "Audit five built-in scorers whose curves are known in closed form."),
    "data": ("data:Data", "List, download, describe, collect, import and check data sets."),
    "train": ("train:Train", "Train critics on a data set."),
    "runs": ("runs:Runs", "List training runs and their states, or record that one is invalid."),
    "report": (
        "report:Report",
        "Render the report of a stored audit or choice again.",
    ),
}
"""Command -> where its class is inside ``toptail.commands``, and what the help says of it. The
module is imported when its command runs, so that help is quick and an audit loads no lab."""


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
    """Its subcommands: a table as `_COMMANDS`, or a union as tyro takes it."""
    purpose: str
    """One sentence for the help."""


TOPTAIL = Program("toptail", _COMMANDS, "Is this critic safe to maximize?")


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
    command = parsed(respelled(args), program)
    try:
        return int(command.run())
    except SystemExit as error:  # of something that the command calls: the work is not done
        raise NotDoneError(
            f"The process was asked to end in the middle of the work (sys.exit({error.code!r}))."
        ) from error


def parsed(args: Sequence[str], program: Program) -> Any:
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
    name, commands, words = program.name, program.commands, args
    said: str | None = _description(program)
    if isinstance(commands, dict):
        if args and args[0] in commands:
            module, _, command = commands[args[0]][0].partition(":")
            commands = getattr(import_module(f"toptail.commands.{module}"), command)
            name, said, args = f"{name} {args[0]}", None, args[1:]
        else:
            commands = _listed(commands)
    try:
        return tyro.cli(commands, prog=name, description=said, args=args, registry=ONE_WORD)
    except SystemExit as refused:
        if refused.code and words[0] in _ONE_TABLE and len(_files(words)) > 1:
            _say(f"'{words[0]}' takes one table; {_ONE_TABLE[words[0]]}.", Exit.INPUT)
        raise


def _listed(commands: Mapping[str, tuple[str, str]]) -> Any:
    """Subcommands that have a name and a sentence, for the help and for words that are none."""
    parts = []
    for name, (_, sentence) in commands.items():
        empty = make_dataclass(name.replace("-", "_"), [], namespace={"__doc__": sentence})
        parts.append(Annotated[empty, tyro.conf.subcommand(name, description=sentence)])
    return Union[tuple(parts)]  # noqa: UP007


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
