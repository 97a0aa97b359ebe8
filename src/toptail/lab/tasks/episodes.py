"""Collecting episodes by OGBench's recipes.

`Navigator` steps a group of maze episodes together; an `Expert` moves their agents towards the
goals. `Player` plays episodes of a manipulation task with the package's plan oracles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toptail.errors import InputError
from toptail.lab.tasks.maze import Maze, Positions
from toptail.lab.tasks.names import TaskName
from toptail.lab.tasks.simulator import MazeBatch, load_module, make_env, package_randomness


@dataclass(frozen=True, eq=False)
class Situation:
    """What an expert knows of a group of episodes at one step."""

    observations: NDArray[np.float64]
    """``[episodes, observation]``."""
    positions: Positions
    """The agents, ``[episodes, 2]``."""
    goals: Positions
    """The episodes' goals, ``[episodes, 2]``."""
    directions: Positions
    """Unit vectors from the agents towards the next cell on the way, ``[episodes, 2]``."""
    maze: Maze


class Expert(Protocol):
    """A low-level controller, one for a whole group of episodes.

    An expert is sent to the worker processes, so it must be picklable; a network is best loaded
    from its file on first use. It may keep a state during an episode, which ``start`` resets, and
    draws only from the generators that ``start`` gives it.
    """

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Begin a new group of episodes, each with a generator of its own."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        """The action of each episode, ``[episodes, action]``, without noise."""

    def describe(self) -> str:
        """One line for the data set's record, such as a file name and its hash."""


@dataclass(frozen=True)
class DirectionExpert:
    """PointMaze's controller: the action is the direction itself."""

    def start(self, rngs: Sequence[np.random.Generator]) -> None:
        """Do nothing: this expert has no state."""

    def actions(self, situation: Situation) -> NDArray[Any]:
        return situation.directions

    def describe(self) -> str:
        return "the direction itself"


STITCH_STEPS = 4
"""Distance of a stitch episode's goal, in cells."""
EXPLORE_STEPS = 10
"""Steps for which an explore episode keeps a direction."""


@dataclass(frozen=True, eq=False)
class Episode:
    """One collected episode, in the layout of the data set's file."""

    arrays: dict[str, NDArray[Any]]
    """The rows of each array, without ``terminals``."""
    goals: int
    """How often a goal was reached (mazes) or an oracle's plan was finished (manipulation)."""


def check_navigable(task: TaskName) -> None:
    """Refuse mazes whose simulator cannot be stepped in batches."""
    if not task.has_batches:
        raise InputError(
            f"'{task.name}' cannot be collected here: expected the data of a maze without "
            f"teleports; `toptail data get {task.name}` downloads it."
        )


class Navigator:
    """Collects groups of maze episodes; the episodes of a group are stepped together."""

    def __init__(self, task: TaskName, rows: int, noise: float, expert: Expert) -> None:
        self._task = task
        self._rows = rows
        self._noise = noise
        self._expert = expert
        self._batch: MazeBatch | None = None

    def collect(self, seeds: Sequence[np.random.SeedSequence]) -> list[Episode]:
        batch = self._sized(len(seeds))
        streams = [seed.spawn(4) for seed in seeds]
        goal_rngs = [np.random.default_rng(stream[1]) for stream in streams]
        noise = np.stack([self._draw_noise(stream[2], batch.action_size) for stream in streams])
        self._expert.start([np.random.default_rng(stream[3]) for stream in streams])

        goals = self._reset(batch, [stream[0] for stream in streams], goal_rngs)
        explored = self._explored(goal_rngs)
        reached_by_row = np.zeros((self._rows, len(seeds)), dtype=bool)
        rows: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("observations", "actions", "qpos", "qvel")
        }
        for t in range(self._rows):
            observations = batch.observations()
            wandering = None if explored is None else explored[:, t // EXPLORE_STEPS]
            actions = self._act(batch, observations, goals, noise[:, t], wandering)
            rows["observations"].append(observations.astype(np.float32))
            rows["actions"].append(actions)
            rows["qpos"].append(batch.qpos.astype(np.float32))
            rows["qvel"].append(batch.qvel.astype(np.float32))
            batch.step(actions)
            reached_by_row[t] = _distance(batch.goal_seekers(), goals) <= batch.goal_tolerance
            if self._task.kind == "navigate":
                for i in np.flatnonzero(reached_by_row[t]):
                    goals[i] = _goal_in(batch.maze, self._goal_cells(batch.maze), goal_rngs[i])
        by_episode = {name: np.stack(steps, axis=1) for name, steps in rows.items()}
        return [
            Episode({name: array[i] for name, array in by_episode.items()}, self._goals(reached))
            for i, reached in enumerate(reached_by_row.T)
        ]

    def _goal_cells(self, maze: Maze) -> NDArray[np.int64]:
        """Cells of goals: in soccer all free cells, else those outside straight corridors."""
        return maze.free if self._task.family == "antsoccer" else maze.vertices

    def _explored(self, rngs: Sequence[np.random.Generator]) -> NDArray[np.float64] | None:
        """The directions of explore episodes, ``[episodes, changes, 2]``; None for other kinds."""
        if self._task.kind != "explore":
            return None
        changes = -(-self._rows // EXPLORE_STEPS)
        drawn = np.stack([rng.standard_normal((changes, 2)) for rng in rngs])
        return unit(drawn)

    def _goals(self, reached: NDArray[np.bool_]) -> int:
        """Number of goals reached: in navigate episodes each of them, in others at most one."""
        return int(reached.sum() if self._task.kind == "navigate" else reached.any())

    def _sized(self, size: int) -> MazeBatch:
        if self._batch is None or self._batch.size != size:
            self._batch = MazeBatch(self._task.environment, size)
        return self._batch

    def _draw_noise(self, seed: np.random.SeedSequence, columns: int) -> NDArray[np.float64]:
        return np.random.default_rng(seed).normal(0.0, self._noise, size=(self._rows, columns))

    def _reset(
        self,
        batch: MazeBatch,
        seeds: Sequence[np.random.SeedSequence],
        rngs: Sequence[np.random.Generator],
    ) -> NDArray[np.float64]:
        """Start every episode by the package's reset; returns the goals, ``[n, 2]``."""
        env, maze = batch.env, batch.maze
        qpos, qvel = np.empty_like(batch.qpos), np.empty_like(batch.qvel)
        goals = np.empty((batch.size, 2))
        for i, (seed, rng) in enumerate(zip(seeds, rngs, strict=True)):
            start, ball, goals[i] = self._layout(maze, rng)
            with package_randomness(seed) as reset_seed:
                info = _task_info(maze, start, ball, int(maze.cell(goals[i])))
                env.action_space.seed(reset_seed)
                env.reset(seed=reset_seed, options={"task_info": info})
            qpos[i], qvel[i] = env.unwrapped.data.qpos, env.unwrapped.data.qvel
        batch.restore(qpos, qvel)
        return goals

    def _layout(self, maze: Maze, rng: np.random.Generator) -> tuple[int, int, NDArray[np.float64]]:
        """Draw the cells that the agent and the ball start in, and the goal."""
        if self._task.family == "antsoccer":
            start, ball, goal = rng.choice(maze.free, 3, replace=False)
            if self._task.kind == "stitch" and rng.integers(2):
                ball = start
            return int(start), int(ball), _goal_in(maze, np.array([goal]), rng)
        start = int(rng.choice(maze.free))
        stitched = self._task.kind == "stitch"
        goal = _goal_in(maze, _stitch_goals(maze, start) if stitched else maze.vertices, rng)
        rng.choice(maze.free)  # unused; without this draw all later goals would change
        return start, start, goal

    def _act(
        self,
        batch: MazeBatch,
        observations: NDArray[np.float64],
        goals: NDArray[np.float64],
        noise: NDArray[np.float64],
        directions: NDArray[np.float64] | None,
    ) -> NDArray[np.float32]:
        """The expert's action with noise, as it is stored.

        The expert moves in the given directions; None is towards the next cell of the path to the
        goal.
        """
        positions = batch.positions()
        if directions is None:
            directions = unit(batch.maze.subgoal(positions, goals) - positions)
        situation = Situation(observations, positions, goals, directions, batch.maze)
        return np.clip(self._expert.actions(situation) + noise, -1.0, 1.0).astype(np.float32)


def _goal_in(maze: Maze, cells: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a cell and a position around its centre, uniform within ±1 on each axis."""
    return maze.centre(rng.choice(cells)) + rng.uniform(-1.0, 1.0, size=2)


def _stitch_goals(maze: Maze, start: int) -> NDArray[np.int64]:
    """The free cells exactly four cells away; the start itself where there is none."""
    cells = maze.free[maze.steps[start, maze.free] == STITCH_STEPS]
    return cells if len(cells) else np.array([start])


def _task_info(maze: Maze, start: int, ball: int, goal: int) -> dict[str, tuple[int, int]]:
    """The cells of an episode, by the names that the package's resets read."""
    columns = maze.walls.shape[1]
    start_ij, ball_ij, goal_ij = (divmod(cell, columns) for cell in (start, ball, goal))
    return {
        "init_ij": start_ij,
        "agent_init_ij": start_ij,
        "ball_init_ij": ball_ij,
        "goal_ij": goal_ij,
    }


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vectors divided by their length + 1e-6, as the package does."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / (length + 1e-6), dtype=np.float64)


def _distance(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.linalg.norm(a - b, axis=1), dtype=np.float64)


_SMOOTHING = 0.5
_CUBE_XYZ = slice(14, 17)
_MAX_ATTEMPTS = 100
"""Scene episodes that lose the block are repeated; more than this in a row means a defect."""


def check_playable(task: TaskName) -> None:
    """Refuse manipulation data sets whose collection is not implemented."""
    playable = task.environment in ("cube-single-v0", "cube-double-v0", "scene-v0")
    if task.kind != "play" or not (playable or task.family == "puzzle"):
        raise InputError(
            f"'{task.name}' cannot be collected here: expected the play data of cube-single, "
            "cube-double, scene or a puzzle."
        )


class Player:
    """Collects play episodes of a manipulation task, one after another."""

    def __init__(self, task: TaskName, rows: int, noise: float) -> None:
        self._task = task
        self._rows = rows
        self._env = make_env(
            task.environment,
            mode="data_collection",
            terminate_at_goal=False,
            max_episode_steps=rows,
        )
        # The first reset builds the model and computes more than later ones: it is done here, so
        # that an episode does not depend on the episodes before it.
        self._env.reset(seed=0)
        self._oracles = _plan_oracles(task, self._env, noise)

    def collect(self, seeds: Sequence[np.random.SeedSequence]) -> list[Episode]:
        return [self._collect_one(seed) for seed in seeds]

    def _collect_one(self, seed: np.random.SeedSequence) -> Episode:
        for attempt in seed.spawn(_MAX_ATTEMPTS):
            with package_randomness(attempt) as reset_seed:
                episode, after = self._play(reset_seed, np.random.default_rng(attempt.spawn(1)[0]))
            if self._task.family != "scene" or block_in_sight(after[:, _CUBE_XYZ]):
                return episode
        raise RuntimeError(f"{_MAX_ATTEMPTS} Scene episodes in a row lost the block.")

    def _play(
        self, reset_seed: int, rng: np.random.Generator
    ) -> tuple[Episode, NDArray[np.float64]]:
        """Play one episode; also returns the simulator's positions after each step."""
        observation, info = self._env.reset(seed=reset_seed)
        p_stack = _stacking_probability(self._task, rng)
        oracle = self._oracles[info["privileged/target_task"]]
        oracle.reset(observation, info)
        plans = 0
        rows: dict[str, list[NDArray[Any]]] = {}
        after = []
        for _ in range(self._rows):
            action = np.clip(oracle.select_action(observation, info), -1, 1).astype(np.float32)
            row = {"observations": observation.astype(np.float32), "actions": action}
            observation, _, _, _, info = self._env.step(action)
            row["qpos"] = info["prev_qpos"].astype(np.float32)
            row["qvel"] = info["prev_qvel"].astype(np.float32)
            if self._task.has_buttons:
                row["button_states"] = info["prev_button_states"].astype(np.int64)
            for name, value in row.items():
                rows.setdefault(name, []).append(value)
            after.append(info["qpos"])
            if oracle.done:
                plans += 1
                fresh = self._env.unwrapped.set_new_target(p_stack=p_stack)
                oracle = self._oracles[fresh[1]["privileged/target_task"]]
                oracle.reset(*fresh)
        arrays = {name: np.stack(values) for name, values in rows.items()}
        return Episode(arrays, plans), np.stack(after)


def block_in_sight(block: NDArray[np.floating[Any]]) -> bool:
    """Whether Scene's block (positions ``[steps, 3]``) stayed in the visible area.

    It is lost with y ≥ 0.29, or with y ≤ −0.3 outside the height it has inside the drawer.
    """
    y, z = block[:, 1], block[:, 2]
    lost = (y >= 0.29) | ((y <= -0.3) & ((z < 0.06) | (z > 0.08)))
    return not bool(lost.any())


def _stacking_probability(task: TaskName, rng: np.random.Generator) -> float:
    if task.variant == "single":
        return 0.0
    if task.variant == "double":
        return float(rng.uniform(0.0, 0.25))
    return 0.5


def _plan_oracles(task: TaskName, env: Any, noise: float) -> dict[str, Any]:
    """The package's oracle of each kind of target that the environment sets."""
    targets = {"cube": ("cube",), "puzzle": ("button",)}.get(
        task.family, ("cube", "button", "drawer", "window")
    )
    oracles = {}
    for target in targets:
        module = load_module(f"ogbench.manipspace.oracles.plan.{target}_plan")
        options: dict[str, Any] = {"noise": noise, "noise_smoothing": _SMOOTHING}
        if task.family == "puzzle":
            options["gripper_always_closed"] = True
        oracle_class = getattr(module, f"{target.capitalize()}PlanOracle")
        oracles[target] = oracle_class(env=env, **options)
    return oracles
