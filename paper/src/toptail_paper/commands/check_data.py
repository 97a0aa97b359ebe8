"""``toptail-paper check-data``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from toptail.commands.flags import SCALE
from toptail.commands.terminal import plain, show, table_with
from toptail.errors import InputError, check_whole

if TYPE_CHECKING:
    from toptail.lab.tasks.maze import Maze
    from toptail.lab.tasks.names import TaskName
    from toptail.lab.tasks.trajectories import Trajectories

_NameOrFile = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|FILE")]


@dataclass(frozen=True)
class CheckData:
    """Compare a data set with OGBench's recipe, and with another file.

      toptail-paper check-data PointMaze

    PointMaze files are compared with episodes of a slow version of the recipe; every file with the
    published one, if it is on this machine or given. In data of walkers a difference is no fault.
    """

    file: _NameOrFile
    """An OGBench name or the path of an .npz file."""
    task: str | None = None
    """The data set's OGBench name, if it is not the file's name."""
    against: str | None = None
    """Name or file to compare with; by default the data folder's file of the same name."""
    reference_episodes: Annotated[int, SCALE] = 20
    """Episodes of the slow reference (PointMaze only); 0 leaves it out."""
    restore_rows: Annotated[int, SCALE] = 50
    """Rows whose simulator state is restored and stepped; 0 leaves it out."""

    def run(self) -> int:
        """Print every comparison; the exit code is 1 if one fails."""
        from toptail.lab.tasks.files import find, load_file
        from toptail_paper.compare_data import recipe_facts

        check_whole("reference_episodes", self.reference_episodes, 0)
        check_whole("restore_rows", self.restore_rows, 0)
        path = find(self.file)
        task = self._task(path)
        data = load_file(path, task)
        maze = _maze_of(task)
        facts = recipe_facts(data, task, maze)
        table = table_with("the recipe says", "expected", "found", "")
        for fact in facts:
            table.add_row(fact.name, fact.expected, fact.found, _mark(fact.holds))
        show(table)
        holds = [fact.holds is not False for fact in facts]
        for title, other in self._others(path, task, data):
            same = _print_differences(data, other, maze, title, task.family)
            if task.walks:
                show("Another walker made the other file, or may have: differences are no fault.")
            else:
                holds += same
        self._print_goals(path, task)
        holds.append(self._restores(data, task))
        return 0 if all(holds) else 1

    def _task(self, path: Path) -> TaskName:
        from toptail.lab.tasks.files import task_of
        from toptail.lab.tasks.names import parse_name

        task = parse_name(self.task) if self.task is not None else task_of(path)
        if task is None:
            raise InputError(
                f"{path} does not have the name of an OGBench data set: say which one it is with "
                "--task NAME."
            )
        return task

    def _others(
        self, path: Path, task: TaskName, data: Trajectories
    ) -> Iterator[tuple[str, Trajectories]]:
        """Yield the data sets to compare with, with their titles."""
        from toptail.lab.tasks.files import data_folders, find, load_file
        from toptail_paper.compare_data import reference_episodes

        if self.reference_episodes and task.family == "pointmaze":
            rows = int(data.lengths.max())
            reference = reference_episodes(task, self.reference_episodes, rows, seed=0)
            yield f"the slow reference, {self.reference_episodes} episodes", reference
        others = [folder / path.name for folder in data_folders()]
        if self.against is not None:
            others = [find(self.against)]
        for other in others:
            if other.exists() and other.resolve() != path.resolve():
                yield str(other), load_file(other, task)
            elif self.against is not None:
                raise InputError(f"--against {other}: that is no other file to compare with.")

    def _print_goals(self, path: Path, task: TaskName) -> None:
        from toptail.lab.tasks.files import read_record

        goals = (read_record(path) or {}).get("goals_per_episode")
        if goals:
            mean = sum(goals) / len(goals)
            what = "Goals reached" if task.is_maze else "Plans carried out"
            show(f"{what} per episode, counted while collecting: {mean:.2f} on average.")

    def _restores(self, data: Trajectories, task: TaskName) -> bool:
        """Print the errors of restored rows; in mazes they must be below 1e-4."""
        if self.restore_rows and data.qpos is None:
            show("The file has no simulator state: nothing of it can be restored and stepped.")
        if not self.restore_rows or data.qpos is None:
            return True
        import numpy as np

        from toptail.lab.tasks.simulator import MAZE_TOLERANCE, restore_errors

        rng = np.random.default_rng(0)
        rows = np.sort(rng.choice(data.transitions, size=self.restore_rows))
        quantiles = np.quantile(restore_errors(task, data, rows), (0.5, 0.9, 0.99, 1.0))
        names = ("median", "90 %", "99 %", "largest")
        text = ", ".join(f"{name} {q:.1e}" for name, q in zip(names, quantiles, strict=True))
        show(f"Next observation after restoring {len(rows)} rows, error: {text}.")
        return not task.is_maze or bool(quantiles[-1] <= MAZE_TOLERANCE)


def _print_differences(
    data: Trajectories, other: Trajectories, maze: Maze | None, title: str, family: str
) -> list[bool]:
    from toptail_paper.compare_data import compare, describe, occupancy_distance

    table = table_with(
        f"against {plain(title)}", "this file", "the other", "95 % interval", "p", ""
    )
    differences = compare(describe(data, maze, family), describe(other, maze, family))
    for d in differences:
        interval = f"{d.low:+.4f} to {d.high:+.4f}"
        cells = (d.name, f"{d.mean:.4f}", f"{d.other_mean:.4f}", interval, f"{d.p:.3f}")
        table.add_row(*cells, _mark(d.same))
    show(table)
    if maze is not None:
        apart = occupancy_distance(data, other, maze)
        show(f"Share of time that is spent in other cells: {apart:.3f}.")
    return [difference.same for difference in differences]


def _maze_of(task: TaskName) -> Maze | None:
    if not task.is_maze:
        return None
    from toptail.lab.tasks.maze import Maze
    from toptail.lab.tasks.simulator import make_env

    return Maze.of(make_env(task.environment))


def _mark(holds: bool | None) -> str:
    if holds is None:
        return "[yellow]another size[/yellow]"
    return "[green]holds[/green]" if holds else "[bold red]differs[/bold red]"
