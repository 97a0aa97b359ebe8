"""Collecting a data set: episodes in parallel, each with its own seed, resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import remove_at_once, sweep
from toptail.io.json_files import read_object, write_json
from toptail.jobs.job import Job
from toptail.jobs.workers import worker_map
from toptail.lab.tasks.episodes import (
    DirectionExpert,
    Episode,
    Expert,
    Navigator,
    Player,
    check_navigable,
    check_playable,
)
from toptail.lab.tasks.files import read_record, record_path, save_file, split_path
from toptail.lab.tasks.names import Recipe, Split, TaskName, parse_name, published_recipe
from toptail.lab.tasks.simulator import load_module
from toptail.lab.tasks.trajectories import Trajectories
from toptail.progress import Tick, no_tick
from toptail.provenance import commit, installed

_SPLITS: tuple[Split, ...] = ("train", "val")
_MAZE_GROUP = 25
"""Maze episodes that are stepped together."""
_MOST_ROWS = 10_000_000
"""Rows of an episode, at most: their noise is drawn before the first step."""


@dataclass(frozen=True)
class Collection:
    """What to collect; an episode depends on the name, the seed and its number alone."""

    name: str
    """An OGBench data set name."""
    episodes: int | None = None
    """Training episodes; by default as many as the published data set has."""
    val_episodes: int | None = None
    """Validation episodes; by default a tenth of the training episodes, and at least one."""
    rows: int | None = None
    """Rows per episode; by default as in the published data set."""
    seed: int = 0
    """Seed of the whole data set."""
    expert: Expert | None = None
    """Low-level controller of the maze's agent; PointMaze needs none."""

    @property
    def task(self) -> TaskName:
        return parse_name(self.name)

    def counts(self) -> dict[Split, int]:
        """Number of episodes of each split."""
        train = _recipe(self.task).episodes if self.episodes is None else self.episodes
        val = max(1, train // 10) if self.val_episodes is None else self.val_episodes
        if train < 1 or val < 1 or self.seed < 0:
            raise InputError(
                f"Cannot collect {train} training and {val} validation episodes with seed "
                f"{self.seed}: expected at least one of each and a seed of at least 0."
            )
        return {"train": train, "val": val}


class Collector(Protocol):
    """Turns seeds into episodes."""

    def collect(self, seeds: list[np.random.SeedSequence]) -> list[Episode]:
        """Collect one episode per seed."""


def check_collectable(collection: Collection) -> None:
    """Raise an `InputError` with the reason if a data set cannot be collected."""
    task = collection.task
    if not task.is_maze:
        check_playable(task)
        return
    check_navigable(task)
    if collection.expert is None and task.family != "pointmaze":
        raise InputError(
            f"Collecting {task.name} needs a trained walker: give expert=expert_for(task) of "
            "toptail.lab.walkers.experts, or use `toptail data collect`, which has them."
        )


def make_collector(collection: Collection) -> Collector:
    check_collectable(collection)
    task, rows, noise = collection.task, _rows(collection), _recipe(collection.task).noise
    if not task.is_maze:
        return Player(task, rows, noise)
    return Navigator(task, rows, noise, collection.expert or DirectionExpert())


def collect(
    collection: Collection, out: Path, workers: int = 1, tick: Tick = no_tick
) -> dict[Split, Path]:
    """Collect a data set and write ``out`` and its validation file.

    Finished episodes are stored in the folder ``out.parts`` until all are there, so that the same
    call resumes an interrupted one. The files do not depend on ``workers``. With more than one
    worker, a script must call this under ``if __name__ == "__main__"``, because the worker
    processes import it.

    Returns
    -------
    dict
        The path of each split's file.
    """
    if out.suffix != ".npz":
        raise InputError(f"{out} does not end in .npz: expected a file name such as NAME.npz.")
    if workers < 1:
        raise InputError(f"workers is {workers}: expected at least 1.")
    check_collectable(collection)
    parts = out.with_name(f"{out.name}.parts")
    counts = collection.counts()
    paths = {split: split_path(out, split) for split in counts}
    if _is_collected(collection, counts, paths) and not parts.exists():
        sweep(out.parent)  # temporary files of a call that was killed at its end
        return paths
    _open_parts(collection, out, parts)

    total = sum(counts.values())
    missing = {group: group.missing(parts) for group in _groups(collection, counts)}
    groups = [group for group, number in missing.items() if number]
    done = total - sum(missing.values())

    def report() -> None:
        tick(f"collecting, {done:,} of {total:,} episodes", done / total)

    report()
    work = partial(_collect_group, collection, parts)
    with closing(worker_map(work, groups, workers, one_thread=True)) as finished:
        for group, _ in zip(groups, finished, strict=True):
            done += missing[group]
            report()

    for split, count in counts.items():
        _merge(collection, parts, split, count, paths[split])
    remove_at_once(parts)
    return paths


def collection_jobs(collection: Collection, out: Path, work: Callable[[], object]) -> list[Job]:
    """One job per group of episodes, and a last one that writes the two files by ``work``."""
    check_collectable(collection)
    parts, counts = out.with_name(f"{out.name}.parts"), collection.counts()
    paths = {split: split_path(out, split) for split in counts}
    collected = _is_collected(collection, counts, paths) and not parts.exists()

    def job_of(group: _Group) -> Job:
        files = group.files(parts)

        def collect_them() -> None:
            _open_parts(collection, out, parts)
            _collect_group(collection, parts, group)

        return Job(
            name=f"collect {files[0].stem}",
            content=_origin(collection) | {"episodes": len(files), "out": str(out)},
            home=out.parent,
            outputs=files,
            work=collect_them,
            done=lambda: collected or all(file.exists() for file in files),
        )

    jobs = [job_of(group) for group in _groups(collection, counts)]
    return [
        *jobs,
        Job(
            name=f"collect {out.name}",
            content=_origin(collection) | {"episodes": counts, "out": str(out)},
            home=out.parent,
            outputs=list(paths.values()),
            work=work,
            done=lambda: _is_collected(collection, counts, paths) and not parts.exists(),
            needs=[job.id for job in jobs],
            last=True,
        ),
    ]


def _recipe(task: TaskName) -> Recipe:
    """The published size and noise; known for every task that can be collected."""
    recipe = published_recipe(task)
    if recipe is None:
        raise InputError(f"The size of the published {task.name} is not known here.")
    return recipe


def _rows(collection: Collection) -> int:
    rows = _recipe(collection.task).rows if collection.rows is None else collection.rows
    if rows < 2:
        raise InputError(f"Episodes of {rows} rows have no transition: expected at least 2 rows.")
    if rows > _MOST_ROWS:
        raise InputError(f"Episodes of {rows} rows are too long: expected at most {_MOST_ROWS}.")
    return rows


def _origin(collection: Collection) -> dict[str, Any]:
    """Everything that the content of an episode depends on, besides its number."""
    expert = collection.expert
    return {
        "name": collection.task.name,
        "rows": _rows(collection),
        "seed": collection.seed,
        "noise": _recipe(collection.task).noise,
        "expert": None if expert is None else expert.describe(),
        "versions": {name: installed(name) for name in ("mujoco", "ogbench", "numpy")},
    }


def _is_collected(
    collection: Collection, counts: dict[Split, int], paths: dict[Split, Path]
) -> bool:
    """Whether both files exist, with records of this collection."""
    load_module("mujoco")  # refuses a missing simulator before anything is written
    for split, path in paths.items():
        record = (read_record(path) or {}) if path.exists() else {}
        made_by = _origin(collection) | {"episodes": counts[split]}
        if any(record.get(key) != value for key, value in made_by.items()):
            return False
    return True


def _open_parts(collection: Collection, out: Path, parts: Path) -> None:
    """Make the folder of finished episodes; refuse one of another collection."""
    origin, origin_file = _origin(collection), parts / "origin.json"
    if not origin_file.exists():
        for path in (split_path(out, split) for split in _SPLITS):
            if path.exists():
                raise InputError(f"{path} is already there: delete it or choose another file.")
        parts.mkdir(parents=True, exist_ok=True)
        write_json(origin_file, origin)
        return
    stored = read_object(origin_file, f"delete the folder {parts} to collect again")
    for key, value in origin.items():
        if stored.get(key) != value:
            raise InputError(
                f"{parts} holds episodes of another collection ({key} is {stored.get(key)!r} there "
                f"and {value!r} here): delete that folder or choose another output file."
            )


@dataclass(frozen=True)
class _Group:
    """Episodes that are collected together."""

    split: Split
    episodes: range
    """Numbers of the episodes; the last group may go beyond the end of the data set."""
    wanted: range
    """The episodes among them that belong to the data set."""

    def files(self, parts: Path) -> list[Path]:
        return [_part(parts, self.split, episode) for episode in self.wanted]

    def missing(self, parts: Path) -> int:
        return sum(not file.exists() for file in self.files(parts))


def _groups(collection: Collection, counts: dict[Split, int]) -> Iterator[_Group]:
    """Yield all groups of episodes.

    Groups are fixed by the episodes' numbers, and collected as a whole: a network's rounding
    depends on the number of rows.
    """
    size = _MAZE_GROUP if collection.task.is_maze else 1
    for split, count in counts.items():
        for first in range(0, count, size):
            wanted = range(first, min(first + size, count))
            yield _Group(split, range(first, first + size), wanted)


def _part(parts: Path, split: Split, episode: int) -> Path:
    return parts / f"{split}-{episode:06d}.npz"


def _collect_group(collection: Collection, parts: Path, group: _Group) -> None:
    split = _SPLITS.index(group.split)
    seeds = [
        np.random.SeedSequence([collection.seed, split, episode]) for episode in group.episodes
    ]
    collected = _collector_of_this_process(collection).collect(seeds)
    for number, episode in zip(group.wanted, collected, strict=False):
        arrays = {**episode.arrays, "goals": np.array([episode.goals])}
        write_arrays(_part(parts, group.split, number), arrays)


@lru_cache(maxsize=1)
def _collector_of_this_process(collection: Collection) -> Collector:
    """The collector, made once per process: making an environment takes a second."""
    return make_collector(collection)


def _merge(collection: Collection, parts: Path, split: Split, count: int, path: Path) -> None:
    episodes = [read_arrays(_part(parts, split, episode)) for episode in range(count)]
    goals = [int(episode.pop("goals")[0]) for episode in episodes]
    trajectories = Trajectories.of_episodes(episodes, str(path))
    save_file(path, trajectories)
    record = {
        "file": path.name,
        "source": "collected by toptail",
        "split": split,
        "content_sha256": trajectories.sha256,
        **_origin(collection),
        "episodes": count,
        "goals_per_episode": goals,
        "commit": commit(),
    }
    write_json(record_path(path), record)
