from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toptail.errors import InputError
from toptail.lab.tasks import simulator
from toptail.lab.tasks.maze import Maze


def env_of(size: str) -> Any:
    return simulator.make_env(f"pointmaze-{size}-v0").unwrapped


SMALL = Maze(
    np.array(
        [
            [1, 1, 1, 1, 1],
            [1, 0, 0, 0, 1],
            [1, 0, 1, 1, 1],
            [1, 0, 0, 0, 1],
            [1, 1, 1, 1, 1],
        ],
        dtype=bool,
    )
)


def test_a_small_maze_by_hand() -> None:
    assert SMALL.free.tolist() == [6, 7, 8, 11, 16, 17, 18]
    # 7 and 17 lie in horizontal corridors, 11 in a vertical one.
    assert SMALL.vertices.tolist() == [6, 8, 16, 18]
    assert SMALL.steps[8, 18] == 6
    assert SMALL.next_cell[8, 18] == 7
    assert SMALL.next_cell[6, 18] == 11
    assert SMALL.next_cell[18, 18] == 18
    assert SMALL.centre(np.array([8])).tolist() == [[8.0, 0.0]]
    assert SMALL.cell(np.array([[8.0, 0.0], [9.99, -1.99], [6.01, 1.99]])).tolist() == [8, 8, 8]
    assert SMALL.subgoal(np.array([[8.5, 0.3]]), np.array([[8.0, 8.0]])).tolist() == [[4.0, 0.0]]


@pytest.mark.parametrize("size", ["medium", "large", "giant"])
def test_cells_and_oracle_agree_with_the_packages(size: str) -> None:
    env = env_of(size)
    maze = Maze.of(env)
    columns, walls = maze.walls.shape[1], env.maze_map
    free = np.argwhere(walls == 0).tolist()
    assert maze.free.tolist() == [i * columns + j for i, j in free]
    straight = ([0, 0, 1, 1], [1, 1, 0, 0])
    sides = [[walls[i - 1, j], walls[i + 1, j], walls[i, j - 1], walls[i, j + 1]] for i, j in free]
    vertices = [cell for cell, around in zip(free, sides, strict=True) if around not in straight]
    assert maze.vertices.tolist() == [i * columns + j for i, j in vertices]
    rng = np.random.default_rng(0)
    pairs = rng.choice(maze.walls.size, size=(300, 2))  # walls as well
    for start, goal in pairs:
        here, there = maze.centre(np.array([start, goal])) + rng.uniform(-1.9, 1.9, (2, 2))
        subgoal, steps = env.get_oracle_subgoal(here, there)
        assert maze.subgoal(here[None], there[None])[0].tolist() == subgoal.tolist()
        assert maze.steps[:, goal].tolist() == steps.ravel().tolist()
        assert divmod(int(maze.cell(here)), columns) == env.xy_to_ij(here)


def test_clear_of_walls_never_misses_a_wall() -> None:
    maze = Maze.of(env_of("medium"))
    rng = np.random.default_rng(0)
    positions = maze.centre(rng.choice(maze.free, 2000)) + rng.uniform(-2, 2, (2000, 2))
    walls = maze.centre(np.flatnonzero(maze.walls.ravel()))
    gaps = np.maximum(np.abs(positions[:, None] - walls[None]) - 2.0, 0.0)
    distance = np.linalg.norm(gaps, axis=2).min(axis=1)
    clear = maze.clear_of_walls(positions, 0.7)
    assert np.all(distance[clear] >= 0.7)
    # It may only be wrong on the safe side, and there no further than the square's corner.
    assert np.all(distance[~clear] <= 0.7 * np.sqrt(2))
    assert 0.2 < clear.mean() < 0.8


def test_without_the_simulator_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    simulator.load_module.cache_clear()
    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(InputError, match=r"'ogbench' is not .*: pip install '\.\[sim\]'"):
        simulator.make_env("pointmaze-medium-v0")
    monkeypatch.undo()
    simulator.load_module.cache_clear()


def test_the_packages_randomness_is_seeded_and_put_back() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.uniform(size=3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    draws = []
    for _ in range(2):
        with simulator.package_randomness(np.random.SeedSequence(1)) as seed:
            draws.append((seed, np.random.uniform()))  # noqa: NPY002
    assert draws[0] == draws[1]
    np.testing.assert_array_equal(np.random.uniform(size=3), expected)  # noqa: NPY002
