"""File events of a process: counted, and one of them the last, or the first that the disk refuses.

An event is what can leave something half done: a file opened for writing, a write, a sync, a
rename, a removal, a folder made or removed. Python announces most of them to audit hooks; writes
are seen by files whose raw part is `_Raw`. What compiled code writes by itself is not seen, the
rename that follows is. Only events below one folder count, so that caches elsewhere do not.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

Act = Literal["kill", "full", "read-only"]
"""What happens at the chosen event: the process dies, or the disk is full or read-only from then
on."""

_CODES: Final = {"full": errno.ENOSPC, "read-only": errno.EROFS}
_MAKING: Final = ("open", "write", "sync", "mkdir", "symlink")
"""Events that a full disk refuses; names can still be changed and removed."""
_AUDITED: Final = {
    "os.rename": "rename",
    "os.remove": "remove",
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.truncate": "write",
    "os.link": "symlink",
    "os.symlink": "symlink",
    "os.chmod": "chmod",
}
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass
class Events:
    """The events of this process below a folder."""

    below: str
    """Absolute path of the folder."""
    at: int | None = None
    """The event, counted from 1, before which something happens; None only counts."""
    act: Act = "kill"
    """What happens."""
    seen: list[str] = field(default_factory=list)
    """The kinds of the events so far."""

    def met(self, kind: str, path: object) -> None:
        """An event is about to happen."""
        if not self._counts(path):
            return
        self.seen.append(kind)
        if self.at is None or len(self.seen) < self.at:
            return
        if self.act == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.act == "read-only" or kind in _MAKING:
            code = _CODES[self.act]
            raise OSError(code, os.strerror(code), os.fsdecode(path))  # type: ignore[arg-type]

    def _counts(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        # Not resolved: a link counts where it lies.
        return os.path.abspath(os.fsdecode(path)).startswith(self.below + os.sep)  # noqa: PTH100

    def install(self) -> None:
        """See every event of this process from now on."""
        sys.addaudithook(self._audit)
        _Raw.events = self
        builtins.open = io.open = _open
        os.fsync = self._before("sync", os.fsync)
        os.write = self._before("write", os.write)
        if hasattr(os, "sendfile"):
            os.sendfile = self._before("write", os.sendfile)

    def _audit(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[2], int) and given[2] & _WRITING:
            self.met("open", given[0])
        elif event in _AUDITED:
            # A name inside a folder that is held open, as rmtree uses it, is named by that folder.
            held = -1 if event == "os.truncate" else given[-1]
            self.met(_AUDITED[event], given[0] if held < 0 else _of(held))

    def _before(self, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def announced(where: int, *given: Any, **more: Any) -> Any:
            self.met(kind, _of(where))
            return function(where, *given, **more)

        return announced


def _of(handle: int) -> str:
    """The path behind a file descriptor; itself below the folder where that is a folder."""
    try:
        return f"{Path(f'/proc/self/fd/{handle}').readlink()}{os.sep}."
    except OSError:
        return ""


class _Raw(io.FileIO):
    """A raw file that announces its writes."""

    events: Events

    def write(self, data: Any, /) -> int:
        self.events.met("write", self.name)
        return super().write(data)


def _open(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """`open`, with raw files that announce their writes."""
    if not set(mode) & set("wax+") or isinstance(file, int):
        return _plain_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    buffer = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    if "b" in mode:
        return buffer
    text = io.TextIOWrapper(buffer, encoding, errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # type: ignore[misc]
    return text


_plain_open = io.open
