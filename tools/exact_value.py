"""The errors of PointMaze's exact value, and how far the Euclidean judge is from it.

Prints the tables of docs/references.md, as Markdown::

    python tools/exact_value.py search pointmaze-medium-navigate-v0 --spacing 0.02 --goals 8
    python tools/exact_value.py simulator pointmaze-medium-navigate-v0 --pairs 60
    python tools/exact_value.py judges data/pointmaze-medium-navigate-v0.npz
    python tools/exact_value.py pools runs/selection/pointmaze-medium-navigate-v0 --out error.json
    python tools/exact_value.py near data/pointmaze-medium-navigate-v0.npz QUERIES.npz POOLS.npz

Run from the repository's root: the search is the one of the tests.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from numpy.typing import NDArray
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.judges.slow_steps import RADIUS, Search, moved_out
from toptail.io.arrays import write_arrays
from toptail.io.json_files import write_json
from toptail.lab.judges.exact import PointSteps, discounted, exact_values
from toptail.lab.judges.point import STEP, TOLERANCE, next_positions
from toptail.lab.tasks.files import load
from toptail.lab.tasks.maze import Maze
from toptail.lab.tasks.queries import load_queries
from toptail.stats import kendall_tau_b
from toptail_paper.selection.files import SelectionFolder, read_declared
from toptail_paper.selection.pools import CandidatePools
from toptail_paper.study.point_judges import euclidean_values

Points = NDArray[np.float64]
TOUCHES_NOTHING = RADIUS / np.sqrt(2)


def search(task: str, spacing: float = 0.02, goals: int = 8, simulated: bool = False) -> None:
    """Compare steps with those of search, with contacts as modelled or the simulator's own."""

    def contact(maze: Maze, points: Points) -> Points:
        if simulated:
            return next_positions(task, points, np.zeros((1, 2)))
        return moved_out(maze, points)

    rng, drawn = np.random.default_rng(0), np.random.default_rng(1)
    steps = PointSteps.of(task)
    free = PointSteps(steps.maze, corner=TOUCHES_NOTHING, push=0.0)
    table = Search(steps.maze, spacing, contact)
    at = np.flatnonzero(table.gap >= RADIUS)
    found: dict[str, list[Points]] = {"exact": [], "touches nothing": []}
    pools: list[tuple[Points, Points]] = []
    taken, started = 0.0, time.perf_counter()
    for goal in table.positions[rng.choice(at, goals)] + rng.uniform(-0.01, 0.01, (goals, 2)):
        start = rng.choice(at, 4_000)
        all_steps = table.steps(goal)
        wanted = all_steps[start]
        taken += float(wanted.mean()) / goals
        for name, ways in (("exact", steps), ("touches nothing", free)):
            found[name].append(ways.steps(table.positions[start], goal) - wanted)
        # Pools: 64 actions between positions of the grid, at 100 of the starts.
        move = drawn.integers(-round(0.2 / spacing), round(0.2 / spacing) + 1, (100, 64, 2))
        after = start[:100, None] + move @ np.array([table.shape[1], 1])
        after = table.landing[np.where(table.possible[after], after, start[:100, None])]
        truth = -all_steps[after].astype(np.float64)
        score = -steps.steps(table.positions[after], goal).astype(np.float64)
        pools.append((score, truth))
    order, regret = against(*(np.concatenate(part) for part in zip(*pools, strict=True)))
    print(
        f"{task}: spacing {spacing:g}, {goals} goals x 4,000 starts, {taken:.1f} steps on average"
    )
    print("| | −1 | 0 | +1 | +2 | more | mean |\n|---|---|---|---|---|---|---|")
    for name, parts in found.items():
        off = np.concatenate(parts)
        shares = [(off == n).mean() for n in (-1, 0, 1, 2)]
        rest = 1 - sum(shares)
        cells = [f"{share:.1%}" for share in (*shares, rest)]
        print(f"| {name} | {' | '.join(cells)} | {off.mean():+.3f} |")
    print(f"within pools of 64 actions: tau_b {order:.3f}, normalized regret {regret:.3f}")
    print(f"({time.perf_counter() - started:.0f} s)")


def simulator(task: str, pairs: int = 60) -> None:
    """Go where the way is shortest, in the simulator, and count the steps."""
    rng, steps = np.random.default_rng(1), PointSteps.of(task)
    high = 4.0 * np.array(steps.maze.walls.shape[::-1]) - 10
    points = rng.uniform(-2, high, (100 * pairs, 2))
    points = points[steps.maze.clear_of_walls(points, RADIUS)]
    at, goals = points[:pairs], points[pairs : 2 * pairs]
    wanted = steps.steps(at, goals)
    off = greedy_steps(task, steps, at, goals) - wanted
    print(f"{task}: {pairs} pairs, {wanted.mean():.1f} steps on average")
    print({int(n): int((off == n).sum()) for n in np.unique(off)})


def greedy_steps(task: str, steps: PointSteps, at: Points, goals: Points) -> NDArray[np.int64]:
    """Steps in the simulator of going to the best of 25 actions by length, ten too many at most.

    Later ones are -1.
    """
    at, side = at.copy(), np.linspace(-1, 1, 5)
    actions = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    arrived = np.full(len(at), -1)
    for t in range(int(steps.steps(at, goals).max()) + 10):
        arrived[(np.hypot(*(at - goals).T) <= TOLERANCE) & (arrived < 0)] = t
        going = np.flatnonzero(arrived < 0)
        if not len(going):
            break
        after = next_positions(task, at[going, None], actions)
        best = steps.lengths(after, goals[going, None]).argmin(axis=1)
        at[going] = after[np.arange(len(going)), best]
    return arrived


def against(scores: Points, values: Points) -> tuple[float, float]:
    """Mean tau_b of scores with values ``[queries, n]``, and normalized regret of their best.

    Where several are best, the mean of them; queries in which nothing differs have no tau_b.
    """
    best = scores == scores.max(axis=1, keepdims=True)
    picked = (values * best).sum(axis=1) / best.sum(axis=1)
    top, random = values.max(axis=1), values.mean(axis=1)
    regret = (top - picked).mean() / (top - random).mean()
    return float(np.nanmean(kendall_tau_b(scores, values))), float(regret)


def judges(
    file: Path, queries: int = 1_500, candidates: int = 64, gamma: float = 0.99, seed: int = 0
) -> None:
    """How each judge's best and order look to the other, at random queries of a data set."""
    rng, data = np.random.default_rng(seed), load(file).val
    rows = rng.integers(0, len(data), queries)
    goals = data.observations[rng.integers(0, len(data), queries)].astype(np.float64)
    states = data.observations[rows].astype(np.float64)
    pools = data.actions[rng.integers(0, len(data), (queries, candidates))]
    # Data-like: actions that were taken near the state, whichever the goal.
    for q, state in enumerate(states):
        away = ((data.observations - state) ** 2).sum(axis=1)
        near = np.argpartition(away, 4 * candidates)[: 4 * candidates]
        pools[q] = data.actions[rng.choice(near, candidates, replace=False)]
    task = file.name.removesuffix(".npz")
    values = {
        "exact": exact_values(task, states, pools, goals, gamma).astype(np.float64),
        "euclidean": euclidean_values(task, states, pools, goals, gamma).astype(np.float64),
    }
    pooled = kendall_tau_b(*(v[:, 0] for v in values.values()))
    print(f"tau_b of the two over {queries} triples, one of each query: {float(pooled):.3f}")
    print("| picks and order of | judged by | tau_b | normalized regret |\n|---|---|---|---|")
    for score, judge in (("exact", "euclidean"), ("euclidean", "exact")):
        tau, regret = against(values[score], values[judge])
        print(f"| {score} | {judge} | {tau:.3f} | {regret:.3f} |")


def pools(
    folder: Path,
    queries: int = 60,
    spacing: float = 0.02,
    gamma: float = 0.99,
    out: Path | None = None,
) -> None:
    """Compare both exact judges with search, and with the simulator, on a study's own pools."""
    files = SelectionFolder(folder)
    asked, stored = load_queries(files.queries), CandidatePools.read(files.pools)
    task = read_declared(files)["task"]
    rng, steps = np.random.default_rng(0), PointSteps.of(task)
    table = Search(steps.maze, spacing)
    chosen = np.sort(rng.choice(len(asked), min(queries, len(asked)), replace=False))
    goals = asked.goals[chosen].astype(np.float64)
    count, size = stored.actions.shape[1:3]
    actions = stored.actions[chosen].reshape(len(chosen), count * size, 2)
    after = next_positions(task, asked.states[chosen, None], actions)
    ours = steps.lengths(after, goals[:, None]) / STEP
    theirs = np.stack(
        [
            table.continuous_steps(at, goal, table.steps(goal))
            for at, goal in zip(after, goals, strict=True)
        ]
    )
    found: dict[str, Any] = {
        "task": task,
        "queries": len(chosen),
        "pools": len(chosen) * count,
        "spacing": spacing,
        "mean_steps": float(theirs.mean()),
        "pools_sha256": stored.sha256,
    }
    for judge, rounded in (("exact", np.ceil), ("exact_continuous", np.asarray)):
        a, b = (rounded(x - 1e-9) for x in (ours, theirs))
        values = (discounted(1 + x, gamma).reshape(-1, size) for x in (a, b))
        order, regret = against(*values)
        off = a - b
        found[judge] = {
            "tau_b": order,
            "nregret": regret,
            "mean_error": float(off.mean()),
            "off_by": {str(q): float(np.quantile(np.abs(off), q)) for q in (0.5, 0.9, 0.99)},
            "same_share": float((np.abs(off) < 0.5).mean()),
        }
    # All candidates of each query's first pool: what follows them in the simulator.
    at, to = after[:, :size].reshape(-1, 2), np.repeat(goals, size, axis=0)
    claimed, walked = steps.steps(at, to), greedy_steps(task, steps, at, to)
    values = (discounted(1.0 + x, gamma).reshape(-1, size) for x in (claimed, walked))
    order, regret = against(*values)
    off = walked - claimed
    found["simulator"] = {
        "pools": len(chosen),
        "tau_b": order,
        "nregret": regret,
        "more_steps": {str(n): float((off == n).mean()) for n in np.unique(off)},
    }
    print(json.dumps(found, indent=1))
    if out is not None:
        write_json(out, found)


GOAL_SHARE = 3.0
"""A goal's distance counts a third of a state's where near transitions are looked for."""


def near(
    data: Path, queries: Path, out: Path, count: int = 5, size: int = 64, seed: int = 0
) -> None:
    """Candidates without a trained model: what the data did near the state, towards near goals.

    Every transition has two goals, geometric(0.99) steps ahead as behaviour models are trained;
    the pools of a query are the actions of its nearest transitions, shuffled.
    """
    rng, train, asked = np.random.default_rng(seed), load(data).train, load_queries(queries)
    rows = np.repeat(train.transitions, 2)
    goal = np.minimum(rows + rng.geometric(0.01, len(rows)), train.ends[train.trajectory[rows]])

    def place(states: NDArray[Any], goals: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([states, goals / GOAL_SHARE], axis=1)

    tree = cKDTree(place(train.observations[rows], train.observations[goal]))
    _, at = tree.query(place(asked.states, asked.goals), k=count * size)
    actions = train.actions[rows[rng.permuted(at, axis=1)]]
    write_arrays(out, {"actions": actions.reshape(len(asked), count, size, -1)})


if __name__ == "__main__":
    programs = {tool.__name__: tool for tool in (search, simulator, judges, pools, near)}
    tyro.extras.subcommand_cli_from_dict(programs, config=(tyro.conf.PositionalRequiredArgs,))
