"""A command that must not be killed between its two files: the attack has to notice."""

from __future__ import annotations

from pathlib import Path


def install() -> None:
    """Put it in the place of the command line, in this process."""
    import toptail.cli

    toptail.cli.run = _run


def _run(program: object = None) -> None:  # noqa: ARG001
    if Path("first").exists() and not Path("second").exists():
        raise SystemExit(_refuse())
    for name in ("first", "second"):
        with Path(name).open("w") as file:
            file.write("done")
    raise SystemExit(0)


def _refuse() -> int:
    import sys

    sys.stderr.write("half done\n")
    return 2
