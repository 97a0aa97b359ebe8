"""Locks between processes: held by one at a time, and free when that one ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from toptail.errors import BusyError, Exit, NotDoneError
from toptail.io.locks import is_locked, locked


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".lock"


def test_a_second_holder_is_told_that_it_is_busy(lock: Path) -> None:
    assert not is_locked(lock)
    with locked(lock, "Busy."):
        assert is_locked(lock)
        with pytest.raises(BusyError, match=r"Busy\.") as caught, locked(lock, "Busy."):
            pass
        assert caught.value.code == Exit.BUSY
    assert not is_locked(lock)
    assert [path.name for path in lock.parent.iterdir()] == [".lock"]


def test_a_process_that_was_killed_holds_nothing(lock: Path) -> None:
    code = (
        "import os, pathlib, sys\n"
        "from toptail.io.locks import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_locked(lock)
        with pytest.raises(BusyError), locked(lock, "Busy."):
            pass
        holder.kill()
        holder.wait()
    assert not is_locked(lock)
    with locked(lock, "Busy."):
        pass


def test_without_a_sentence_it_waits_until_the_lock_is_free(lock: Path) -> None:
    waited, free = [], threading.Event()

    def hold() -> None:
        with locked(lock):
            free.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    while not is_locked(lock):
        time.sleep(0.01)

    def wait() -> None:
        waited.append(1)
        free.set()

    with locked(lock, wait=wait):
        assert waited
    holder.join()


def test_looking_does_not_disturb_the_next_holder(lock: Path) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_locked(lock)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for _ in range(20):
            with locked(lock, "Busy."):
                pass
    finally:
        stop.set()
        looker.join()


def test_a_file_system_without_locks_is_a_sentence(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", none)
    with pytest.raises(NotDoneError, match="No locks available"), locked(lock, "Busy."):
        pass
