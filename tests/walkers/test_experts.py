"""Walkers as collectors: what they are shown, what they decide, and that goals are reached."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.quick import quick
from tests.tasks.conftest import restore_errors
from toptail.errors import InputError
from toptail.lab.tasks.collect import Collection, collect, make_collector
from toptail.lab.tasks.episodes import Situation
from toptail.lab.tasks.files import load, read_record
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name, published_recipe
from toptail.lab.tasks.simulator import MAZE_TOLERANCE, make_env, package_randomness
from toptail.lab.walkers.experts import (
    SoccerExpert,
    SoccerStrategy,
    expert_for,
)
from toptail.lab.walkers.walker import INPUTS

WALKED = ("antmaze", "humanoidmaze", "antsoccer")
NAMES = [
    name
    for name in OGBENCH_NAMES
    if name.startswith(WALKED) and ("-medium-" in name or "-arena-" in name or "giant-nav" in name)
]
"""Each way of collecting once; other sizes are other maps."""
ARENA = "antsoccer-arena-navigate-v0"


def collection(name: str, **changes: Any) -> Collection:
    return Collection(name, **{"expert": expert_for(parse_name(name)), **changes})


def seeds(count: int) -> list[np.random.SeedSequence]:
    return [np.random.SeedSequence([5, 0, episode]) for episode in range(count)]


@pytest.mark.parametrize("name", quick(NAMES, ("antmaze-medium-explore-v0", ARENA)))
def test_every_walked_data_set_is_collected(name: str, tmp_path: Path) -> None:
    assert published_recipe(parse_name(name)) is not None
    config = collection(name, episodes=2, val_episodes=1, rows=13)
    paths = collect(config, tmp_path / f"{name}.npz")
    data = load(tmp_path / f"{name}.npz")
    assert data.train.lengths.tolist() == [13] * 2
    assert np.isfinite(data.train.observations).all()
    record = read_record(paths["train"])
    assert record is not None
    assert record["expert"].split()[0] in INPUTS
    errors = restore_errors(parse_name(name), data.train, data.train.transitions[:6])
    assert errors.max() <= MAZE_TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"),
    [("antmaze-medium-navigate-v0", 301), ("humanoidmaze-medium-navigate-v0", 601)],
)
def test_walkers_reach_goals(name: str, rows: int) -> None:
    episodes = make_collector(collection(name, rows=rows)).collect(seeds(6))
    assert sum(episode.goals for episode in episodes) >= 3


@pytest.mark.slow
def test_players_bring_the_ball_to_goals() -> None:
    episodes = make_collector(collection(ARENA, rows=401)).collect(seeds(8))
    assert sum(episode.goals for episode in episodes) >= 5


@pytest.mark.parametrize(
    "name",
    ["antmaze-medium-navigate-v0", "antmaze-medium-stitch-v0", "antsoccer-arena-navigate-v0"],
)
def test_an_episode_is_what_the_packages_own_environment_gives(name: str) -> None:
    """Step by step, one environment: the same start, the recorded actions, the same rows."""
    episode = make_collector(collection(name, rows=31)).collect(seeds(2))[1].arrays
    env = make_env(parse_name(name).environment, terminate_at_goal=False)
    with package_randomness(np.random.SeedSequence(0)) as seed:
        env.reset(seed=seed)
    env.unwrapped.set_state(episode["qpos"][0].astype(float), episode["qvel"][0].astype(float))
    start = episode["observations"][0]
    for row in range(1, 4):  # the stored start is rounded: chaos grows from there
        found, *_ = env.step(episode["actions"][row - 1])
        np.testing.assert_allclose(found, episode["observations"][row], atol=1e-3)
    assert not np.allclose(start, episode["observations"][3], atol=1e-3)


class SlowPlayer:
    """One player, by the words of the published recipe: lists, loops and no arrays of episodes."""

    def __init__(self, env: Any, rng: np.random.Generator, arena: bool) -> None:
        self.env, self.rng, self.arena = env.unwrapped, rng, arena
        self.before: list[Any] = []
        self.errand: Any = None
        self.step = -1

    def decide(self, agent: Any, ball: Any, goal: Any) -> tuple[bool, Any]:
        self._after_a_step(agent)
        self.before.append(agent)
        self.step += 1
        if self.errand is not None:
            return False, self._towards(agent, self.errand)
        if np.linalg.norm(agent - ball) > 2:
            return False, self._towards(agent, ball)
        if self.arena:
            if np.linalg.norm(goal - ball) > 10:
                goal = ball + 10 * (goal - ball) / np.linalg.norm(goal - ball)
            return True, goal
        return True, self._towards(ball, goal)

    def _towards(self, place: Any, aim: Any) -> Any:
        return aim if self.arena else self.env.get_oracle_subgoal(place, aim)[0]

    def _after_a_step(self, agent: Any) -> None:
        if self.errand is not None and np.linalg.norm(self.errand - agent) <= 0.5:
            self.errand = None
        if self.step <= 150 or self.errand is not None:
            return
        recorded = self.before[:-1][-150:]  # the last row is recorded after this decision
        if max(np.linalg.norm(place - agent) for place in recorded) <= 2:
            free = np.argwhere(self.env.maze_map == 0)
            cell = free[self.rng.choice(len(free))]
            self.errand = np.array(self.env.ij_to_xy(tuple(cell)))


@pytest.mark.parametrize("environment", ["antsoccer-arena-v0", "antsoccer-medium-v0"])
def test_decisions_are_those_of_a_slow_player(environment: str) -> None:
    env = make_env(environment)
    maze, arena = Maze.of(env), "arena" in environment
    rng = np.random.default_rng(3)
    players, steps = 4, 700
    centre = maze.centre(rng.choice(maze.free, players))
    goals = maze.centre(rng.choice(maze.free, players)) + rng.uniform(-1, 1, (players, 2))
    balls = maze.centre(rng.choice(maze.free, players))
    balls[0] = centre[0]  # close to its ball from the start
    mind = SoccerStrategy(arena, stitch=False)
    mind.start([np.random.default_rng(i) for i in range(players)])
    slow = [SlowPlayer(env, np.random.default_rng(i), arena) for i in range(players)]
    errands, dribbled = 0, 0
    place = centre.copy()
    for t in range(steps):
        rows = np.zeros((players, 42))
        rows[:, :2], rows[:, 15:17] = place, balls
        meant = mind.decide(Situation(rows, place.copy(), goals, np.zeros((players, 2)), maze))
        for i, player in enumerate(slow):
            dribbling, target = player.decide(place[i].copy(), balls[i].copy(), goals[i])
            assert meant.dribbling[i] == dribbling, (t, i)
            np.testing.assert_allclose(meant.targets[i], target, atol=1e-9)
            errands += player.errand is not None
            dribbled += dribbling
        # Stay around for 200 steps, then follow the targets, so that errands begin and end.
        way = meant.targets - place
        fast = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 0.3) * 0.3
        place = place + (fast if t % 400 >= 200 else rng.uniform(-0.05, 0.05, place.shape))
    assert errands > 0
    assert dribbled > 0


def test_a_stitch_episode_does_one_thing() -> None:
    maze = Maze.of(make_env("antsoccer-arena-v0"))
    cells = maze.free[:3]
    place = maze.centre(cells[:2])
    rows = np.zeros((2, 42))
    rows[:, :2] = place
    rows[:, 15:17] = maze.centre(cells[[0, 2]])  # the first ball at its player's feet
    goals = maze.centre(maze.free[-2:])
    mind = SoccerStrategy(arena=True, stitch=True)
    mind.start([np.random.default_rng(i) for i in range(2)])
    for _ in range(2):
        meant = mind.decide(Situation(rows, place, goals, np.zeros((2, 2)), maze))
        assert meant.dribbling.tolist() == [True, False]
        np.testing.assert_array_equal(meant.targets[1], goals[1])
        rows[:, 15:17] += 4.0  # wherever the balls are later


def test_half_of_soccers_stitch_episodes_begin_with_the_ball() -> None:
    name = "antsoccer-arena-stitch-v0"
    episodes = make_collector(collection(name, rows=2)).collect(seeds(40))
    starts = np.stack([episode.arrays["observations"][0] for episode in episodes])
    maze = Maze.of(make_env("antsoccer-arena-v0"))
    same = maze.cell(starts[:, :2]) == maze.cell(starts[:, 15:17])
    assert 8 <= same.sum() <= 32


def test_an_explorer_changes_its_direction_every_ten_steps() -> None:
    seen: list[Any] = []

    class Watching:
        def start(self, rngs: Any) -> None: ...

        def actions(self, situation: Situation) -> Any:
            seen.append(situation.directions.copy())
            return np.zeros((len(situation.directions), 8))

        def describe(self) -> str:
            return "watching"

    config = Collection("antmaze-medium-explore-v0", rows=31, expert=Watching())
    make_collector(config).collect(seeds(2))
    directions = np.stack(seen)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=2), 1.0, atol=1e-5)
    for t in range(1, 31):
        same = np.array_equal(directions[t], directions[t - 1])
        assert same == (t % 10 != 0)
    assert not np.array_equal(directions[0, 0], directions[0, 1])


def test_experts_travel_to_other_processes_and_say_what_they_are() -> None:
    guide = expert_for(parse_name(ARENA))
    assert isinstance(guide, SoccerExpert)
    guide.start([np.random.default_rng(0)])
    again = pickle.loads(pickle.dumps(guide))
    assert again == guide
    assert again.describe() == guide.describe()
    assert "antball" in guide.describe()
    assert expert_for(parse_name("pointmaze-medium-navigate-v0")) is None


def test_missing_walkers_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train-walker ant --out"):
        expert_for(parse_name("antmaze-medium-navigate-v0"), tmp_path)
