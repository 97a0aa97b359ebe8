"""A process that has everything imported and runs command lines in copies of itself.

Starting Python and importing JAX takes seconds; a fork takes milliseconds. The server imports
without computing, so that nothing is running that a fork would lose.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.attack.events import Act, Events
from tests.programs import program_of

ROOT: Final = Path(__file__).parents[2]
"""The checkout."""

HEAVY: Final = (
    *("jax", "flax.linen", "optax", "safetensors.numpy", "scipy.stats", "pyarrow.parquet"),
    *("matplotlib.figure", "jinja2", "rich.progress", "mujoco", "ogbench", "gymnasium"),
)
"""What the server imports, as far as it is installed."""
_DIES_WITH_PARENT: Final = 1
"""``PR_SET_PDEATHSIG`` of Linux."""


def python_path() -> str:
    """Where the attacked processes find the checkout, and what this one finds elsewhere."""
    further = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, further)])


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def die_with_parent() -> None:
    """Let this process be killed when the one that started it ends, however it does."""
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)


@dataclass(frozen=True)
class Line:
    """One command line and the circumstances in which it runs."""

    words: Sequence[str]
    """What follows ``toptail``."""
    folder: str
    """Where it runs; only file events below count."""
    at: int | None = None
    """The file event before which something happens."""
    act: Act = "kill"
    """What happens there."""
    seconds: float = 300.0
    """When it is ended."""
    memory: int | None = None
    """Bytes of address space that it may take beyond the server's."""
    first: str = ""
    """A function, ``module:name``, that is called in the process before."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside this process's."""


@dataclass(frozen=True)
class Ended:
    """How a command line ended."""

    code: int
    """Its exit code, or minus the signal that ended it."""
    out: str
    """What it printed."""
    err: str
    """What it printed as errors."""
    events: tuple[str, ...] = ()
    """Its file events; none where it was killed."""
    late: bool = False
    """Whether it was ended because its time was up."""

    @property
    def traceback(self) -> bool:
        """Whether a person saw a traceback."""
        return "Traceback (most recent call last)" in self.err + self.out

    @property
    def crashed(self) -> bool:
        """Whether the process died of a signal that nobody sent."""
        return self.code < 0 and not self.late and self.code != -signal.SIGKILL


class Forks:
    """A server of forks; a context manager."""

    def __init__(self, compiled: Path) -> None:
        """Keep in ``compiled`` what JAX compiles, so that it does so once."""
        self._compiled = compiled.resolve()

    def __enter__(self) -> Forks:
        ours, theirs = socket.socketpair()
        environment = {
            **os.environ,
            "PYTHONPATH": python_path(),
            "COLUMNS": "200",
            "JAX_PLATFORMS": "cpu",
            "JAX_COMPILATION_CACHE_DIR": str(self._compiled),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.attack.forks", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            env=environment,
        )
        theirs.close()
        self._stream = ours.makefile("rw")
        ours.close()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._process.wait()

    def run(self, line: Line) -> Ended:
        """Run a command line to its end."""
        self._stream.write(json.dumps(asdict(line)) + "\n")
        self._stream.flush()
        answer = self._stream.readline()
        if not answer:
            raise RuntimeError(f"The server of forks ended with {self._process.wait()}.")
        content = json.loads(answer)
        return Ended(**{**content, "events": tuple(content["events"])})


def serve(handle: int) -> None:
    """Answer command lines until nobody asks."""
    die_with_parent()
    for name in HEAVY:
        with suppress(ImportError):
            __import__(name)
    import toptail.cli  # noqa: F401

    with socket.socket(fileno=handle) as connection, connection.makefile("rw") as stream:
        for request in stream:
            stream.write(json.dumps(asdict(_run(Line(**json.loads(request))))) + "\n")
            stream.flush()


def _run(line: Line) -> Ended:
    """Fork, run, and wait."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("out", "err", "events")}
        child = os.fork()
        if child == 0:
            _child(line, files)
        code, late = _wait(child, line.seconds)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # its workers, where it did not end them itself
        texts = {
            name: path.read_text("utf-8", "replace") if path.exists() else ""
            for name, path in files.items()
        }
    return Ended(code, texts["out"], texts["err"], tuple(texts["events"].split()), late)


def _wait(child: int, seconds: float) -> tuple[int, bool]:
    """The exit code, and whether time was up."""
    end, pause = time.monotonic() + seconds, 0.001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), False
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), True
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _child(line: Line, files: Mapping[str, Path]) -> None:
    """Run the command line in this process, and end it."""
    code: Any = 70
    try:
        die_with_parent()
        os.setsid()
        os.chdir(line.folder)
        os.environ.update(line.environment)
        for handle, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(files[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), handle)
        if line.memory is not None:
            taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (taken + line.memory,) * 2)
        if line.first:
            module, _, name = line.first.partition(":")
            getattr(import_module(module), name)()
        events = Events(str(Path(line.folder).absolute()), line.at, line.act)
        events.install()
        code = _main(line.words)
        files["events"].write_text("\n".join(events.seen))
    finally:
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _main(words: Sequence[str]) -> Any:
    """The exit code that the console script would end with."""
    from toptail import cli

    program = program_of(words)
    sys.argv = [program.name, *words]
    try:
        cli.run(program)
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
        return 0 if end.code is None else end.code
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(int(sys.argv[1]))
