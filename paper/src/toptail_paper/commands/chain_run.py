"""Running a chain: a few processes at a time, each in its lane, until all is done or time is up."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from toptail.commands.parent import bound
from toptail.io.json_files import write_json
from toptail_paper.commands.chain import Lane, Piece


def program(piece: Piece) -> str:
    """The program that knows a piece's command."""
    return "toptail-paper" if piece.command[0] == "study" else "toptail"


def _called(piece: Piece) -> tuple[str, ...]:
    return sys.executable, "-m", program(piece).replace("-", "_")


_POLL = 0.2
_GRACE = 5.0
_TAIL = 12


@dataclass
class _Live:
    """A piece that is running."""

    piece: Piece
    process: subprocess.Popen[str]
    log: TextIO
    began: float = field(default_factory=time.monotonic)


@dataclass
class ChainRun:
    """A chain on its way; the same chain goes on where an earlier run of it stopped."""

    pieces: Sequence[Piece]
    """What to do, in the order of preference."""
    home: Path
    """Folder of the logs and of what is finished."""
    lanes: Mapping[Lane, int]
    """How many pieces of each lane run at a time."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that the pieces see beside this process's."""
    tell: Callable[[str], None] = print
    """Told a line whenever something begins, ends or is stopped."""
    program: Sequence[str] = ()
    """What a piece's arguments are given to; the program that knows them unless given."""

    def __post_init__(self) -> None:
        self._live: list[_Live] = []
        self.failed: list[str] = []
        """Pieces that ended with an error in this run."""

    def finished(self, piece: Piece) -> bool:
        """Whether a piece was done, and what it left is still there."""
        return self._mark(piece).is_file() and all(path.exists() for path in piece.leaves)

    def left(self) -> list[str]:
        """Pieces that are not finished."""
        return [piece.name for piece in self.pieces if not self.finished(piece)]

    def run(self, seconds: float | None = None) -> None:
        """Do what is left; after ``seconds`` whatever still runs is stopped."""
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while self._start() or self._live:
                if end is not None and time.monotonic() >= end:
                    break
                time.sleep(_POLL)
                self._reap()
        finally:
            self._stop()

    def _start(self) -> bool:
        """Begin what can begin; whether something did."""
        began = False
        done = {piece.name for piece in self.pieces if self.finished(piece)}
        busy = {live.piece.name for live in self._live} | set(self.failed)
        for piece in self.pieces:
            running = sum(live.piece.lane == piece.lane for live in self._live)
            waits = piece.name in done | busy or not set(piece.after) <= done
            if not waits and running < self.lanes.get(piece.lane, 1):
                self._begin(piece)
                began = True
        return began

    def _begin(self, piece: Piece) -> None:
        path = self._log(piece)
        path.parent.mkdir(parents=True, exist_ok=True)
        log = path.open("a", encoding="utf-8")
        process = subprocess.Popen(
            [*(self.program or _called(piece)), *piece.command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            text=True,
            **bound({**os.environ, "PYTHONUNBUFFERED": "1", **self.environment}),
        )
        self._live.append(_Live(piece, process, log))
        self.tell(f"{piece.name}: begun")

    def _reap(self) -> None:
        for live in [live for live in self._live if live.process.poll() is not None]:
            self._live.remove(live)
            live.log.close()
            seconds, code = time.monotonic() - live.began, live.process.returncode
            missing = [path for path in live.piece.leaves if not path.exists()]
            if code == 0 and not missing:
                entry = {
                    "command": [program(live.piece), *live.piece.command],
                    "seconds": round(seconds, 1),
                }
                write_json(self._mark(live.piece), entry)
                self.tell(f"{live.piece.name}: finished after {seconds:.0f} s")
                continue
            self.failed.append(live.piece.name)
            why = f"left no {missing[0]}" if code == 0 else f"ended with code {code}"
            tail = self._log(live.piece).read_text("utf-8", errors="replace").splitlines()[-_TAIL:]
            self.tell(
                "\n".join([f"{live.piece.name}: {why}; {self._log(live.piece)} ends:", *tail])
            )

    def _stop(self) -> None:
        """End what still runs, first politely."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            for live in self._live:
                if live.process.poll() is None:
                    os.killpg(live.process.pid, how)
            end = time.monotonic() + _GRACE
            while any(live.process.poll() is None for live in self._live):
                if time.monotonic() >= end:
                    break
                time.sleep(_POLL / 4)
        for live in self._live:
            live.log.close()
            self.tell(f"{live.piece.name}: stopped; the same command goes on with it")
        self._live.clear()

    def _mark(self, piece: Piece) -> Path:
        return self.home / "finished" / f"{_slug(piece.name)}.json"

    def _log(self, piece: Piece) -> Path:
        return self.home / "logs" / f"{_slug(piece.name)}.log"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name)


def as_lines(run: ChainRun) -> list[str]:
    """One line of JSON a piece: name, command, lane, what it waits for, and whether it is done."""
    return [
        json.dumps(
            {
                "name": piece.name,
                "command": [program(piece), *piece.command],
                "lane": piece.lane,
                "after": piece.after,
                "leaves": [str(path) for path in piece.leaves],
                "state": "done" if run.finished(piece) else "missing",
            }
        )
        for piece in run.pieces
    ]
