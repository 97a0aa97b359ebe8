"""``toptail data``: list, get, info, collect, import and check data sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.commands.engine import JobFlags
from toptail.commands.progress import bars
from toptail.commands.terminal import plain, show, simple_grid
from toptail.errors import InputError, check_whole

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.tasks.collect import Collection
    from toptail.lab.tasks.maze import Maze
    from toptail.lab.tasks.names import Split, TaskName
    from toptail.lab.tasks.trajectories import IntArray, Trajectories

_Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
_NameOrFile = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|FILE")]


@dataclass(frozen=True)
class ListData:
    """List OGBench's data sets, and which of them are on this machine."""

    all: bool = False
    """List every data set, not only those with states as observations."""

    def run(self) -> int:
        """Print one line per data set."""
        from toptail.lab.tasks.files import data_folders, split_path
        from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name

        table = _table("data set", "short name", "training file", "validation file")
        for name in OGBENCH_NAMES:
            task = parse_name(name)
            if task.dimensions is None and not self.all:
                continue
            paths = [folder / f"{name}.npz" for folder in data_folders()]
            cells = ["–", "–"]
            if path := next((path for path in paths if path.exists()), None):
                cells = [_size(path), _size(split_path(path, "val"))]
            table.add_row(name, "" if task.title == name else task.title, *cells)
        show(table)
        show("Searched: " + ", ".join(str(folder) for folder in data_folders()))
        return 0


@dataclass(frozen=True)
class GetData:
    """Download a published data set; an interrupted download is resumed."""

    name: _Name
    """An OGBench name, or a short name such as PointMaze."""
    folder: Path | None = None
    """Where to put the files; by default the first data folder."""
    mirror: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Address of a folder on the web to try before the known ones; may be given repeatedly."""

    def run(self) -> int:
        """Download both files and print where they are."""
        from toptail.lab.tasks.download import get, mirrors
        from toptail.lab.tasks.files import data_folders

        folder = self.folder or data_folders()[0]
        notes: list[str] = []
        with _download_bars() as progress:
            paths = get(
                *(self.name, folder, mirrors(self.mirror)), progress=progress, tell=notes.append
            )
        for path in paths.values():
            show(str(path))
        for sentence in notes:
            show(sentence)
        return 0


@dataclass(frozen=True)
class InfoData:
    """Describe a data set file: rows, trajectories, dimensions, ranges, hash."""

    file: _NameOrFile
    """An OGBench name or the path of an .npz file."""

    def run(self) -> int:
        """Load, check and print."""
        from toptail.lab.tasks.files import find, load_file, read_record

        path = find(self.file)
        data = load_file(path)
        table = _table("", plain(path))
        record = read_record(path) or {}
        table.add_row("source", plain(record.get("source", "unknown")))
        table.add_row("rows", f"{len(data):,}")
        table.add_row("trajectories", f"{len(data.ends):,}")
        table.add_row("transitions", f"{len(data.transitions):,}")
        for name, array in data.arrays().items():
            table.add_row(name, f"{array.dtype.name} {array.shape[1:] or ''}")
        for column, entries in enumerate(data.actions.reshape(len(data), -1).T):
            table.add_row(f"action {column}", f"{entries.min():.3f} to {entries.max():.3f}")
        for lengths, count in _length_histogram(data.lengths):
            table.add_row(f"trajectories of {lengths} rows", f"{count:,}")
        table.add_row("content sha256", data.sha256)
        show(table)
        return 0


@dataclass(frozen=True)
class CollectData(JobFlags):
    """Collect a data set on this machine by OGBench's recipe; needs no network.

    toptail data collect PointMaze

    Killed at any moment, the same command resumes. The files depend on the name, the seed and the
    number of episodes, not on the number of workers.
    """

    name: _Name
    """An OGBench name, or a short name such as PointMaze."""
    episodes: int | None = None
    """Training episodes; by default as many as the published data set has."""
    val_episodes: int | None = None
    """Validation episodes; by default a tenth of the training episodes."""
    rows: int | None = None
    """Rows per episode; by default as in the published data set."""
    workers: int = 0
    """Processes; 0 takes one per core."""
    seed: int = 0
    """Seed of the data set."""
    out: Path | None = None
    """The training file, with the validation file beside it; by default in the data folder."""
    walkers: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of walkers, DIR/BODY/actor.safetensors; by default the package's."""

    def run(self) -> int:
        """Collect both splits and print where they are."""
        if self.by_jobs():
            return 0
        for path in self._collected().values():
            show(str(path))
        return 0

    def jobs(self) -> list[Job]:
        """One job per group of episodes, and a last one that writes the files."""
        from toptail.lab.tasks.collect import collection_jobs

        return collection_jobs(*self._collection(), self._collected)

    def _collection(self) -> tuple[Collection, Path]:
        """What to collect, and the training file."""
        from toptail.lab.experts.walking import guide_of
        from toptail.lab.tasks.collect import Collection
        from toptail.lab.tasks.files import data_folders
        from toptail.lab.tasks.names import parse_name

        sizes = (self.episodes, self.val_episodes, self.rows)
        guide = guide_of(parse_name(self.name), self.walkers)
        collection = Collection(self.name, *sizes, self.seed, guide)
        return collection, self.out or data_folders()[0] / f"{collection.task.name}.npz"

    def _collected(self) -> dict[Split, Path]:
        """Collect missing episodes; returns the path of each split."""
        from rich.progress import MofNCompleteColumn

        from toptail.lab.tasks.collect import collect
        from toptail.lab.tasks.simulator import available_cores

        with bars(MofNCompleteColumn()) as shown:
            task = shown.add_task("collecting", total=None)
            return collect(
                *self._collection(),
                self.workers or available_cores(),
                lambda done, total: shown.update(task, completed=done, total=total),
            )


@dataclass(frozen=True)
class ImportData:
    """Bring a data set of Minari, D4RL or OGBench into this project's layout.

    The last episodes become the validation file. Actions are brought to ±1 where Minari's box
    says otherwise; rewards are not kept.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="KIND:PATH")]
    """minari:ID or minari:FOLDER, d4rl:FILE.hdf5, or ogbench:FILE.npz."""
    out: Annotated[Path, tyro.conf.arg(metavar="NAME.npz")]
    """The training file; NAME-val.npz goes beside it."""
    val_share: float = 0.1
    """Share of the episodes that becomes the validation file."""

    def run(self) -> int:
        """Import, and print where the files are."""
        from toptail.lab.foreign.datasets import import_data

        result = import_data(self.source, self.out, self.val_share)
        for path, count in zip(result.paths, result.episodes, strict=True):
            show(f"{path}: {count:,} episodes")
        for sentence in result.notes:
            show(sentence)
        return 0


@dataclass(frozen=True)
class CheckData:
    """Compare a data set with OGBench's recipe, and with another file.

    PointMaze files are compared with episodes of a slow version of the recipe; every file with the
    published one, if it is on this machine or given. In data of walkers a difference is no fault.
    """

    file: _NameOrFile
    """An OGBench name or the path of an .npz file."""
    task: str | None = None
    """The data set's OGBench name, if it is not the file's name."""
    against: str | None = None
    """Name or file to compare with; by default the data folder's file of the same name."""
    reference_episodes: int = 20
    """Episodes of the slow reference (PointMaze only); 0 leaves it out."""
    restore_rows: int = 50
    """Rows whose simulator state is restored and stepped; 0 leaves it out."""

    def run(self) -> int:
        """Print every comparison; the exit code is 1 if one fails."""
        from toptail.lab.tasks.compare import recipe_facts
        from toptail.lab.tasks.files import find, load_file

        check_whole("reference_episodes", self.reference_episodes, 0)
        check_whole("restore_rows", self.restore_rows, 0)
        path = find(self.file)
        if self.task is None and self._imported(path):
            return 0
        task = self._task(path)
        data = load_file(path, task)
        maze = _maze_of(task)
        facts = recipe_facts(data, task, maze)
        table = _table("the recipe says", "expected", "found", "")
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

    def _imported(self, path: Path) -> bool:
        """Whether the file is an imported data set without a recipe; then its layout is checked."""
        from toptail.lab.tasks.files import load_file, read_record, task_of

        if task_of(path) is not None or "imported" not in (read_record(path) or {}):
            return False
        data = load_file(path)
        show(
            f"{path}: {len(data.ends):,} imported episodes of {len(data):,} rows; layout, numbers "
            "and hash hold. There is no recipe to compare with: --task names one of OGBench's."
        )
        return True

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
        from toptail.lab.tasks.compare import reference_episodes
        from toptail.lab.tasks.files import data_folders, find, load_file

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


@dataclass(frozen=True)
class Data:
    """List, download, describe, collect, import and check data sets."""

    what: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[ListData, tyro.conf.subcommand("list")]
            | Annotated[GetData, tyro.conf.subcommand("get")]
            | Annotated[InfoData, tyro.conf.subcommand("info")]
            | Annotated[CollectData, tyro.conf.subcommand("collect")]
            | Annotated[ImportData, tyro.conf.subcommand("import")]
            | Annotated[CheckData, tyro.conf.subcommand("check")]
        ]
    ]
    """What to do."""

    def run(self) -> int:
        """Run the chosen command."""
        return self.what.run()


def _print_differences(
    data: Trajectories, other: Trajectories, maze: Maze | None, title: str, family: str
) -> list[bool]:
    from toptail.lab.tasks.compare import compare, describe, occupancy_distance

    table = _table(f"against {plain(title)}", "this file", "the other", "95 % interval", "p", "")
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


def _length_histogram(lengths: IntArray) -> list[tuple[str, int]]:
    """Numbers of trajectories by length, in at most ten classes."""
    import numpy as np

    values, counts = np.unique(lengths, return_counts=True)
    if len(values) <= 10:
        return [(str(value), int(count)) for value, count in zip(values, counts, strict=True)]
    edges = np.linspace(values[0], values[-1] + 1, 11).astype(int)
    counts, _ = np.histogram(lengths, bins=edges)
    classes = zip(edges[:-1], edges[1:], counts, strict=True)
    return [(f"{low} to {high - 1}", int(count)) for low, high, count in classes]


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:,.1f} MB" if path.exists() else "missing"


def _mark(holds: bool | None) -> str:
    if holds is None:
        return "[yellow]another size[/yellow]"
    return "[green]holds[/green]" if holds else "[bold red]differs[/bold red]"


def _table(*headers: str) -> Any:
    table = simple_grid()
    for header in headers:
        table.add_column(header, overflow="fold", no_wrap=not table.columns)
    return table


@contextmanager
def _download_bars() -> Iterator[Callable[[str, int, int | None], None]]:
    """One progress bar per file."""
    from rich.progress import DownloadColumn

    with bars(DownloadColumn()) as shown:
        tasks: dict[str, Any] = {}

        def progress(name: str, done: int, size: int | None) -> None:
            if name not in tasks:
                tasks[name] = shown.add_task(name, total=size)
            shown.update(tasks[name], completed=done, total=size)

        yield progress
