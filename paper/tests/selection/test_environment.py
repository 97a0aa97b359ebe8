"""The study in an environment of one's own: rollouts, a judge of all candidates, deployment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.conftest import write_audit
from paper.tests.semantics.fake_runs import write_run
from tests.asked import asked
from tests.environments.plane import records, write_plane
from tests.training.toy import SMALL
from toptail.errors import InputError
from toptail.io.json_files import read_json
from toptail.lab.check.closed_loop import task_environment
from toptail.lab.environments.protocol import MOST
from toptail.lab.proposals.diffusion import DiffusionRun
from toptail.lab.tasks.files import Dataset
from toptail.lab.tasks.queries import QueryConfig, freeze_queries, load_queries
from toptail.lab.tasks.trajectories import FloatArray, IntArray
from toptail.lab.training.config import RunConfig
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.selection import write as audits
from toptail_paper.selection.deployment import DeploymentConfig
from toptail_paper.selection.deployment.config import (
    EpisodeConfig,
    SearchConfig,
    SpreadConfig,
)
from toptail_paper.selection.deployment.episodes import (
    follow,
    follow_in_parts,
    recorded_episodes,
)
from toptail_paper.study.store import Stored

ENV = "mine.py:GoalPlane"
MODEL = (("hidden", (8,)), ("levels", 4), ("time_dim", 4))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data of 12 rows an episode, environments, critics, and candidates for 18 queries."""
    write_plane(tmp_path)
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "pools.npz", actions=rng.uniform(-1, 1, (18, 1, 4, 2)).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audits, "write_report", write_audit)  # pages of audits take seconds
    return tmp_path


def study(**changes: Any) -> StudySelection:
    """A study of three seconds."""
    sizes = {"per_group": 6, "pool_count": 1, "pool_size": 4, "rollout_queries": 3}
    walks = {"rollout_repeats": 1, "rollout_steps": 12, "env": ENV, "pools": Path("pools.npz")}
    own = {"scorer": ("towards=mine.py:towards", "away=mine.py:away"), "out": Path("out")}
    return asked(StudySelection, task="plane.npz", **{**sizes, **walks, **own, **changes})


def test_rollouts_are_made_in_the_environment_and_it_judges_every_candidate(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study().run() == 0
    said = capsys.readouterr().out
    assert "the environment values every candidate instead" in said
    folder = home / "out" / "plane"
    rolled, judged = (
        Stored.read(folder / f"{name}.npz") for name in ("rollouts", "values/simulated")
    )
    for origin in (rolled.header, judged.header["origin"]):
        assert origin["environment"]["name"] == ENV
        assert origin["policy"] == "the data's actions at near states go on"
    values = judged.arrays["values"]
    assert values.shape == (1, 18, 1, 5)
    # What was rolled out twice, as a pick and as a candidate, went the same way both times.
    query, picked = rolled.arrays["query"], rolled.arrays["candidate"]
    np.testing.assert_array_equal(
        values[0][query[:, None], 0, picked], rolled.arrays["returns"][..., 0]
    )
    cells = read_json(folder / "tables" / "fixed-query.json")
    text = str(cells)
    assert "towards" in text
    assert "simulated" in text
    assert load_queries(folder / "queries.npz").config.far == (4, 11)  # trajectories have 12 rows

    assert study(stage="rollouts", planned_rollouts=60).run() == 0
    planned = Stored.read(folder / "planned_rollouts.npz")
    assert planned.header["environment"]["name"] == ENV
    at = planned.arrays["query"], 0, planned.arrays["candidate"]
    np.testing.assert_array_equal(planned.arrays["returns"][:, 0], values[0][at])

    (home / "mine.py").write_text((home / "mine.py").read_text() + "\n# another\n")
    with pytest.raises(InputError, match=r"environment\.sha256"):
        study(stage="rollouts").run()


def test_a_job_of_the_rollouts_runs_in_the_environment(home: Path) -> None:
    assert study(stage="queries,pools,reference,scores").run() == 0
    (job,) = study(runs=Path("runs"))._rollout_jobs(home / "out" / "plane", ())
    job.work()
    (part,) = (home / "out" / "plane" / "rollouts.parts" / "job-0000").iterdir()
    assert Stored.read(part).header["environment"]["name"] == ENV
    assert study(stage="rollouts").run() == 0
    assert not part.exists()  # what the job left was put together with the rest
    rolled = Stored.read(home / "out" / "plane" / "rollouts.npz")
    assert rolled.header["environment"]["name"] == ENV


def test_an_environment_that_knows_no_goals_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match=r"mine\.py:Plane.* does not say when a goal is reached"):
        study(env="mine.py:Plane").run()
    assert not (home / "out" / "plane" / "declared.json").exists()


@pytest.mark.slow
def test_deployment_follows_trained_critics_in_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, runs = records(60, 12, 0).sha256, home / "runs"
    write_run(DiffusionRun("plane", "diffusion", 4, 16, settings=MODEL), 42, runs, train)
    write_run(RunConfig("plane", "raw", 4, 16, log_every=2, settings=SMALL), 42, runs, train)
    small = DeploymentConfig(
        search=SearchConfig(ks=(1, 2), ddim_steps=2), spread=SpreadConfig(actions=3, per_group=2)
    )
    monkeypatch.setattr(DeploymentConfig, "for_task", lambda _: small)
    sizes = {"actor_steps": 2, "set": "batch_size=8,hidden=8,depth=1"}
    episodes = {"episodes": 6, "episode_steps": 5, "seeds": "42"}
    asked_for = {"stage": "deployment", "deployed": "raw", "runs": runs, "scorer": ()}
    assert study(**asked_for, **sizes, **episodes).run() == 0
    folder = home / "out" / "plane" / "deployment"
    actors, loop = (read_json(folder / f"{name}.json") for name in ("actors", "closed_loop"))
    assert actors["environment"]["name"] == loop["environment"]["name"] == ENV
    actor, searched = (each["critics"]["raw"]["42"] for each in (actors, loop))
    assert set(actor["goals"]) == {"near", "medium", "far"}
    assert (actor["episodes"], actor["limit"]) == (18, 5)
    assert [entry["episodes"] for entry in searched["k"].values()] == [18, 18]


def test_episodes_that_do_not_fit_into_the_simulations_go_in_parts(home: Path) -> None:
    val = records(60, 12, 1)
    world = task_environment(str(home / ENV), Dataset(val, val, None), goals=True)
    assert world.make is not None
    queries = freeze_queries(
        val, QueryConfig(per_group=20, near=(1, 2), medium=(3, 5), far=(6, 11))
    )
    episodes = recorded_episodes(world.make, val, queries, EpisodeConfig(per_goal=20, limit=3))
    parts = list(episodes.parts(1))
    assert [len(part) for part in parts] == [MOST, 60 - MOST]

    def acting(numbers: IntArray) -> Any:
        def act(states: FloatArray) -> FloatArray:
            way = episodes.goals[numbers] - states
            return np.asarray(np.clip(10 * way, -1, 1), np.float32)

        return act

    with pytest.raises(InputError, match="60 episodes cannot be stepped together in 32"):
        follow(episodes, acting(np.arange(60)))
    shares: list[float] = []
    (reached,) = follow_in_parts(episodes, acting, tick=shares.append)
    assert shares == sorted(shares)
    alone = [np.array([i]) for i in range(60)]
    one_by_one = [follow(episodes.take(i), acting(i))[0] for i in alone]
    np.testing.assert_array_equal(reached, one_by_one)
    assert 0 < np.count_nonzero(reached) < 60
    assert set(episodes.goal.tolist()) == {"near", "medium", "far"}
