"""How many of the package's own files a command enters: how far a reader has to walk.

    python tools/walk.py audit              # a small table, made here
    python tools/walk.py choose
    python tools/walk.py check
    python tools/walk.py -- audit my.parquet --group task

A file is entered when one of its functions is called; importing it does not count. Prints the
files in the order in which they are entered, with the number of files in each room.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

CRITIC = "def score(states, actions, goals):\n    return -abs(actions - goals[:, :2]).sum(axis=1)\n"
TASK = "pointmaze-medium-navigate-v0"
COLLECT = f"data collect {TASK} --episodes 40 --val-episodes 20 --rows 201 --out data/{TASK}.npz"
COMMANDS = {
    "audit": "audit t.parquet --out out",
    "choose": "choose t.parquet --out out",
    "check": f"check --task data/{TASK}.npz --scorer mine.py:score --pools uniform --per-group 8 "
    "--pool-size 16 --starts 14 --horizon 20 --follow-k 1,4,16 --out out",
}


def entered(words: list[str]) -> list[str]:
    """Run a command of ``toptail`` and return the files under ``src`` that it enters, in order."""
    import toptail
    from toptail.cli import main

    home = str(Path(toptail.__file__).parent) + os.sep
    found: dict[str, None] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        new = event == "call" and file.startswith(home) and file not in found
        if new and not _importing(frame, home):
            found[file] = None

    threading.setprofile(look)
    sys.setprofile(look)
    try:
        if code := main(words):
            raise SystemExit(code)
    finally:
        sys.setprofile(None)
    return [file.removeprefix(home) for file in found]


def _importing(frame: FrameType | None, home: str) -> bool:
    """Whether a file of the package is being imported."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(home):
            return True
        frame = frame.f_back
    return False


def prepare(command: str) -> None:
    """Write the inputs of a command of `COMMANDS` into the current folder."""
    from toptail import builtin_pools
    from toptail.cli import main

    builtin_pools(queries=60, candidates=16).write("t.parquet")
    Path("mine.py").write_text(CRITIC)
    if command == "check":
        main(COLLECT.split())


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] != ["--"]:
        if words[:1] not in [[name] for name in COMMANDS]:
            raise SystemExit(__doc__)
        os.chdir(tempfile.mkdtemp())
        prepare(words[0])
        words = ["--", *COMMANDS[words[0]].split()]
    files = entered(words[1:])
    rooms = Counter(str(Path(file).parent) for file in files)
    print(*files, sep="\n")
    print(f"{len(files)} files:", ", ".join(f"{room} {count}" for room, count in rooms.items()))
