"""A small part of the attack: damaged files, kills, and that findings are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from toptail import InputError
from validation.attack import kills
from validation.attack.files import READERS, Reader, attack_files, corpus, outcome


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_damaged_files_are_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    reader.make(tmp_path)
    reader.read(tmp_path)  # the sound one
    assert attack_files(reader, range(10))[1] == []


@pytest.mark.parametrize(("reader", "path"), corpus(), ids=lambda each: getattr(each, "name", ""))
def test_files_that_once_did_not_hold(reader: Reader, path: Path, tmp_path: Path) -> None:
    reader.make(tmp_path)
    (tmp_path / reader.file).write_bytes(path.read_bytes())
    assert outcome(reader, tmp_path) in ("read", "refused")


def test_other_errors_are_findings() -> None:
    def write(folder: Path) -> None:
        (folder / "x.csv").write_text("a,b\n1,2\n")

    def read(folder: Path) -> None:
        if len((folder / "x.csv").read_bytes()) % 2:
            raise KeyError("a")
        raise InputError("no")

    counts, findings = attack_files(Reader("careless", "x.csv", write, read), range(40))
    assert counts["refused"] > 0
    assert len(findings) == counts["finding"] > 0
    assert "KeyError" in findings[0]


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("case", kills.CASES, ids=lambda case: case.name)
def test_killed_commands_leave_the_same_files(case: kills.Case) -> None:
    made, findings = kills.attack_command(case, 2)
    assert findings == []
    assert made == 2


def test_a_folder_that_differs_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"seconds": 1, "n": 1}')
    first = kills.snapshot(tmp_path)
    (tmp_path / "a.json").write_text('{"seconds": 2, "n": 1}')
    assert kills.snapshot(tmp_path) == first
    (tmp_path / "a.json").write_text('{"seconds": 2, "n": 2}')
    assert kills.snapshot(tmp_path) != first
