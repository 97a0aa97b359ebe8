"""``toptail data``: list, get, info, collect and import data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from toptail.commands.flags import OUTPUT, SCALE, JobFlags, Words
from toptail.commands.terminal import plain, progress_bar, show, table_with

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.tasks.collect import Collection
    from toptail.lab.tasks.names import Split
    from toptail.lab.tasks.trajectories import IntArray

_Name = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")]
_NameOrFile = Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME|FILE")]


@dataclass(frozen=True)
class ListData:
    """List OGBench's data sets, and which of them are on this machine.

    toptail data list
    """

    all: bool = False
    """List every data set, not only those with states as observations."""

    def run(self) -> int:
        from toptail.lab.tasks.files import data_folders, split_path
        from toptail.lab.tasks.names import OGBENCH_NAMES, parse_name

        table = table_with("data set", "short name", "training file", "validation file")
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
    """Download a published data set; an interrupted download is resumed.

    toptail data get pointmaze-medium-navigate-v0
    """

    name: _Name
    """An OGBench name, or a short name such as PointMaze."""
    out: Annotated[Path | None, OUTPUT] = None
    """Folder for the files; by default the first data folder."""
    mirror: Annotated[Words, tyro.conf.arg(metavar="ADDRESS")] = ()
    """Address of a folder on the web to try before the known ones; may be given repeatedly."""

    def run(self) -> int:
        from toptail.lab.tasks.download import get, mirrors
        from toptail.lab.tasks.files import data_folders

        folder = self.out or data_folders()[0]
        notes: list[str] = []
        with progress_bar() as tick:
            paths = get(self.name, folder, mirrors(self.mirror), tick, notes.append)
        for path in paths.values():
            show(str(path))
        for sentence in notes:
            show(sentence)
        return 0


@dataclass(frozen=True)
class InfoData:
    """Describe a data set file: rows, trajectories, dimensions, ranges, hash.

    toptail data info PointMaze
    """

    file: _NameOrFile
    """An OGBench name or the path of an .npz file."""

    def run(self) -> int:
        from toptail.lab.tasks.files import find, load_file, read_record

        path = find(self.file)
        data = load_file(path)
        table = table_with("", plain(path))
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
    episodes: Annotated[int | None, SCALE] = None
    """Training episodes; by default as many as the published data set has."""
    val_episodes: Annotated[int | None, SCALE] = None
    """Validation episodes; by default a tenth of the training episodes."""
    rows: Annotated[int | None, SCALE] = None
    """Rows per episode; by default as in the published data set."""
    workers: Annotated[int, SCALE] = 0
    """Processes; 0 takes one per core."""
    seed: Annotated[int, SCALE] = 0
    """Seed of the data set."""
    out: Annotated[Path | None, OUTPUT] = None
    """The training file, with the validation file beside it; by default in the data folder."""
    walkers: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of walkers, DIR/BODY/actor.safetensors; by default the package's."""

    def run(self) -> int:
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
        from toptail.lab.tasks.collect import Collection
        from toptail.lab.tasks.files import data_folders
        from toptail.lab.tasks.names import parse_name
        from toptail.lab.walkers.experts import expert_for

        sizes = (self.episodes, self.val_episodes, self.rows)
        guide = expert_for(parse_name(self.name), self.walkers)
        collection = Collection(self.name, *sizes, self.seed, guide)
        return collection, self.out or data_folders()[0] / f"{collection.task.name}.npz"

    def _collected(self) -> dict[Split, Path]:
        """Collect missing episodes; returns the path of each split."""
        from toptail.lab.tasks.collect import collect
        from toptail.stats.resample import available_threads

        cores = self.workers or available_threads()
        with progress_bar() as tick:
            return collect(*self._collection(), cores, tick)


@dataclass(frozen=True)
class ImportData:
    """Bring a data set of Minari, D4RL or OGBench into this project's layout.

      toptail data import minari:D4RL/pointmaze/umaze-v2 --out umaze.npz

    The last episodes become the validation file. Actions are brought to ±1 where Minari's box
    says otherwise; rewards are not kept.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="KIND:PATH")]
    """minari:ID or minari:FOLDER, d4rl:FILE.hdf5, or ogbench:FILE.npz."""
    out: Annotated[Path, OUTPUT, tyro.conf.arg(metavar="NAME.npz")]
    """The training file; NAME-val.npz goes beside it."""
    val_share: float = 0.1
    """Share of the episodes that becomes the validation file."""

    def run(self) -> int:
        from toptail.lab.foreign.datasets import import_data

        result = import_data(self.source, self.out, self.val_share)
        for path, count in zip(result.paths, result.episodes, strict=True):
            show(f"{path}: {count:,} episodes")
        for sentence in result.notes:
            show(sentence)
        return 0


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
