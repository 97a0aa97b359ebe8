from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tyro

from tests.tasks.conftest import DATA, hand_made
from tests.tasks.test_maze import SMALL
from toptail.errors import InputError
from toptail.lab.tasks.collect import Collection, collect, make_collector
from toptail.lab.tasks.episodes import DirectionExpert, Episode, Navigator
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import parse_name
from toptail.lab.tasks.simulator import make_env
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.walkers.experts import expert_for
from toptail_paper.commands.check_data import CheckData
from toptail_paper.compare_data import (
    compare,
    describe,
    occupancy_distance,
    recipe_facts,
    reference_episodes,
    shortest_path_legs,
    step_lengths,
    visited_cells,
)

POINT = parse_name("pointmaze-medium-navigate-v0")
MEDIUM = Maze.of(make_env("pointmaze-medium-v0"))


def together(episodes: list[Episode]) -> Trajectories:
    arrays: dict[str, Any] = {
        name: np.concatenate([episode.arrays[name] for episode in episodes])
        for name in ("observations", "actions", "qpos", "qvel")
    }
    terminals = np.zeros(len(arrays["actions"]), dtype=bool)
    terminals[np.cumsum([len(episode.arrays["actions"]) for episode in episodes]) - 1] = True
    return Trajectories(**arrays, terminals=terminals)


def seeds(count: int) -> list[np.random.SeedSequence]:
    return [np.random.SeedSequence([0, 0, episode]) for episode in range(count)]


@pytest.fixture(scope="module")
def collected() -> list[Episode]:
    return make_collector(Collection(POINT.name)).collect(seeds(40))


def test_collected_data_is_the_recipes_data(collected: list[Episode]) -> None:
    """The slow version shares no code with the collector: both must agree in every number."""
    reference = reference_episodes(POINT, episodes=12, rows=1001, seed=1)
    differences = compare(describe(together(collected), MEDIUM), describe(reference, MEDIUM))
    assert {d.name for d in differences} >= {
        "rows",
        "mean |action|",
        "share of actions at ±1",
        "mean step length",
        "cells visited",
        "legs",
    }
    assert [d for d in differences if not d.same] == []
    facts = recipe_facts(together(collected), POINT, MEDIUM)
    assert [fact.name for fact in facts if fact.holds is False] == []


@pytest.mark.parametrize("noise", [0.2, 0.6])
def test_data_of_another_recipe_is_noticed(collected: list[Episode], noise: float) -> None:
    other = Navigator(POINT, 1001, noise, DirectionExpert()).collect(seeds(40))
    differences = compare(describe(together(other), MEDIUM), describe(together(collected), MEDIUM))
    changed = {d.name for d in differences if not d.same}
    # The mean step hardly changes: more noise, and more of it clipped. Its spread does.
    spread = "step length, 5th percentile"
    assert {"mean |action|", "share of actions at ±1", spread} <= changed


def test_broken_data_breaks_the_facts(collected: list[Episode]) -> None:
    data = together(collected)
    moved = Trajectories(data.observations + np.float32(0.5), data.actions, data.terminals)
    names = {fact.name: fact.holds for fact in recipe_facts(moved, POINT, MEDIUM)}
    assert names["start's offset from its cell"] is False
    other = Trajectories(data.observations, -data.actions, data.terminals)
    facts = recipe_facts(other, POINT, MEDIUM)
    assert [fact.holds for fact in facts if fact.name.startswith("step − 0.2")] == [False]
    few = data.select(np.arange(2))
    names = {fact.name: fact.holds for fact in recipe_facts(few, POINT, MEDIUM)}
    assert names["trajectories"] is None
    assert names["free cells covered"] is False


def test_legs_never_exceed_the_goals_that_were_reached(collected: list[Episode]) -> None:
    legs = describe(together(collected), MEDIUM)["legs"]
    goals = np.array([episode.goals for episode in collected])
    assert np.all(legs <= goals + 1)
    assert 0.5 < legs.mean() / goals.mean() < 1.1


def test_legs_by_hand() -> None:
    # 8 → 18 is one shortest path; turning back at 18 begins a second, and again at 17 a third.
    assert shortest_path_legs(np.array([8, 7, 6, 11, 16, 17, 18]), SMALL) == 1
    assert shortest_path_legs(np.array([16, 17, 18, 17]), SMALL) == 2
    assert shortest_path_legs(np.array([16, 17, 18, 17, 18]), SMALL) == 3
    assert shortest_path_legs(np.array([8, 6, 16]), SMALL) == 1, "cells may be cut at corners"
    assert shortest_path_legs(np.array([8]), SMALL) == 0


def test_visited_cells_ignore_the_border_between_two() -> None:
    path = np.array([[0.0, 0.0], [1.9, 0.0], [2.1, 0.0], [1.9, 0.0], [2.1, 0.0], [4.0, 0.5]])
    assert visited_cells(path, SMALL).tolist() == [6, 7]
    assert visited_cells(np.array([[2.0, 2.0]]), SMALL).tolist() == []


def test_numbers_by_hand() -> None:
    data = hand_made((3, 2))
    actions = np.array([[1, 0], [0.5, -0.5], [0, 0], [1, -1], [0, 0.5]], np.float32)
    xy = np.array([[0, 0], [3, 4], [3, 4], [0, 0], [0, 2]], np.float32)
    data = Trajectories(xy, actions, data.terminals)
    assert step_lengths(data)[[0, 1, 3]].tolist() == [5, 0, 2]
    found = describe(data, None)
    assert found["rows"].tolist() == [3, 2]
    np.testing.assert_allclose(found["mean |action|"], [2 / 6, 2.5 / 4])
    np.testing.assert_allclose(found["share of actions at ±1"], [1 / 6, 2 / 4])


def test_postures_by_hand() -> None:
    data = hand_made((2, 2))
    ant = np.zeros((4, 29), np.float32)
    ant[:, 2] = [0.5, 0.7, 0.4, 0.4]
    half = np.sqrt(0.5)
    # Upright, turned about the vertical, on its side by a hair more than a quarter, on its back.
    ant[:, 3:7] = [[1, 0, 0, 0], [half, 0, 0, half], [0.7, 0.7142, 0, 0], [0, 0, 1, 0]]
    walked = Trajectories(ant, np.zeros((4, 8), np.float32), data.terminals)
    found = describe(walked, SMALL, "antmaze")
    assert found["share of rows flipped"].tolist() == [0.0, 1.0]
    np.testing.assert_allclose(found["height of the torso"], [0.6, 0.4], rtol=1e-6)
    humanoid = np.zeros((4, 69), np.float32)
    humanoid[:, 23] = [1.4, 1.5, 0.7, 1.3]
    walked = Trajectories(humanoid, np.zeros((4, 21), np.float32), data.terminals)
    assert describe(walked, SMALL, "humanoidmaze")["share of rows fallen"].tolist() == [0.0, 0.5]


def test_a_comparison_of_constants_and_of_few_trajectories() -> None:
    same = compare({"x": np.array([2.0, 2.0])}, {"x": np.array([2.0, 2.0])})[0]
    assert (same.same, same.p) == (True, 1.0)
    other = compare({"x": np.array([2.0])}, {"x": np.array([3.0, 4.0])})[0]
    assert not other.same


def test_occupancy_distance(collected: list[Episode]) -> None:
    data = together(collected)
    assert occupancy_distance(data, data, MEDIUM) == 0.0
    first, second = data.select(np.array([0])), data.select(np.array([1]))
    assert 0.0 < occupancy_distance(first, second, MEDIUM) <= 1.0


def test_there_is_no_slow_reference_for_other_tasks() -> None:
    with pytest.raises(InputError, match="no slow reference for scene-play-v0"):
        reference_episodes(parse_name("scene-play-v0"), 1, 11, 0)


def test_a_stitch_reference_agrees_too() -> None:
    task = parse_name("pointmaze-large-stitch-v0")
    maze = Maze.of(make_env("pointmaze-large-v0"))
    ours = together(make_collector(Collection(task.name)).collect(seeds(50)))
    theirs = reference_episodes(task, episodes=25, rows=201, seed=1)
    differences = compare(describe(ours, maze), describe(theirs, maze))
    assert [d for d in differences if not d.same] == []


def run(*args: str) -> int:
    command: Any = tyro.cli(CheckData, args=list(args))
    return int(command.run())


def collect_few(out: Path, episodes: int, seed: int, rows: int | None = None) -> None:
    name = out.stem
    expert = expert_for(parse_name(name))
    collect(Collection(name, episodes, 1, rows, seed, expert), out)


def test_collect_then_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / f"{POINT.name}.npz"
    collect_few(out, 30, seed=3)
    checked = run(str(out), "--reference-episodes", "5")
    printed = capsys.readouterr().out
    assert checked == 0, printed
    for expected in ("free cells covered", "mean step length", "Goals reached", "restoring 50"):
        assert expected in printed


def test_check_compares_with_the_file_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "cube-single-play-v0"
    shutil.copy(DATA / f"{name}.npz", tmp_path / f"{name}.npz")
    monkeypatch.setenv("TOPTAIL_DATA", str(DATA))
    code = run(str(tmp_path / f"{name}.npz"), "--restore-rows", "3")
    printed = capsys.readouterr().out
    assert f"against {DATA / name}" in printed
    assert "restoring 3" in printed
    assert code == 1, "61 rows per trajectory are not the recipe's 1001"


def test_check_wants_to_know_the_task(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    shutil.copy(DATA / f"{POINT.name}.npz", path)
    with pytest.raises(InputError, match="--task NAME"):
        run(str(path))
    quick = ("--reference-episodes", "0", "--restore-rows", "0")
    assert run(str(path), "--task", "PointMaze", *quick) == 1


@pytest.mark.slow
def test_walked_files_are_compared_without_blame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "antmaze-medium-stitch-v0"
    for seed, folder in enumerate(("mine", "theirs")):
        collect_few(tmp_path / folder / f"{name}.npz", 2, seed, rows=31)
    mine, theirs = (str(tmp_path / folder / f"{name}.npz") for folder in ("mine", "theirs"))
    run(mine, "--against", theirs, "--restore-rows", "4")
    printed = " ".join(capsys.readouterr().out.split())
    assert "share of rows flipped" in printed
    assert "Another walker made the other file" in printed
    assert "Goals reached per episode" in printed
