"""Jobs of long commands: listed, run one by one, with the same results as run together."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs import program_of
from tests.training.toy import toy_file
from toptail.cli import main
from toptail.commands.flags import own_words
from toptail.errors import BusyError, Exit, InputError, NotDoneError
from toptail.io.locks import locked
from toptail.jobs.executors import Processes, ThisProcess
from toptail.jobs.job import Job, Resources, find_job
from toptail.jobs.workers import worker_pool

SMALL = (
    *("--steps", "2", "--seeds", "42", "--set", "batch_size=16,log_every=2,hidden=8,depth=1"),
    *("--set", "embed_dim=4,ensemble=1"),
)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run a command line in this process."""

    def call(*words: object) -> int:
        typed = list(map(str, words))
        program = program_of(typed)
        monkeypatch.setattr(sys, "argv", [program.name, *typed])
        return main(program=program)

    return call


def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def a_job(tmp_path: Path, **changes: Any) -> Job:
    """A job that writes a file."""
    file = tmp_path / "made"
    how: dict[str, Any] = {"name": "make", "content": {"a": 1}, "home": tmp_path, "outputs": [file]}
    return Job(**(how | {"work": lambda: file.write_text("x")} | changes))


def test_a_job_runs_once_and_has_a_state(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.state() == "missing"
    with locked(job.lock, "Busy."):
        assert job.state() == "running"
        with pytest.raises(BusyError, match=f"make \\({job.id}\\) is run by another process"):
            job.run()
    assert job.run()
    assert job.state() == "done"
    assert not job.run()
    (tmp_path / "made").unlink()
    assert job.state() == "missing"


def test_a_job_whose_results_can_be_seen_needs_no_marker(tmp_path: Path) -> None:
    job = a_job(tmp_path, done=(tmp_path / "made").exists)
    job.run()
    assert job.state() == "done"
    assert [path.suffix for path in job.lock.parent.iterdir()] == [".lock"]


def test_a_worker_waits_for_another_process_that_runs_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, tries = a_job(tmp_path), []

    def busy_twice(_job: Job) -> bool:
        tries.append(1)
        if len(tries) < 3:
            raise BusyError("Busy.")
        return True

    monkeypatch.setattr(Job, "run", busy_twice)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    assert job.run_when_free()
    assert len(tries) == 3
    tries.clear()
    with pytest.raises(BusyError):
        job.run_when_free(patience=-1.0)


def test_an_id_is_a_hash_of_the_content(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    assert job.id == a_job(tmp_path / "elsewhere").id
    assert job.id != a_job(tmp_path, content={"a": 2}).id
    assert job.id != a_job(tmp_path, name="other").id
    assert find_job([job], job.id) is job
    assert find_job([job], job.id[:5]) is job
    for unknown in ("0" * 16, ""):
        with pytest.raises(InputError, match="list its jobs again"):
            find_job([job], unknown)


def test_a_job_waits_for_what_it_needs(tmp_path: Path) -> None:
    first = a_job(tmp_path)
    second = a_job(tmp_path, name="then", needs=[first.id])
    with pytest.raises(NotDoneError, match="needs 1 jobs that are not done yet, such as make"):
        find_job([first, second], second.id)
    first.run()
    assert find_job([first, second], second.id) is second


def test_this_process_runs_the_missing_jobs_in_order(tmp_path: Path) -> None:
    first, file = a_job(tmp_path), tmp_path / "then"
    second = a_job(tmp_path, name="then", outputs=[file], work=file.touch, needs=[first.id])
    stages: list[str] = []
    done = ThisProcess().run([first, second], lambda stage, _share: stages.append(stage))
    assert list(done) == [first.id, second.id]
    assert stages == ["make", "then"]
    assert ThisProcess().run([first, second]) == {}


def test_processes_run_jobs_side_by_side_where_there_is_room(tmp_path: Path) -> None:
    """Two jobs of one core each run after one another; both before the job that needs them."""
    (tmp_path / "writer.py").write_text(
        "import pathlib, sys, time\n"
        "log = pathlib.Path(sys.argv[2])\n"
        "log.open('a').write(f'begin {sys.argv[1]}\\n'); time.sleep(0.1)\n"
        "log.open('a').write(f'end {sys.argv[1]}\\n'); pathlib.Path(sys.argv[3]).touch()\n"
    )
    order = tmp_path / "order"

    def one(name: str, *needs: str) -> Job:
        file = tmp_path / name
        return a_job(tmp_path, name=name, outputs=[file], done=file.exists, needs=needs)

    a, b = one("a"), one("b")
    jobs = [a, b, one("c", a.id, b.id)]
    words = [sys.executable, str(tmp_path / "writer.py")]

    def command(job: Job) -> list[str]:
        return [*words, job.name, str(order), str(job.outputs[0])]

    assert len(Processes(command, Resources(1.0)).run(jobs)) == 3
    lines = order.read_text().split("\n")[:-1]
    assert lines[0::2] == [line.replace("end", "begin") for line in lines[1::2]]
    assert lines[-1] == "end c"


def test_a_failed_process_shows_the_end_of_its_log_and_time_runs_out(tmp_path: Path) -> None:
    job = a_job(tmp_path)
    with pytest.raises(NotDoneError, match=r"make ended with code 1; its log .* no_such_module"):
        Processes(lambda _: [sys.executable, "-m", "no_such_module"], Resources()).run([job])
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(NotDoneError, match="Time is up, and make was stopped"):
        Processes(lambda _: slow, Resources(), seconds=0.5).run([job])


def test_after_a_failure_all_are_run_that_do_not_need_the_failed_one(tmp_path: Path) -> None:
    def named(name: str, *needs: Job) -> Job:
        outputs = [tmp_path / name]
        return a_job(tmp_path, name=name, outputs=outputs, needs=[job.id for job in needs])

    bad, good = named("bad"), named("good")
    jobs = [bad, named("after-bad", bad), good, named("after-good", good)]

    def command(job: Job) -> list[str]:
        if job is bad:
            return [sys.executable, "-c", "raise SystemExit('no luck')"]
        done = job.lock.with_suffix(".done")
        program = "import pathlib, sys; [pathlib.Path(x).touch() for x in sys.argv[1:]]"
        return [sys.executable, "-c", program, str(job.outputs[0]), str(done)]

    with pytest.raises(NotDoneError, match=r"bad ended with code 1; its log .* no luck"):
        Processes(command, Resources()).run(jobs)
    assert [job.state() for job in jobs] == ["missing", "missing", "done", "done"]


def test_flags_about_jobs_are_no_part_of_a_job() -> None:
    words = ["train", "--ray", "local", "--ray=auto", "--list-jobs", "--job", "a", "--out", "x"]
    assert own_words(words) == ["train", "--out", "x"]


@pytest.mark.smoke
@pytest.mark.slow
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
    assert typed(*words, "--out", "parts", "--list-jobs") == 0
    lines = listed(capsys)
    assert [line["name"] for line in lines] == [f"train parts/walks/{c}" for c in ("raw", "tdq")]
    assert {line["state"] for line in lines} == {"missing"}
    assert not Path("parts/walks").exists()
    first, second = (line["command"][1:] for line in lines)
    assert typed(*second) == 0
    assert typed(*second) == 0
    assert "was done already" in capsys.readouterr().out
    assert typed(*words, "--out", "parts", "--list-jobs") == 0
    assert [line["state"] for line in listed(capsys)] == ["missing", "done"]
    with locked(Path("parts/.jobs") / f"{lines[0]['id']}.lock", "Busy."):
        assert typed(*first) == Exit.BUSY
    assert "is run by another process" in capsys.readouterr().err
    assert typed(*first) == 0
    for path in Path("whole").rglob("*.safetensors"):
        assert path.read_bytes() == (Path("parts") / path.relative_to("whole")).read_bytes()
    record = json.loads(Path("parts/walks/raw/seed-42/record.json").read_text())
    assert record["node"]


def test_the_controlled_study_lists_a_job_for_every_critic(
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
    more = ("--train", "--critics", "raw", "--stage", "queries,pools,tables", "--list-jobs")
    assert typed(*words, *more) == 0
    *trainings, queries, pools, tables = listed(capsys)
    assert [Path(line["name"]).name for line in trainings] == ["tdq", "raw", "diffusion"]
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
    assert typed(*words, "--out", "parts.npz", "--list-jobs") == 0
    lines = listed(capsys)
    assert [line["name"].split()[1] for line in lines] == [
        *("train-000000", "train-000025", "val-000000", "parts.npz")
    ]
    for line in (*reversed(lines[:-1]), lines[-1]):
        assert typed(*line["command"][1:]) == 0
    for name in ("{}.npz", "{}-val.npz"):
        whole, parts = (Path(name.format(which)).read_bytes() for which in ("whole", "parts"))
        assert whole == parts
    capsys.readouterr()
    assert typed(*lines[0]["command"][1:]) == 0
    assert "was done already" in capsys.readouterr().out


def test_a_worker_that_is_ended_is_no_fault_of_the_input() -> None:
    with pytest.raises(NotDoneError, match="fewer workers"), worker_pool(2) as pool:
        pool.submit(os._exit, 1).result()
