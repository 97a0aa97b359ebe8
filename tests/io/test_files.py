"""Files and folders: never seen half, never read half, never left behind."""

from __future__ import annotations

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

from toptail import ScoredPools
from toptail.errors import InputError, NotDoneError
from toptail.io import files
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import atomic, entries, staged_folder

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
    files._swept.clear()  # as another process
    write_arrays(folder / "other.npz", {"scores": np.ones(3)})
    assert sorted(path.name for path in folder.iterdir()) == ["other.npz", "raw.npz"]
    np.testing.assert_array_equal(read_arrays(folder / "raw.npz")["scores"], 1.0)


def test_the_files_of_living_processes_are_not_removed(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from toptail.io.files import sweep; sweep(pathlib.Path(sys.argv[1]))"
    )
    for folder in (False, True):
        with files.temporary(tmp_path, folder=folder) as mine:
            subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
            assert mine.exists()
    assert list(tmp_path.iterdir()) == []


def test_files_of_other_machines_are_removed_when_they_are_a_day_old(tmp_path: Path) -> None:
    young, old = tmp_path / ".toptail-another-1-x", tmp_path / ".toptail-another-1-y"
    young.touch()
    old.mkdir()
    os.utime(old, (0, 0))
    files.sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [young.name]


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
        files._swept.clear()
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
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
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


def test_a_file_larger_than_the_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = npz_of(tmp_path / "a.npz", ("a.npy", header("(1000,)") + bytes(8_000)))
    rows = 1_000
    columns = {"query": np.zeros(rows, np.int64), "s": np.zeros(rows), "value": np.zeros(rows)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    monkeypatch.setattr(files, "_memory", lambda: 2_500)
    with pytest.raises(NotDoneError, match="unpacks to"):
        read_arrays(large)
    with pytest.raises(NotDoneError, match="unpacks to"):
        ScoredPools.read(tmp_path / "t.parquet")


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
