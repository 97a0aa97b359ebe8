"""Locks that several machines obey: who holds one, who is gone, and whose clock counts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from toptail.errors import BusyError, Exit, NotDoneError
from toptail.io import files as locks
from toptail.io import files as temporary
from toptail.io import locks as leases
from toptail.io.files import NoLocksError
from toptail.io.locks import is_locked, locked


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".lock"


def lease(lock: Path) -> Path:
    """The lease beside a lock."""
    return lock.with_name(".lock.lease")


def left_elsewhere(lock: Path, age: float = 0.0) -> None:
    """What a process of another machine leaves, with a heartbeat so many seconds ago."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    lease(lock).write_text(json.dumps({"machine": "another", "pid": 1, "token": "x"}))
    now = lease(lock).stat().st_mtime
    os.utime(lease(lock), (now - age, now - age))


def test_a_lock_is_held_and_goes_with_its_block(lock: Path) -> None:
    assert not is_locked(lock)
    with locked(lock, "Busy."):
        assert is_locked(lock)
        with pytest.raises(BusyError, match=r"Busy\.") as caught, locked(lock, "Busy."):
            pass
        assert caught.value.code == Exit.BUSY
    assert not is_locked(lock)
    assert sorted(path.name for path in lock.parent.iterdir()) == [".lock"]


def test_a_process_of_this_machine_that_was_killed_holds_nothing(lock: Path) -> None:
    code = f"""
from pathlib import Path
from toptail.io.locks import locked
import os
with locked(Path({str(lock)!r}), "Busy."):
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert lease(lock).is_file()
    assert not is_locked(lock)
    with locked(lock, "Busy."):
        pass
    assert not lease(lock).exists()


def test_another_machine_holds_a_lock_while_its_heart_beats(lock: Path) -> None:
    left_elsewhere(lock, leases.STALE / 2)
    assert is_locked(lock)
    with pytest.raises(BusyError), locked(lock, "Busy."):
        pass


def test_the_stale_lock_of_another_machine_is_taken_over(lock: Path) -> None:
    left_elsewhere(lock, leases.STALE + 1)
    assert not is_locked(lock)
    with locked(lock, "Busy."):
        assert json.loads(lease(lock).read_text())["machine"] == locks.this_machine()


def test_the_clocks_of_machines_do_not_count(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_elsewhere(lock)
    monkeypatch.setattr("time.time", lambda: 0.0)
    assert is_locked(lock)
    monkeypatch.setattr("time.time", lambda: 1e12)
    assert is_locked(lock)


def test_a_lease_that_was_cut_off_while_it_was_written_is_taken_over(lock: Path) -> None:
    left_elsewhere(lock)
    lease(lock).write_text("")
    old = lease(lock).stat().st_mtime - leases.STALE - 1
    os.utime(lease(lock), (old, old))
    with locked(lock, "Busy."):
        pass


def test_where_files_cannot_be_locked_the_lease_decides(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, *, shared: bool = False) -> bool:
        raise NoLocksError(95, f"Operation not supported {handle} {shared}")

    monkeypatch.setattr(leases, "try_lock", refuse)
    left_elsewhere(lock)
    with pytest.raises(BusyError), locked(lock, "Busy."):
        pass
    lease(lock).unlink()
    with locked(lock, "Busy."), pytest.raises(BusyError), locked(lock, "Of this machine, too."):
        pass


def test_two_that_take_over_at_once_do_not_both_hold_it(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_elsewhere(lock, leases.STALE + 1)
    fresh = json.dumps({"machine": "a third", "token": "y"})
    real = leases._is_elsewhere

    def slow(path: Path, *, by_lock: bool) -> bool:
        found = real(path, by_lock=by_lock)
        lease(path).write_text(fresh)  # somebody else was faster
        return found

    monkeypatch.setattr(leases, "_is_elsewhere", slow)
    with pytest.raises(BusyError), locked(lock, "Busy."):
        pass
    assert lease(lock).read_text() == fresh


def test_a_heartbeat_keeps_a_lease_fresh_and_notices_its_loss(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "BEAT", 0.01)
    beaten = threading.Event()
    real = os.utime

    def beat(*what: Any) -> None:
        real(*what)
        beaten.set()

    monkeypatch.setattr(os, "utime", beat)
    with locked(lock, "Busy."):
        assert beaten.wait(60)
    noticed = threading.Event()

    def another(_path: Path) -> dict[str, str]:
        noticed.set()
        return {"token": "somebody else's"}

    monkeypatch.setattr(leases, "_holder", another)
    with pytest.raises(NotDoneError, match="another one has taken over"), locked(lock, "Busy."):
        assert noticed.wait(60)


def test_temporary_files_of_another_machine_stay(tmp_path: Path) -> None:
    theirs, old = tmp_path / ".toptail-0123abcd-x", tmp_path / ".toptail-0123abcd-y"
    mine = tmp_path / f"{temporary._own_prefix()}z"
    for path in (theirs, old, mine):
        path.touch()
    os.utime(old, (0, 0))
    temporary.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [theirs.name]
