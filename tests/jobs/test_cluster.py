"""Jobs on a cluster: order, errors and retries with a stand-in; bits and kills with Ray."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.programs import program_of
from tests.training.toy import toy_file
from toptail.cli import main, parsed
from toptail.errors import Exit, InputError, NotDoneError
from toptail.jobs import executors
from toptail.jobs.executors import Ray, ray_map
from toptail.jobs.job import Job, Resources

# Ray starts its processes by a fork, and a test before may have loaded JAX, which warns of that.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="needs the extra ray: make ray")


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


def jobs(folder: Path, work: Callable[[Path], object] = Path.touch) -> list[Job]:
    """Two jobs, and one that needs both."""

    def one(name: str, needs: Sequence[str] = (), **how: Any) -> Job:
        path = folder / name
        return Job(name, {}, folder, [path], lambda: work(path), path.exists, needs=needs, **how)

    a, b = one("a"), one("b", resources=Resources(2.0, 1.0))
    return [one("c", [a.id, b.id]), a, b]


def test_jobs_run_once_those_that_they_need_are_done(tmp_path: Path, ray: StandIn) -> None:
    order: list[str] = []
    stages: list[tuple[str, float]] = []

    def work(path: Path) -> None:
        order.append(path.name)
        path.touch()

    every = jobs(tmp_path, work)
    done = Ray(lambda: every).run(every, lambda stage, share: stages.append((stage, share)))
    assert sorted(order[:2]) == ["a", "b"]
    assert order[2] == "c"
    assert {each.node.split()[1] for each in done.values()} == {"01234567"}
    assert stages[-1] == ("3 of 3 jobs, last c", 1.0)
    assert {(how["num_cpus"], how["num_gpus"]) for how in ray.options} == {(1.0, 0.0), (2.0, 1.0)}
    assert {how["max_retries"] for how in ray.options} == {executors.RETRIES}
    assert Ray(lambda: every).run(every) == {}, "what is done is not done again"


@pytest.mark.parametrize(
    "said", [InputError("No such data set."), OSError(28, "No space left on device")]
)
def test_the_error_of_a_job_is_raised_and_the_others_are_cancelled(
    tmp_path: Path, ray: StandIn, said: Exception
) -> None:
    def work(_path: Path) -> None:
        raise said

    every = jobs(tmp_path, work)
    with pytest.raises(type(said), match="No s"):
        Ray(lambda: every).run(every)
    assert len(ray.cancelled) == 2


@pytest.mark.usefixtures("ray")
def test_a_job_that_is_lost_too_often_is_a_sentence(tmp_path: Path) -> None:
    def work(_path: Path) -> None:
        raise LostError

    every = jobs(tmp_path, work)
    with pytest.raises(NotDoneError, match="was lost with its worker or node 11 times"):
        Ray(lambda: every).run(every)


@pytest.mark.usefixtures("ray")
def test_a_map_on_a_cluster_is_a_map() -> None:
    assert list(ray_map(lambda x: x * x, range(7))) == [x * x for x in range(7)]


def test_a_node_works_in_the_folder_of_the_driver_if_it_has_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert executors._called(lambda _: Path.cwd(), "nowhere", 0) == tmp_path
    assert executors._called(lambda _: Path.cwd(), str(tmp_path / "here"), 0) == tmp_path / "here"


@pytest.mark.parametrize(
    "words",
    [
        ["study", "controlled", "--seeds", "0", "--out", "c"],
        [*("train", "--task", "walks.npz", "--critics", "raw"), *("--steps", "2", "--out", "r")],
    ],
)
def test_a_command_travels_to_a_node(words: list[str], tmp_path: Path) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    words = [w.replace("walks.npz", str(toy_file(tmp_path))) for w in words]
    command = parsed(words, program_of(words))
    command = getattr(command, "what", command)
    copy = cloudpickle.loads(cloudpickle.dumps(command.jobs))
    assert [job.id for job in copy()] == [job.id for job in command.jobs()]


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_a_light_installation_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("query,score,value\n" + "".join(f"{q},{c},{c}\n" for q in "ab" for c in "12"))
    words = ["study", "controlled", "--out", str(tmp_path / "out"), "--ray", "local"]
    assert main(words, program_of(words)) == Exit.INPUT
    assert "pip install '.[ray]'" in capsys.readouterr().err


@NEEDS_RAY
@pytest.mark.parametrize(
    "said", [InputError("No such data set."), OSError(28, "No space left on device")]
)
def test_the_error_of_a_node_of_a_real_cluster_is_raised(tmp_path: Path, said: Exception) -> None:
    import ray

    def work(_path: Path) -> None:
        raise said

    every = jobs(tmp_path, work)
    try:
        with pytest.raises(type(said), match="No s"):
            Ray(lambda: every).run(every)
    finally:
        ray.shutdown()


@NEEDS_RAY
def test_an_accelerator_has_one_job_at_a_time(tmp_path: Path) -> None:
    import ray

    def work(path: Path) -> None:
        file = tmp_path / "in use"
        file.touch(exist_ok=False)
        time.sleep(0.2)
        file.unlink()
        path.touch()

    paths = [tmp_path / str(at) for at in range(6)]
    gpu = Resources(1.0, 1.0)
    every = [
        Job(p.name, {}, tmp_path, [p], partial(work, p), p.exists, resources=gpu) for p in paths
    ]
    ray.init("local", num_cpus=3, num_gpus=1, include_dashboard=False, configure_logging=False)
    try:
        assert len(Ray(lambda: every).run(every)) == 6
    finally:
        ray.shutdown()


@NEEDS_RAY
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["collect", "grid"])
def test_kills_on_a_real_cluster_change_nothing(tmp_path: Path, kind: str) -> None:
    from tests.jobs.faults import attack

    found = attack(kind, tmp_path / kind, 6, (2.0, 6.0))
    assert found["different"] == []
    assert found["files"] > 0
