"""Pieces of long commands: listed as data, done one by one, the same as done together."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program_of
from tests.training.toy import toy_file
from toptail.cli import main
from toptail.commands.engine import own_words
from toptail.errors import BusyError, Exit, InputError, NotDoneError
from toptail.io.locks import locked
from toptail.jobs.job import Job, find_job

SMALL = (
    *("--steps", "2", "--batch-size", "16", "--log-every", "2", "--hidden", "8", "--depth", "1"),
    *("--embed-dim", "4", "--ensemble", "1", "--seeds", "42"),
)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Type a command."""

    def call(*words: object) -> int:
        typed = list(map(str, words))
        program = program_of(typed)
        monkeypatch.setattr(sys, "argv", [program.name, *typed])
        return main(program=program)

    return call


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The lines that were printed."""
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def a_job(tmp_path: Path, **changes: Any) -> Job:
    """A piece that writes a file."""
    file = tmp_path / "made"
    how: dict[str, Any] = {"name": "make", "content": {"a": 1}, "home": tmp_path, "outputs": [file]}
    return Job(**(how | {"work": lambda: file.write_text("x")} | changes))


def test_a_piece_is_done_once_and_says_how_it_stands(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.state() == "missing"
    with locked(job.lock, "Busy."):
        assert job.state() == "running"
        with pytest.raises(BusyError, match=f"make \\({job.id}\\) is being done"):
            job.run()
    assert job.run()
    assert job.state() == "done"
    assert not job.run()
    (tmp_path / "made").unlink()
    assert job.state() == "missing"


def test_what_can_be_seen_to_be_there_needs_no_mark(tmp_path: Path) -> None:
    job = a_job(tmp_path, finished=(tmp_path / "made").exists)
    job.run()
    assert job.state() == "done"
    assert [path.suffix for path in job.lock.parent.iterdir()] == [".lock"]


def test_an_identity_is_that_of_the_content(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.id == a_job(tmp_path / "elsewhere").id
    assert job.id != a_job(tmp_path, content={"a": 2}).id
    assert job.id != a_job(tmp_path, name="other").id
    assert find_job([job], job.id) is job
    with pytest.raises(InputError, match="list its pieces again"):
        find_job([job], "0" * 16)


def test_a_piece_waits_for_what_it_needs(tmp_path: Path) -> None:
    first = a_job(tmp_path)
    second = a_job(tmp_path, name="then", needs=[first.id])
    with pytest.raises(NotDoneError, match="needs 1 pieces that are not done yet, such as make"):
        find_job([first, second], second.id)
    first.run()
    assert find_job([first, second], second.id) is second


def test_the_flags_of_the_engine_are_no_part_of_a_piece() -> None:
    words = ["train", "--engine", "ray", "--address=auto", "--list-jobs", "--out", "x"]
    assert own_words(words) == ["train", "--out", "x"]


def test_an_address_without_ray_is_refused(
    typed: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("audit", "x.csv", "--address", "auto") == Exit.INPUT
    assert "give --engine ray" in capsys.readouterr().err


def test_trainings_one_by_one_are_those_of_the_command(
    tmp_path: Path,
    typed: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    task = toy_file(tmp_path)
    words = ("train", "--task", task, *SMALL, "--critics", "raw,tdq")
    assert typed(*words, "--out", "whole") == 0
    capsys.readouterr()
    assert typed(*words, "--out", "pieces", "--list-jobs") == 0
    lines = listed(capsys)
    assert [line["name"] for line in lines] == [f"train pieces/walks/{c}" for c in ("raw", "tdq")]
    assert {line["state"] for line in lines} == {"missing"}
    assert not Path("pieces/walks").exists()
    Path("jobs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert typed("run-job", lines[1]["id"][:6]) == 0
    assert typed("run-job", "@2") == 0
    assert "was done already" in capsys.readouterr().out
    assert typed(*words, "--out", "pieces", "--list-jobs") == 0
    assert [line["state"] for line in listed(capsys)] == ["missing", "done"]
    assert typed("run-job", "@1") == 0
    for path in Path("whole").rglob("*.safetensors"):
        assert path.read_bytes() == (Path("pieces") / path.relative_to("whole")).read_bytes()
    record = json.loads(Path("pieces/walks/raw/seed-42/record.json").read_text())
    assert record["node"]


def test_a_piece_that_somebody_does_has_an_exit_code_of_its_own(
    tmp_path: Path,
    typed: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    task = toy_file(tmp_path)
    typed("train", "--task", task, *SMALL, "--critics", "raw", "--out", "runs", "--list-jobs")
    Path("jobs.jsonl").write_text(capsys.readouterr().out)
    identity = json.loads(Path("jobs.jsonl").read_text())["id"]
    with locked(Path("runs/.jobs") / f"{identity}.lock", "Busy."):
        assert typed("run-job", identity) == Exit.BUSY
    assert "is being done by another process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "identity", "said"),
    [
        (None, "x", "does not exist"),
        ("{}\n", "x", "is not a list of pieces"),
        ("nonsense", "x", "is not a list of pieces"),
        ('{"id": "ab", "name": "n", "command": [3]}', "ab", "is not a list of pieces"),
        ('{"id": "ab", "name": "n", "command": ["demo"]}', "ab", "is not made of pieces"),
        ('{"id": "ab", "name": "n", "command": ["demo"]}', "c", "no piece whose id begins"),
        ('{"id": "ab", "name": "n", "command": ["demo"]}', "@2", "lines 1 to 1"),
        ('{"id": "ab", "name": "n", "command": ["demo"]}', "@²", "no line @²"),
        (
            '{"id": "ab", "name": "n", "command": ["train"]}',
            "ab",
            "'toptail train' cannot be read; list",
        ),
    ],
)
def test_lists_that_cannot_be_used_are_refused(
    tmp_path: Path,
    typed: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    text: str | None,
    identity: str,
    said: str,
) -> None:
    path = tmp_path / "jobs.jsonl"
    if text is not None:
        path.write_text(text)
    assert typed("run-job", identity, "--jobs", path) == Exit.INPUT
    assert said in capsys.readouterr().err


def test_the_controlled_study_lists_a_piece_for_every_critic(
    tmp_path: Path, typed: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("study", "controlled", "--out", tmp_path, "--seeds", "0", "--steps", "2")
    assert typed(*words, "--radii", "0.25", "--list-jobs") == 0
    *cells, tables = listed(capsys)
    assert len({line["id"] for line in cells}) == len(cells) == 10
    assert set(tables["needs"]) == {line["id"] for line in cells}


def test_the_selection_study_lists_trainings_stages_and_tables(
    tmp_path: Path, typed: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    task, runs = toy_file(tmp_path), tmp_path / "runs"
    words = ("study", "selection", "--task", task, "--runs", runs, "--out", tmp_path / "out")
    assert typed(*words, "--train", "--stage", "queries,pools,tables", "--list-jobs") == 0
    *trainings, queries, pools, tables = listed(capsys)
    assert all(line["name"].startswith("train ") for line in trainings)
    assert [line["name"].split()[0] for line in (queries, pools, tables)] == [
        *("queries", "pools", "tables")
    ]
    assert pools["needs"] == [*queries["needs"], queries["id"]]
    assert typed(*words, "--stage", "tables", "--list-jobs") == 0
    assert [line["needs"] for line in listed(capsys)] == [[]]


def test_the_semantics_study_lists_trainings_and_tables(
    tmp_path: Path, typed: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    task, runs = toy_file(tmp_path), tmp_path / "runs"
    words = ("study", "semantics", "--task", task, "--runs", runs, "--out", tmp_path / "out")
    assert typed(*words, "--train", "--critics", "raw,tdq", "--list-jobs") == 0
    *trainings, tables = listed(capsys)
    assert [Path(line["name"]).name for line in trainings] == ["raw", "tdq", "diffusion"]
    assert tables["needs"] == [line["id"] for line in trainings]


def test_episodes_one_group_at_a_time_are_the_same_files(
    tmp_path: Path,
    typed: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.chdir(tmp_path)
    words = ("data", "collect", "pointmaze-medium-navigate-v0", "--episodes", "26", "--rows", "3")
    assert typed(*words, "--workers", "1", "--out", "whole.npz") == 0
    capsys.readouterr()
    assert typed(*words, "--out", "pieces.npz", "--list-jobs") == 0
    Path("jobs.jsonl").write_text(capsys.readouterr().out)
    lines = [json.loads(line) for line in Path("jobs.jsonl").read_text().splitlines()]
    assert [line["name"].split()[1] for line in lines] == [
        *("train-000000", "train-000025", "val-000000", "pieces.npz")
    ]
    for line in reversed(lines[:-1]):
        assert typed("run-job", line["id"]) == 0
    assert typed("run-job", lines[-1]["id"]) == 0
    for name in ("{}.npz", "{}-val.npz"):
        whole, pieces = (Path(name.format(which)).read_bytes() for which in ("whole", "pieces"))
        assert whole == pieces
    assert typed(*words, "--out", "pieces.npz", "--list-jobs") == 0
    capsys.readouterr()
    assert typed("run-job", lines[0]["id"]) == 0
    assert "was done already" in capsys.readouterr().out
