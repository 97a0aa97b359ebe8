"""Checks with trained runs, without JAX, and in jobs on other machines."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.small import DIFFUSION
from paper.tests.semantics.fake_runs import write_run
from tests.asked import asked
from tests.environments.plane import small, write_plane
from tests.light import run_light
from tests.tasks.conftest import DATA
from tests.training.toy import toy_config
from toptail.commands.check import CheckCommand
from toptail.commands.flags import need_training
from toptail.errors import Exit, InputError
from toptail.lab.check import run
from toptail.lab.check.candidates import REFERENCE_SEEDS
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.result import CheckResult
from toptail.lab.check.run import CheckJob, check
from toptail.lab.tasks.files import load_file
from toptail.progress import Caller, called_by


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, with untrained runs of a behaviour model and of three judges beside."""
    path = write_plane(tmp_path_factory.mktemp("plane"))
    sha, runs = load_file(path).sha256, path.parent / "runs"
    write_run(replace(DIFFUSION, task="plane"), 42, runs, sha, (2, 2))
    for seed in REFERENCE_SEEDS:
        write_run(toy_config(task="plane", critic="tdq"), seed, runs, sha, (2, 2))
    return path


def checked(plane: Path, **how: Any) -> CheckResult:
    mine = plane.parent / "mine.py"
    config = CheckConfig(**small(per_group=3, starts=3, horizon=3, pool_size=4))
    how = {"runs": plane.parent / "runs"} | how
    return check(plane, f"{mine}:towards", config=config, **how)


def test_a_behaviour_model_proposes_goes_on_and_is_followed(plane: Path) -> None:
    env = f"{plane.parent / 'mine.py'}:GoalPlane"
    result = checked(plane, pools=("behaviour",), env=env)
    assert result.content["judge"]["name"] == "rollouts"
    assert "behaviour model goes on" in result.content["judge"]["says"]
    (made,) = result.sources
    assert np.abs(made.pools["actions"]).max() <= 1
    assert made.table is not None
    assert list(made.table.values) == ["value_0", "value_1"]  # what goes on depends on luck
    assert list(made.followed) == ["mine"]


def test_the_reference_judges_where_there_is_no_environment(plane: Path) -> None:
    result = checked(plane, pools=("uniform",))
    assert result.content["judge"]["name"] == "reference"
    (made,) = result.sources
    assert made.table is not None
    assert len(made.table.values) == len(REFERENCE_SEEDS)
    doubts = [each for each in result.content["not_done"] if each["what"] == "one step (uniform)"]
    assert doubts
    assert all("not admitted" in each["why"] for each in doubts)
    one_step = result.content["scorers"]["mine"]["parts"][0]["one_step"]
    assert (one_step["status"], one_step["decided"]) == ("inconclusive", False)
    assert all(part["status"] == "inconclusive" for part in one_step["groups"].values())
    assert "not admitted" in one_step["reason"]
    assert checked(plane, pools=("uniform",), runs=None).content["judge"]["name"] == "none"


TRAINING = ("jax", "jaxlib", "flax", "optax", "safetensors")
TASK = str(DATA / "pointmaze-medium-navigate-v0.npz")
SIZES = small(per_group=3, pool_size=3, starts=2, horizon=2, follow_k=(1, 2), resamples=100)

CHECKED = """
import json, sys
from toptail.lab.check.inputs import CheckConfig
from toptail.lab.check.run import check
sizes = json.loads(sys.argv[2])
config = CheckConfig(**sizes | {"follow_k": tuple(sizes["follow_k"])})
def mine(states, actions, goals):
    return (actions * (goals - states)).sum(axis=1)
for judge, pools in (("exact", ("nearest", "ascent")), ("rollouts", "uniform")):
    result = check(sys.argv[1], {"mine": mine}, judge=judge, pools=pools, config=config)
    print(judge, result.content["judge"]["name"], result.content["not_done"], list(result.verdicts))
print([name for name in MISSING if name in sys.modules])
"""


def test_a_function_of_numpy_is_checked_without_jax() -> None:
    said = run_light(CHECKED, TASK, json.dumps(SIZES), missing=TRAINING)
    assert said.splitlines() == ["exact exact [] ['mine']", "rollouts rollouts [] ['mine']", "[]"]


def test_the_command_asks_for_no_package_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toptail.commands.flags.find_spec", lambda _name: None)
    (tmp_path / "mine.py").write_text("def q(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    flags = {"scorer": f"{tmp_path / 'mine.py'}:q", "pools": "uniform", "follow_k": "1,2"}
    command = asked(CheckCommand, task=TASK, out=tmp_path / "out", **(SIZES | flags))
    assert command.run() == Exit.FINE
    with pytest.raises(InputError, match=r"'toptail study' needs jax, optax, safetensors; "):
        need_training("study")


def elsewhere(done: list[CheckJob]) -> Callable[..., Iterator[Any]]:
    """``map`` as a cluster does it: function and results are sent, in any order."""

    def mapped(work: Callable[[CheckJob], Any], jobs: Sequence[CheckJob]) -> Iterator[Any]:
        order = random.Random(0).sample(list(jobs), len(jobs))
        sent = {job: pickle.loads(pickle.dumps(work)) for job in order}
        found = {job: pickle.loads(pickle.dumps(sent[job](job))) for job in order}
        done.extend(order)
        return (found[job] for job in jobs)

    return mapped


def test_jobs_are_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def q(s, a, g):\n    return (a * (g - s)).sum(axis=1)\n")
    sizes = {"per_group": 3, "pool_size": 4, "near": 9, "starts": 2, "follow_k": (1, 2, 4)}
    config = CheckConfig(**sizes, horizon=3, resamples=100, follow_ascent=True)  # type: ignore[arg-type]
    data, scorer = DATA / "pointmaze-medium-navigate-v0.npz", f"{tmp_path / 'mine.py'}:q"
    names = ("nearest", "uniform", "ascent")
    alone = check(data, scorer, pools=names, judge="rollouts", config=config)
    done: list[CheckJob] = []
    shares: list[float] = []
    begun: list[str] = []
    real = run._Check
    monkeypatch.setattr(run, "_Check", lambda *args: begun.append("") or real(*args))  # type: ignore[func-returns-value]
    program = Caller(
        alone.content["record"]["command"], lambda _, x: shares.append(x), elsewhere(done)
    )
    with called_by(program):
        apart = check(data, scorer, pools=names, judge="rollouts", config=config)
    assert len(begun) == 2, "data and critics are read once here, and once in the other process"
    wanted = [CheckJob(name) for name in names]
    for name in names[:2]:  # ascent is followed among the uniform candidates, which are done once
        wanted += [CheckJob(name, "", 1), CheckJob(name, "mine", 2), CheckJob(name, "mine", 4)]
    assert {*done} == {*wanted, CheckJob("uniform", "mine", None)}
    assert len(done) == len({*done})
    assert apart.content == alone.content
    for one, other in zip(alone.sources, apart.sources, strict=True):
        for name, column in one.pools.items():
            np.testing.assert_array_equal(column, other.pools[name])
        assert one.audit == other.audit
        assert one.picked == other.picked
        assert one.followed == other.followed
    assert 1.0 in shares
