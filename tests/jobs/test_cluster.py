"""Pieces on a cluster: order, errors and retries with a stand-in; bits and kills with Ray."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.programs import program_of
from toptail.cli import main
from toptail.errors import BusyError, Exit, InputError, NotDoneError
from toptail.jobs import cluster
from toptail.jobs.cluster import ray_map, run_jobs
from toptail.jobs.job import Job, Resources


class LostError(Exception):
    """What Ray says of a worker that is gone."""


class FailedError(Exception):
    """What Ray says of a task that raised."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class StandIn(ModuleType):
    """As much of Ray as is used, in this process; tasks run when they are waited for."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.exceptions = SimpleNamespace(
            RayTaskError=FailedError, RayError=(LostError, FailedError)
        )
        self.options: list[dict[str, Any]] = []
        self.cancelled: list[Any] = []
        self.is_initialized = lambda: True
        self.get_runtime_context = lambda: SimpleNamespace(get_node_id=lambda: "0123456789")

    def remote(self, function: Callable[..., Any]) -> Any:
        def options(**how: Any) -> Any:
            self.options.append(how)
            return SimpleNamespace(remote=lambda *what: _Reference(function, what))

        return SimpleNamespace(options=options)

    def put(self, what: Any) -> Any:
        return what

    def wait(self, running: Sequence[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return list(running[-num_returns:]), list(running[:-num_returns])

    def get(self, reference: Any) -> Any:
        try:
            return reference.function(*reference.what)
        except LostError:
            raise
        except Exception as error:
            raise FailedError(error) from None

    def cancel(self, reference: Any, force: bool) -> None:
        assert force
        self.cancelled.append(reference)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}


class _Reference:
    def __init__(self, function: Callable[..., Any], what: Any) -> None:
        self.function, self.what = function, what


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """A stand-in for Ray."""
    made = StandIn()
    monkeypatch.setitem(sys.modules, "ray", made)
    return made


def jobs(folder: Path) -> list[Job]:
    """Two pieces, and one that needs both."""

    def one(name: str, needs: Sequence[str] = (), **how: Any) -> Job:
        path = folder / name
        return Job(name, {}, folder, [path], path.touch, path.exists, needs=needs, **how)

    a, b = one("a"), one("b", resources=Resources(2.0, 1.0))
    return [one("c", [a.id, b.id]), a, b]


def test_pieces_run_once_those_that_they_need_are_done(tmp_path: Path, ray: StandIn) -> None:
    every = jobs(tmp_path)
    by_id = {job.id: job for job in every}
    order, told = [], []

    def work(folder: str, identity: str) -> None:
        assert folder == str(Path.cwd())
        order.append(by_id[identity].name)
        by_id[identity].run()

    nodes = run_jobs(every, work, tick=lambda stage, share: told.append((stage, share)))
    assert sorted(order[:2]) == ["a", "b"]
    assert order[2] == "c"
    assert {done.node.split()[1] for done in nodes.values()} == {"01234567"}
    assert told[-1] == ("3 of 3 pieces, last c", 1.0)
    assert {(how["num_cpus"], how["num_gpus"]) for how in ray.options} == {(1.0, 0.0), (2.0, 1.0)}
    assert {how["max_retries"] for how in ray.options} == {cluster.RETRIES}
    assert run_jobs(every, work) == {}, "what is done is not done again"


@pytest.mark.parametrize(
    "said", [InputError("No such data set."), OSError(28, "No space left on device")]
)
def test_what_a_piece_says_is_said_and_the_others_are_ended(
    tmp_path: Path, ray: StandIn, said: Exception
) -> None:
    def work(_folder: str, _identity: str) -> str:
        raise said

    with pytest.raises(type(said), match="No s"):
        run_jobs(jobs(tmp_path), work)
    assert len(ray.cancelled) == 1


@pytest.mark.usefixtures("ray")
def test_a_piece_that_is_lost_too_often_is_a_sentence(tmp_path: Path) -> None:
    def work(_folder: str, _identity: str) -> str:
        raise LostError

    with pytest.raises(NotDoneError, match="was lost with its worker or node 11 times"):
        run_jobs(jobs(tmp_path), work)


@pytest.mark.usefixtures("ray")
def test_a_map_on_a_cluster_is_a_map() -> None:
    assert list(ray_map(lambda x: x * x, range(7))) == [x * x for x in range(7)]


def test_a_node_works_in_the_folder_of_whoever_asks_if_it_has_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cluster._called(lambda _: Path.cwd(), "nowhere", 0) == tmp_path
    assert cluster._called(lambda _: Path.cwd(), str(tmp_path / "here"), 0) == tmp_path / "here"


def test_a_node_waits_for_whoever_does_its_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toptail.commands import run_job

    monkeypatch.chdir(tmp_path)
    tries: list[str] = []

    def busy_twice(_words: Sequence[str], identity: str) -> bool:
        tries.append(identity)
        if len(tries) < 3:
            raise BusyError("Busy.")
        return True

    monkeypatch.setattr(run_job, "do_piece", busy_twice)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    run_job.on_a_node(["train"], str(tmp_path), "x")
    assert tries == ["x"] * 3
    monkeypatch.setattr(run_job, "_PATIENCE", -1.0)
    tries.clear()
    with pytest.raises(BusyError):
        run_job.on_a_node(["train"], str(tmp_path), "x")


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_a_light_installation_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("query,score,value\n" + "".join(f"{q},{c},{c}\n" for q in "ab" for c in "12"))
    words = ["study", "controlled", "--out", str(tmp_path / "out"), "--engine", "ray"]
    assert main(words, program_of(words)) == Exit.INPUT
    assert "pip install 'toptail[ray]'" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray: make ray")
@pytest.mark.parametrize(
    "said", [InputError("No such data set."), OSError(28, "No space left on device")]
)
def test_what_a_node_of_a_real_cluster_says_is_said(tmp_path: Path, said: Exception) -> None:
    import ray

    def work(_folder: str, _identity: str) -> None:
        raise said

    try:
        with pytest.raises(type(said), match="No s"):
            run_jobs(jobs(tmp_path), work)
    finally:
        ray.shutdown()


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray: make ray")
def test_an_accelerator_has_one_piece_at_a_time(tmp_path: Path) -> None:
    import ray

    def work(_folder: str, identity: str) -> None:
        file = tmp_path / "in use"
        file.touch(exist_ok=False)
        time.sleep(0.2)
        file.unlink()
        next(job for job in every if job.id == identity).run()

    gpu = Resources(1.0, 1.0)
    paths = [tmp_path / str(at) for at in range(6)]
    every = [Job(p.name, {}, tmp_path, [p], p.touch, p.exists, resources=gpu) for p in paths]
    ray.init(num_cpus=3, num_gpus=1, include_dashboard=False, configure_logging=False)
    try:
        assert len(run_jobs(every, work)) == 6
    finally:
        ray.shutdown()


@pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray: make ray")
@pytest.mark.parametrize("kind", ["collect", "grid"])
def test_kills_on_a_real_cluster_change_nothing(tmp_path: Path, kind: str) -> None:
    from tests.jobs.faults import attack

    found = attack(kind, tmp_path / kind, 6, (2.0, 6.0))
    assert found["different"] == []
    assert found["files"] > 0
