"""Files and folders: never seen half, never read half, never left behind."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from toptail.io.guard import MOST

from toptail import ScoredPools
from toptail.errors import BusyError, InputError, NotDoneError
from toptail.io import files
from toptail.io import files as locks
from toptail.io import files as temporary
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import atomic, entries, staged_folder
from toptail.lab.training.run_files import in_training, training_lock

EVENTS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.chmod")


def content(folder: Path) -> dict[str, str]:
    """The text of every file of a folder that is no temporary one."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {p.relative_to(folder).as_posix(): p.read_text() for p in found}


def killed_before(event: int, work: Callable[[], None]) -> bool:
    """Whether a copy of this process was killed before its n-th file event of some work."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that a copy does not have
        child = os.fork()
    if child == 0:
        left = event

        def hook(name: str, _: object) -> None:
            nonlocal left
            if name in EVENTS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(hook)
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_what_is_being_written_is_never_data_and_the_next_process_removes_it(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "scores"

    def die(target: Path) -> None:
        np.savez(target, scores=np.zeros(3))
        os.kill(os.getpid(), signal.SIGKILL)

    write_arrays(folder / "raw.npz", {"scores": np.ones(3)})
    assert killed_before(10**9, lambda: atomic(folder / "raw.npz", die))
    left = [path.name for path in folder.iterdir() if path.name != "raw.npz"]
    assert len(left) == 1
    assert entries(folder, "*.npz") == [folder / "raw.npz"]
    temporary._swept.clear()  # as another process
    write_arrays(folder / "other.npz", {"scores": np.ones(3)})
    assert sorted(path.name for path in folder.iterdir()) == ["other.npz", "raw.npz"]
    np.testing.assert_array_equal(read_arrays(folder / "raw.npz")["scores"], 1.0)


def test_what_a_living_process_writes_is_not_removed(tmp_path: Path) -> None:
    for folder in (False, True):
        with temporary.temporary(tmp_path, folder=folder) as mine:
            code = "import sys; from pathlib import Path; from toptail.pools import temporary; "
            code += "temporary.sweep(Path(sys.argv[1]))"
            subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
            assert mine.exists()
    assert list(tmp_path.iterdir()) == []


def test_hidden_folders_and_files_are_no_entries(tmp_path: Path) -> None:
    for name in (".toptail-1/record.json", "a/record.json", ".record.json", "b/.c/record.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert entries(tmp_path, "**/record.json") == [tmp_path / "a/record.json"]


def replace_folder(path: Path) -> None:
    with staged_folder(path) as stage:
        (stage / "figures").mkdir()
        for name in ("audit.json", "report.html", "figures/a.svg"):
            (stage / name).write_text("new")


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="needs fork and exchange")
def test_killed_at_any_moment_a_folder_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    old = {"audit.json": "old", "report.html": "old", "mine/notes.txt": "mine"}
    new = {**dict.fromkeys(("audit.json", "report.html", "figures/a.svg"), "new")}
    new["mine/notes.txt"] = "mine"
    event, seen = 0, []
    while True:
        out = tmp_path / str(event) / "out"
        for name, text in old.items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text(text)
        (out / "link").symlink_to("mine")
        killed = killed_before(event, lambda out=out: replace_folder(out))  # type: ignore[misc]
        found = content(out)
        assert found in (old, new), (event, found)
        seen.append(found == new)
        replace_folder(out)
        assert content(out) == new
        assert (out / "link").is_symlink()
        assert [path.name for path in out.parent.iterdir()] == ["out"]
        temporary._swept.clear()
        if not killed:
            break
        event += 1
    assert seen[0] is False
    assert seen[-1] is True
    assert event > 8


@pytest.mark.parametrize("why", ["cannot exchange", "works in it"])
def test_where_a_folder_cannot_be_exchanged_its_files_are_replaced(
    why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "audit.json").write_text("old")
    (out / "mine").write_text("mine")
    if why == "works in it":
        monkeypatch.chdir(out)
    else:
        monkeypatch.setattr(files, "exchange", lambda *_: False)
    replace_folder(Path() if why == "works in it" else out)
    assert content(out) == {
        **dict.fromkeys(("audit.json", "report.html", "figures/a.svg"), "new"),
        "mine": "mine",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_what_is_in_the_way_of_a_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(InputError, match="leads nowhere"):
        replace_folder(tmp_path / "nowhere")
    with pytest.raises(InputError, match="name too long"):
        replace_folder(tmp_path / ("x" * 300))
    (tmp_path / "out" / "audit.json").mkdir(parents=True)
    with pytest.raises(InputError, match="is to be written; move it away"):
        replace_folder(tmp_path / "out")


def test_a_full_disk_is_not_the_users_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("toptail.io.files.tempfile.mkdtemp", full)
    with pytest.raises(NotDoneError, match="No space left on device"):
        replace_folder(tmp_path / "out")


def test_without_locks_only_what_is_old_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    old, young = tmp_path / ".toptail-old", tmp_path / ".toptail-young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (0, 0))
    atomic(tmp_path / "a.txt", lambda path: path.write_text("a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".toptail-young", "a.txt"]


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_written_to_and_swept_by_age(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("toptail.io.files.fcntl.flock", none)
    old, young = tmp_path / ".toptail-old", tmp_path / ".toptail-young"
    for path in (old, young):
        path.write_text("")
    os.utime(old, (0, 0))
    atomic(tmp_path / "a.txt", lambda path: path.write_text("a"))
    replace_folder(tmp_path / "out")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [".toptail-young", "a.txt", "out"]
    assert not in_training(tmp_path)
    (tmp_path / ".lock").write_text("")
    assert not in_training(tmp_path)
    with training_lock(tmp_path):  # the lease beside the lock decides
        assert in_training(tmp_path)
        with pytest.raises(BusyError, match="being trained"):
            training_lock(tmp_path).__enter__()
    assert not in_training(tmp_path)


def npz_of(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def header(shape: str, kind: str = "<f8") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (("a.npy", header("(1000000000000,)")), "says it has shape"),
        (("a.npy", header("(1000000000000,)", "|S0")), "says it has shape"),
        (("a.npy", b"no array"), "is no array"),
        (("a.txt", b"hello"), "is no array"),
        (("a.npy", header("(1,)", "|O") + b"12345678"), "pickled"),
        (("\x1b[31m.npy", b"no array"), r"'\\x1b\[31m' is no array"),
    ],
)
def test_members_that_are_no_arrays_or_larger_than_they_are(
    member: tuple[str, bytes], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read_arrays(npz_of(tmp_path / "a.npz", member))
    assert str(refused.value).isprintable()


def test_a_file_that_unpacks_to_a_thousand_times_its_size_is_refused_unless_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail.io.guard._UNSUSPECTED", 1_000_000)
    bomb = npz_of(tmp_path / "a.npz", ("a.npy", header("(1000000,)") + bytes(8_000_000)))
    with pytest.raises(InputError, match="--max-gb"):
        read_arrays(bomb)
    rows = 2_000_000
    columns = {"query": np.zeros(rows, np.int64), "s": np.zeros(rows), "value": np.zeros(rows)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet", compression="zstd")
    with pytest.raises(InputError, match="unpacks to"):
        ScoredPools.read(tmp_path / "t.parquet")
    text = "query,s,value\n" + "0,0,0\n" * 1_000_000
    with pa.output_stream(str(tmp_path / "t.csv.gz")) as file:
        file.write(text.encode())
    monkeypatch.setattr("toptail.io.guard._RATIO", 100)
    with pytest.raises(InputError, match="unpacks to"):
        ScoredPools.read(tmp_path / "t.csv.gz")
    monkeypatch.setenv(MOST, "0.1")
    assert read_arrays(bomb)["a"].size == 1_000_000
    assert ScoredPools.read(tmp_path / "t.csv.gz").queries == 1
    monkeypatch.setenv(MOST, "nan")
    with pytest.raises(InputError, match="no number of gigabytes"):
        read_arrays(bomb)


def test_offsets_that_lead_out_of_an_arrow_column_are_refused(tmp_path: Path) -> None:
    offsets = pa.py_buffer(np.array([0, -5, 3], np.int32))
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abc")])
    numbers = np.zeros(2)
    table = pa.table({"query": bad, "score": numbers, "value": numbers})
    with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InputError, match="not a readable Arrow file"):
        ScoredPools.read(tmp_path / "t.arrow")


@pytest.mark.parametrize(
    "text", ["null\n", " \n\n null\n", '{"query": 1}\n null\n', " " * 70_000 + "\nnull\n"]
)
def test_no_line_of_json_lines_may_be_null(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(InputError, match="one object on each line"):
        ScoredPools.read(tmp_path / "t.jsonl")
