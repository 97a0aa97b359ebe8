"""Broken files, a hundred thousand of them, through every reader, in a process that may die."""

from __future__ import annotations

import json
import os
import re
import select
import struct
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any, Final, TextIO

from tests.attack.forks import ROOT, python_path
from tests.attack.fuzz_worker import SECONDS, broken
from tests.attack.readers import READERS, Reader
from tests.attack.state import State
from tests.attack.turns import Turns

GOAL: Final = 100_000
"""Files of the whole run."""
BATCH: Final = 250
"""Files that are one attack in the state: of a reader's n-th batch those from n times this on."""
_NOWHERE: Final = struct.pack("<q", -1)
"""Where a process is that has not begun."""
HELD: Final = ("read", "refused")
"""Outcomes as they should be."""


class Worker:
    """A process that reads batches; one that died or hangs is replaced."""

    def __init__(self, folder: Path) -> None:
        self._position = folder / "position"
        self._process: subprocess.Popen[str] | None = None
        self._answers: TextIO | None = None

    def _start(self) -> subprocess.Popen[str]:
        self._position.write_bytes(_NOWHERE)
        read, write = os.pipe()
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-m", "tests.attack.fuzz_worker"),
                *(str(write), str(self._position)),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[write],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(), "OMP_NUM_THREADS": "1"},
            text=True,
        )
        os.close(write)
        self._answers = os.fdopen(read)
        return self._process

    def ask(self, reader: str, start: int, stop: int) -> tuple[dict[str, Any] | None, int, str]:
        """What became of a batch; or nothing, the file that ended the process, and how."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert self._answers is not None
        self._position.write_bytes(_NOWHERE)
        process.stdin.write(json.dumps({"reader": reader, "start": start, "stop": stop}) + "\n")
        process.stdin.flush()
        hung = not self._ready(self._answers, 6 * SECONDS)
        answer = "" if hung else self._answers.readline()
        if answer:
            return json.loads(answer), stop, ""
        self.close()
        at = struct.unpack("<q", self._position.read_bytes())[0]
        if at < start:
            raise RuntimeError(f"The process that reads could not begin with {reader}.")
        return None, at, "hung" if hung else "crashed"

    def _ready(self, answers: TextIO, seconds: float) -> bool:
        """Whether an answer comes, or the process ends, before a single file takes too long."""
        last, since = b"", time.monotonic()
        while True:
            if select.select([answers], [], [], 1.0)[0]:
                return True
            now = self._position.read_bytes()
            if now != last or now == _NOWHERE:  # imports take as long as they take
                last, since = now, time.monotonic()
            elif time.monotonic() - since > seconds:
                return False

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def attack(state: State, home: Path, turns: Turns) -> None:
    """Let files be read, each reader its share."""
    del home
    read = dict.fromkeys((reader.name for reader in READERS), 0)
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder))
        try:
            while not turns.over:
                reader = min(READERS, key=lambda reader: read[reader.name] / reader.share)
                batch = turns.first(reader.name, state.left(reader.name, count()), BATCH)
                if batch is not None:
                    read[reader.name] = batch + 1
                    _batch(state, worker, reader, batch * BATCH, (batch + 1) * BATCH)
                    state.add(reader.name, batch)
                    state.save()
        finally:
            worker.close()


def _batch(state: State, worker: Worker, reader: Reader, start: int, stop: int) -> None:
    """Read some files; where one ends the process, those before and after it all the same."""
    while start < stop:
        seen, at, how = worker.ask(reader.name, start, stop)
        if seen is None:
            if at > start:
                _batch(state, worker, reader, start, at)
            seen = {
                "counts": {"files": 1, how: 1},
                "findings": [{"attack": at, "outcome": how, "where": ""}],
            }
            at += 1
        state.count(seen["counts"])
        for finding in seen["findings"]:
            _keep(state, reader, finding)
        start = at


def _keep(state: State, reader: Reader, finding: dict[str, Any]) -> None:
    """Remember the first file of its kind."""
    sign = f"{reader.name}: {finding['outcome']} {_sign(finding['where'])}"
    if any(known["sign"] == sign for known in state.whole.findings):
        return
    what = slug(f"{finding['outcome']} {_sign(finding['where'])}")[:60]
    name = f"{slug(reader.name)}--{what}.{reader.kind}"
    found = state.folder / "found"
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        reader.make(Path(folder))
        sound = (Path(folder) / reader.file).read_bytes()
    (found / name).write_bytes(broken(reader, sound, finding["attack"]))
    state.find(reader.name, finding["attack"], finding["outcome"], sign=sign, file=name,
               where=finding["where"])  # fmt: skip
    print(f"  {sign}", flush=True)


def slug(text: str) -> str:
    """A text as part of a file's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _sign(where: str) -> str:
    """Where something went wrong, without what differs from file to file."""
    return ":".join(where.split(":")[:2]) if " in " in where.partition(":")[0] else ""
