"""The process that reads broken files, apart from the one that counts: it may die of one."""

from __future__ import annotations

import json
import mmap
import os
import pickle
import resource
import signal
import struct
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final, NoReturn

from tests.attack.mutate import mutated
from tests.attack.readers import READERS, Reader

SECONDS: Final = 10
"""How much of a core's time a file may take."""
MEMORY: Final = 2 << 30
"""Bytes beyond what the process has when it begins."""


class LateError(BaseException):
    """A file took too long."""


class UnpickledError(BaseException):
    """Something was unpickled."""


@dataclass
class Seen:
    """What became of some files."""

    counts: Counter[str] = field(default_factory=Counter)
    """Outcome -> how many."""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """What did not hold: number of the file, outcome, and where."""

    def add(self, number: int, outcome: str, where: str = "") -> None:
        """Count a file, and keep it where it shows something."""
        self.counts.update(("files", outcome))
        if outcome not in ("read", "refused"):
            self.findings.append({"attack": number, "outcome": outcome, "where": where})


def broken(reader: Reader, sound: bytes, number: int) -> bytes:
    """The n-th broken file of a reader."""
    return mutated(reader.kind, sound, Random(f"{reader.name}:{number}"))


def try_files(reader: Reader, folder: Path, numbers: Iterable[int], at: Any = None) -> Seen:
    """Let a reader read broken files in its sound folder; ``at`` is told each number before."""
    target = folder / reader.file
    sound = target.read_bytes()
    seen = Seen()
    for number in numbers:
        if at is not None:
            at(number)
        target.write_bytes(broken(reader, sound, number))
        seen.add(number, *outcome(reader, folder))
    return seen


def outcome(reader: Reader, folder: Path) -> tuple[str, str]:
    """How reading a folder ends, and where if not well."""
    from toptail.errors import InputError, NotDoneError

    try:
        with _limited():
            reader.read(folder)
    except (InputError, NotDoneError) as error:
        text = error.for_command_line
        return ("refused", "") if text.isprintable() else ("unprintable", ascii(text)[:200])
    except (KeyboardInterrupt, MemoryError, OSError):
        # The command line has a sentence for them. A critic that says that a person stopped it
        # is believed.
        return "refused", ""
    except LateError:
        return "late", ""
    except UnpickledError:
        return "unpickled", _place()
    except Exception:
        return "traceback", _place()
    except BaseException:
        return "ended the process", _place()
    return "read", ""


def _place() -> str:
    """The exception in flight, and the last line of the package that it came through."""
    kind, error, trace = sys.exc_info()
    frames = [f for f in traceback.extract_tb(trace) if "/toptail/" in f.filename]
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}:{last.name}" if last else "?"
    return f"{kind.__name__ if kind else ''} in {where}: {ascii(str(error))[:120]}"


@contextmanager
def _limited() -> Any:
    """End what takes too long."""

    def late(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise LateError

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def forbid_pickles() -> None:
    """Make unpickling anything an outcome of its own."""

    def refuse(*_given: Any, **_more: Any) -> NoReturn:
        raise UnpickledError

    def hook(event: str, _given: tuple[Any, ...]) -> None:
        if event == "pickle.find_class":
            raise UnpickledError

    pickle.load = pickle.loads = refuse
    sys.addaudithook(hook)


def main(handle: int, position: str) -> None:
    """Answer batches, ``{"reader", "start", "stop"}`` a line, until nobody asks."""
    with Path(position).open("r+b") as file:
        place = mmap.mmap(file.fileno(), 8)

    def at(number: int) -> None:
        place[:] = struct.pack("<q", number)

    readers = {reader.name: reader for reader in READERS}
    sounds: dict[str, bytes] = {}
    null = os.open(os.devnull, os.O_WRONLY)
    forbid_pickles()
    with os.fdopen(handle, "w") as answers, tempfile.TemporaryDirectory(dir=_quick_disk()) as home:
        for line in sys.stdin:
            os.dup2(null, 1)
            os.dup2(null, 2)
            batch = json.loads(line)
            reader = readers[batch["reader"]]
            folder = Path(home) / reader.name.replace("/", "-")
            _unlimited()
            if not folder.is_dir():  # and what it imports comes before the limit
                folder.mkdir()
                reader.make(folder)
            else:
                (folder / reader.file).write_bytes(sounds[reader.name])
            sounds[reader.name] = (folder / reader.file).read_bytes()
            _limit_memory()
            seen = try_files(reader, folder, range(batch["start"], batch["stop"]), at)
            answers.write(json.dumps({"counts": seen.counts, "findings": seen.findings}) + "\n")
            answers.flush()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _unlimited() -> None:
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _quick_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
