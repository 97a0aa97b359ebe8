"""The studies where the agent walks: its own success, its own widths, its own weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.selection.walked import WALKERS, walked, write_walker_run
from toptail.io.json_files import read_json
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.queries import QueryConfig
from toptail.lab.tasks.simulator import MazeBatch, Simulator, make_env
from toptail.lab.tasks.trajectories import FloatArray
from toptail_paper.selection.config import (
    PoolSettings,
    ReferenceSettings,
    RolloutSettings,
    SelectionConfig,
    SupportSettings,
)
from toptail_paper.selection.deployment import Deployment, DeploymentConfig
from toptail_paper.selection.deployment.actor import ActorConfig
from toptail_paper.selection.deployment.config import (
    EpisodeConfig,
    SearchConfig,
    SpreadConfig,
)
from toptail_paper.selection.deployment.episodes import evaluation_episodes, follow
from toptail_paper.selection.run import Stages
from toptail_paper.selection.stages import Selection
from toptail_paper.selection.write import write_results
from toptail_paper.study.store import Stored

ANT, HUMANOID, SOCCER = WALKERS
RESULTS = Path(__file__).parents[2] / "results" / "selection"
SMALL: dict[str, Any] = {
    "queries": QueryConfig(per_group=2, near=(1, 3), medium=(4, 8), far=(9, 15)),
    "pools": PoolSettings(count=1, size=4),
    "support": SupportSettings(nearest=5),
    "reference": ReferenceSettings(seeds=(101, 102)),
    "rollouts": RolloutSettings(
        per_group=2, most=1, repeats=2, randoms=2, candidates=2, horizon=6, ddim_steps=2
    ),
    "seeds": (42,),
    "ks": (1, 2, 4),
}


DEPLOYMENT = replace(
    DeploymentConfig.for_task(SOCCER),
    actor=ActorConfig(2, hidden=(8,), batch_size=8),
    episodes=EpisodeConfig(per_goal=1, limit=3),
    search=SearchConfig(ks=(1, 2), ddim_steps=2),
    searched=("tdq",),
    spread=SpreadConfig(actions=3, per_group=2),
)
TABLES = ("judges", "deployment")


@pytest.mark.parametrize("name", WALKERS)
def test_a_restored_state_steps_bit_for_bit_like_the_package(name: str) -> None:
    data, task = walked(name).val, parse_name(name)
    rows = np.array([5, 40, 90])
    state = data.simulator_state(rows)
    batch, simulator = MazeBatch(task.environment, 3, threads=2), Simulator(task)
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 3, batch.action_size))
    steps = actions.astype(np.float32)
    batch.restore(state.qpos, state.qvel)
    for action in steps:
        batch.step(action)
    for i, row in enumerate(rows):
        simulator.restore(data, int(row))
        for action in steps:
            simulator.step(action[i])
        for own in ("qpos", "qvel"):
            theirs = getattr(simulator._env.data, own)
            np.testing.assert_array_equal(getattr(batch, own)[i], theirs)


@pytest.mark.parametrize("name", [ANT, HUMANOID])
def test_only_what_is_asked_for_is_stepped(name: str) -> None:
    data, task = walked(name).val, parse_name(name)
    state = data.simulator_state(np.array([5, 40, 90]))
    some, every = (MazeBatch(task.environment, 3) for _ in range(2))
    for batch in (some, every):
        batch.restore(state.qpos, state.qvel)
    before = some.observations()
    actions = np.full((3, some.action_size), 0.3, np.float32)
    some.step(actions, np.array([0, 2]))
    every.step(actions)
    np.testing.assert_array_equal(some.observations()[[0, 2]], every.observations()[[0, 2]])
    np.testing.assert_array_equal(some.observations()[1], before[1])
    assert (every.observations()[1] != before[1]).any()


def test_in_soccer_an_episode_succeeds_by_the_ball() -> None:
    episodes = evaluation_episodes("antsoccer-arena-v0", EpisodeConfig(per_goal=1, limit=2))
    env = make_env("antsoccer-arena-v0").unwrapped
    centres = [env.ij_to_xy(info["goal_ij"]) for info in env.task_infos]
    targets = episodes.goals[:, 15:17]
    assert np.abs(targets - np.array(centres)).max() <= 1  # the environment's noise

    def stand(states: FloatArray) -> FloatArray:
        return np.zeros((len(states), 8), np.float32)

    resets = episodes.starts.trajectories
    assert resets.qpos is not None
    assert resets.qvel is not None
    qpos = resets.qpos.copy()
    qpos[1, 15:17] = targets[1]  # the ball is there
    qpos[2, :2] = targets[2]  # the agent is there
    moved = replace(resets, observations=np.hstack([qpos, resets.qvel]), qpos=qpos)
    starts = replace(episodes.starts, trajectories=moved)
    there = follow(replace(episodes, starts=starts), stand)
    np.testing.assert_array_equal(there, [0, 1, 0, 0, 0])


@pytest.fixture(scope="module", params=WALKERS)
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Selection:
    """All stages but deployment of one walker's task, with two critics."""
    name, runs = request.param, tmp_path_factory.mktemp("runs")
    for critic, seed in (("diffusion", 42), ("tdq", 101), ("tdq", 102), ("tdq", 42), ("raw", 42)):
        write_walker_run(name, critic, seed, runs)
    config = SelectionConfig.for_task(name, **SMALL)
    made = Selection.at(tmp_path_factory.mktemp("out"), config, runs)
    wanted = ["queries", "pools", "reference", "exact", "scores", "rollouts"]
    left_out = Stages(made, walked(name)).run(wanted)
    assert left_out == ["No exact judge: it knows PointMaze alone, without teleports."]
    return made


@pytest.mark.slow
def test_a_critic_that_comes_later_costs_its_own_rollouts_alone(study: Selection) -> None:
    name, folder = study.config.task, study.folder
    first = Stored.read(folder.rollouts)
    assert first.arrays["returns"].shape == (6, 5, 2)
    assert study.runs is not None
    write_walker_run(name, "cosine", 42, study.runs)
    told: list[str] = []
    later = replace(study, tick=lambda stage, _: told.append(stage))
    assert Stages(later, walked(name)).run(["scores", "rollouts"]) == []
    second = Stored.read(folder.rollouts)
    names = [str(each) for each in second.arrays["selectors"]]
    assert names == ["cosine@42", "likely", "raw@42", "tdq@42", "reference", "logged"]
    known = {
        (query, candidate)
        for array in ("candidate", "random_candidate")
        for query, line in zip(first.arrays["query"], first.arrays[array], strict=True)
        for candidate in line
    }
    picked = second.arrays["candidate"][:, names.index("cosine@42")]
    new = [pair for pair in zip(second.arrays["query"], picked, strict=True) if pair not in known]
    ended = {stage for stage in told if stage.startswith("rollouts: ")}
    assert all(stage.endswith(f"of {2 * len(new)}") for stage in ended)
    assert bool(ended) == bool(new)
    for own in ("tdq@42", "logged"):
        at = [list(file.arrays["selectors"]).index(own) for file in (first, second)]
        np.testing.assert_array_equal(
            first.arrays["returns"][:, at[0]], second.arrays["returns"][:, at[1]]
        )


@pytest.mark.slow
@pytest.mark.parametrize("study", [SOCCER], indirect=True)
def test_deployment_goes_on_critic_by_critic_and_the_tables_say_so(study: Selection) -> None:
    folder, data = study.folder.path, walked(SOCCER)
    assert study.runs is not None
    for critic in ("tdq", "raw"):  # as two calls would, one after another
        checks = Deployment(SOCCER, study.runs, folder / "deployment", data, DEPLOYMENT)
        checks.run((critic,))
    actors = read_json(folder / "deployment" / "actors.json")
    entries = {critic: seeds["42"] for critic, seeds in actors["critics"].items()}
    assert {critic: entry["alpha"] for critic, entry in entries.items()} == {"tdq": 0.1, "raw": 0.3}
    assert [entry["episodes"] for entry in entries.values()] == [5, 5]
    write_results(folder, resamples=20)
    tables = {table: read_json(folder / "tables" / f"{table}.json") for table in TABLES}
    (noted,) = (note for note in tables["judges"]["notes"] if "is circular for tdq" in note)
    assert noted.endswith("independent of every training here: rollouts.")
    assert any("0.1 for critics that are values" in note for note in tables["deployment"]["notes"])


def test_weights_are_ogbenchs_where_the_family_has_them() -> None:
    for name, alphas in (("HumanoidMaze", (0.1, 0.1)), ("AntSoccer", (0.1, 0.3))):
        config = DeploymentConfig.for_task(name)
        assert tuple(config.actor_of(critic).alpha for critic in ("tdq", "raw")) == alphas
    ant = DeploymentConfig.for_task("AntMaze")
    critics = ("tdq", "raw", "cosine", "hybrid", "hybrid.q_hybrid", "td_bilinear")
    assert [ant.actor_of(critic).alpha for critic in critics] == [0.3, 0.1, 0.1, 0.1, 0.3, 0.3]
    assert ant.actor_of("raw") == ant.actor
    explored = DeploymentConfig.for_task("antmaze-medium-explore-v0")
    assert explored == DeploymentConfig()  # other weights there, which nobody has asked for


def test_the_stored_actors_of_pointmaze_are_those_of_its_settings() -> None:
    point = "pointmaze-medium-navigate-v0"
    stored = read_json(RESULTS / point / "deployment" / "actors.json")
    config = DeploymentConfig.for_task(point)
    assert "alphas" not in stored
    assert not config.alphas
    assert stored["actor"]["alpha"] == config.actor_of("tdq").alpha == 0.1
