"""``toptail run-job``: one piece of a command that ``--list-jobs`` listed."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import tyro

from toptail.commands.data import CollectData
from toptail.commands.options import ONE_WORD, program_name, respelled
from toptail.commands.terminal import say
from toptail.commands.train import Train
from toptail.errors import BusyError, InputError, refusing
from toptail.io.files import check_readable

if TYPE_CHECKING:
    from toptail.commands.engine import JobFlags

COMMANDS: Final[dict[tuple[str, ...], Any]] = {
    ("train",): Train,
    ("data", "collect"): CollectData,
}
"""Commands that are made of pieces; another program adds its own."""

_PATIENCE: Final = 600.0
"""Seconds that a node waits for somebody else who does its piece, and may be gone."""


@dataclass(frozen=True)
class RunJob:
    """Do one piece of a command, as '--list-jobs' lists them; a piece that is done stays.

    Any launcher works: 'toptail train ... --list-jobs > jobs.jsonl', and then 'toptail run-job ID'
    for every line, in any order that has those first that 'needs' names.
    """

    id: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="ID")]
    """The piece's id, or its beginning; or @N for line N of the list, counted from 1."""

    jobs: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("jobs.jsonl")
    """The list that '--list-jobs' printed."""

    def run(self) -> int:
        """Do it, and say so."""
        line = _line(self.jobs, self.id)
        done = do_piece(line["command"], line["id"])
        say(f"{line['name']} ({line['id']}) {'is done' if done else 'was done already'}")
        return 0


def _line(path: Path, identity: str) -> dict[str, Any]:
    """The one line of the list that is meant."""
    check_readable(path)
    with refusing(path, "is not a list of pieces", "make it with --list-jobs"):
        lines = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines() if text]
        known = {str(line["id"]): line for line in lines}
        for line in lines:
            if not all(isinstance(word, str) for word in (line["name"], *line["command"])):
                raise ValueError("its words are no words")
    if identity.startswith("@"):
        number = int(identity[1:]) if identity[1:].isdecimal() else 0
        if not 1 <= number <= len(lines):
            raise InputError(f"{path} has lines 1 to {len(lines)}; there is no line {identity}.")
        return dict(lines[number - 1])
    found = [line for name, line in known.items() if name.startswith(identity)]
    if len(found) != 1 or not identity:
        how = "no piece" if not found else f"{len(found)} pieces"
        raise InputError(f"{path} has {how} whose id begins with '{identity}'; give one.")
    return dict(found[0])


def do_piece(words: Sequence[str], identity: str) -> bool:
    """Do the piece of a command; whether there was something to do."""
    from toptail.jobs.job import find_job

    return find_job(_command(words).jobs(), identity).run()


def _command(words: Sequence[str]) -> JobFlags:
    """What the words ask for."""
    sys.argv = [program_name(), *words]  # records name what was typed
    for name, command in COMMANDS.items():
        if tuple(words[: len(name)]) == name:
            rest = respelled(words)[len(name) :]
            form: Any = Annotated[command, tyro.conf.OmitArgPrefixes]
            typed = f"{program_name()} {' '.join(name)}"
            try:
                asked: JobFlags = tyro.cli(form, prog=typed, args=rest, registry=ONE_WORD)
            except SystemExit:  # what is wrong with the words was printed
                raise InputError(
                    f"A piece of '{typed}' cannot be read; list the pieces again with --list-jobs."
                ) from None
            return asked
    raise InputError(f"'toptail {' '.join(words[:2])}' is not made of pieces.")


def on_a_node(
    words: Sequence[str],
    folder: str,
    identity: str,
    commands: Mapping[tuple[str, ...], Any] | None = None,
) -> None:
    """Do a piece on a node of a cluster, once nobody else does it.

    ``commands`` are those of the program that asks, which the node may not have loaded.
    """
    os.chdir(folder)
    COMMANDS.update(commands or {})
    patience = time.monotonic() + _PATIENCE
    while True:
        try:
            do_piece(words, identity)
            return
        except BusyError:
            if time.monotonic() > patience:
                raise
            time.sleep(1.0)
