"""The command line: which commands there are, and how errors reach a person."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from toptail import __version__
from toptail.commands.audit import Audit
from toptail.commands.bench import Bench
from toptail.commands.data import Data
from toptail.commands.demo import Demo
from toptail.commands.demo_pools import DemoPools
from toptail.commands.options import respelled
from toptail.commands.plan import PlanCommand
from toptail.commands.report import Report
from toptail.commands.reproduce import Reproduce
from toptail.commands.runs import Runs
from toptail.commands.study import StudyCommand
from toptail.commands.train import Train
from toptail.errors import InputError

_Command = (
    Annotated[Audit, tyro.conf.subcommand("audit")]
    | Annotated[PlanCommand, tyro.conf.subcommand("plan")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[DemoPools, tyro.conf.subcommand("demo-pools")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Runs, tyro.conf.subcommand("runs")]
    | Annotated[StudyCommand, tyro.conf.subcommand("study")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Report, tyro.conf.subcommand("report")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
)


_EXTRA = {
    **dict.fromkeys(("jax", "jaxlib", "flax", "optax", "safetensors"), "train"),
    **dict.fromkeys(("gymnasium", "mujoco", "ogbench"), "sim"),
}
"""Which extra installs a package that a light installation does not have."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; bad input gives one sentence on stderr and exit code 2."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args == ["--version"]:
        sys.stdout.write(f"toptail {__version__}\n")
        return 0
    try:
        command: Any = tyro.cli(
            _Command,
            prog="toptail",
            description=f"Is this critic safe to maximize? (toptail {__version__})",
            args=respelled(args),
        )
        return int(command.run())
    except InputError as error:
        sys.stderr.write(f"toptail: {error.for_command_line}\n")
        return 2
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRA:
            raise
        sys.stderr.write(
            f"toptail: this command needs the package '{package}', which is not installed: "
            f"pip install 'toptail[{_EXTRA[package]}]'.\n"
        )
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("toptail: interrupted\n")
        return 130
    except BrokenPipeError:  # the reader of a pipe, such as head, has seen enough
        sys.stdout = None
        return 0


def run() -> None:
    """Entry point of the console script."""
    sys.exit(main())
