"""``toptail study selection``: frozen queries, cached candidates, independent judges."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import tyro

from toptail.commands.demo import need_training, print_table
from toptail.commands.lists import names, whole_numbers
from toptail.commands.progress import progress_bar
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.studies.datasets import TaskDataset
    from toptail.lab.studies.selection.config import SelectionConfig

LABELS: Final = ("tab:fixed-query", "tab:function-class")
"""What `reproduce` knows, by the paper's labels."""

TABLES: Final = "tables"
"""The last stage: audits, tables, claims and the page, from the files of the others."""

_Flag = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class StudySelection:
    """Let critics pick among the same candidates, and let independent judges say what they got.

    Goes through the stages queries, pools, reference, geodesic, scores, rollouts, deployment and
    tables. Each leaves a file in OUT/TASK; one that is there and fits is not made again, and you
    may bring your own in its place. The criteria are declared before anything is scored.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """A data set: an OGBench name, one of the paper's names, or the path of a training file."""

    runs: Path | None = None
    """Folder of trained runs, as 'toptail train' writes it: RUNS/TASK/CRITIC/seed-N."""

    out: Path = Path("runs/selection")
    """Folder of the study; the task's files go to OUT/TASK."""

    declare: _Flag = False
    """Freeze the queries, write the criteria to OUT/TASK/declared.json, and stop."""

    stage: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="A,B")] = ()
    """Only these stages, separated by commas; all in order unless given."""

    critic: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION"),
    ] = ()
    """A critic of your own: a function of states, actions and goals, or one that returns such a
    function; may be repeated."""

    pools: Annotated[Path | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Candidates of your own in place of the behaviour model's: 'actions' [Q, P, N, a]."""

    judge: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME=FILE.npz")
    ] = ()
    """Values of a judge of your own: 'values' [members, Q, P, N + 1], the logged action last;
    may be repeated."""

    train: _Flag = False
    """First train what is missing in RUNS: critics, reference ensemble, behaviour model."""

    steps: int | None = None
    """With --train: optimizer steps of each critic; 100000 unless given."""

    diffusion_steps: int | None = None
    """With --train: optimizer steps of the behaviour model; 100000 unless given."""

    seeds: Annotated[str, tyro.conf.arg(metavar="N,N,...")] = "42,43,44"
    """Training seeds of the audited critics, separated by commas."""

    reference_seeds: Annotated[str, tyro.conf.arg(metavar="N,N,...")] = "101,102,103"
    """Training seeds of the reference ensemble; none of them is audited."""

    per_group: int | None = None
    """Queries in each distance group; 500 unless given."""

    pool_count: int | None = None
    """Pools per query; 5 unless given."""

    pool_size: int | None = None
    """Candidates per pool; 64 unless given."""

    def run(self) -> int:
        """Make what is missing and tabulate it; prints the main table and the report's path."""
        command = shlex.join(["toptail", *sys.argv[1:]])
        if self.declare:
            print(f"Declared: {self.declared()}")
            return 0
        folder, report = self.work(command)
        if report is None:
            print(f"Stages: {folder}")
            return 0
        _print(folder, LABELS)
        print(f"Tables: {folder / TABLES}\nReport: {report}")
        return 0

    def declared(self) -> Path:
        """Freeze the queries and declare the criteria; returns the declaration's path."""
        need_training("study selection")
        from toptail.lab.studies.selection.stages import make_queries
        from toptail.lab.studies.selection.study import Selection

        task = self._dataset()
        study = Selection.at(self.out, self.config(task.name))
        make_queries(study, task.data.val)
        return study.folder.declared

    def work(self, command: str) -> tuple[Path, Path | None]:
        """Do what was asked for; returns the task's folder, and the page if it was made."""
        stages = self.stages()
        if self.train and self.runs is None:
            raise InputError("--train needs --runs: the folder that the trained runs go to.")
        making = [stage for stage in stages if stage != TABLES]
        folder = self._make(making, command) if making else self.out / self._name()
        if TABLES not in stages:
            return folder, None
        from toptail.lab.studies.selection.finish import finish_selection

        with timed_progress() as tick:
            return folder, finish_selection(folder, tick)

    def stages(self) -> list[str]:
        """The stages asked for, in their order."""
        from toptail.lab.studies.selection.config import STAGES

        known = (*STAGES, TABLES)
        asked = names(self.stage)
        for stage in asked:
            if stage not in known:
                raise InputError(f"There is no stage '{stage}': they are {', '.join(known)}.")
        return [stage for stage in known if stage in asked or not asked]

    def config(self, task: str) -> SelectionConfig:
        """The task's settings with what was asked for."""
        from toptail.lab.studies.selection.config import (
            PoolSettings,
            ReferenceSettings,
            SelectionConfig,
        )
        from toptail.lab.tasks.queries import QueryConfig

        pools = _given(count=self.pool_count, size=self.pool_size)
        changes: dict[str, Any] = {
            "seeds": whole_numbers("--seeds", self.seeds),
            "reference": ReferenceSettings(
                seeds=whole_numbers("--reference-seeds", self.reference_seeds)
            ),
            "pools": PoolSettings(**pools),
            "queries": QueryConfig(**_given(per_group=self.per_group)),
        }
        if self.pool_size is not None:
            powers = [1 << i for i in range(self.pool_size.bit_length())]
            changes["ks"] = tuple(sorted({*powers, self.pool_size}))
        return SelectionConfig.for_task(task, **changes)

    def _dataset(self) -> TaskDataset:
        from toptail.lab.studies.datasets import TaskDataset

        return TaskDataset.load(self.task)

    def _name(self) -> str:
        """The task's name; its data is not needed where only tables are made."""
        from toptail.lab.tasks.names import PAPER_TASKS

        path = Path(self.task)
        return path.stem if path.suffix == ".npz" else PAPER_TASKS.get(self.task, self.task)

    def _make(self, making: Sequence[str], command: str) -> Path:
        """Train what is missing, if asked to, and make the stages; returns the task's folder."""
        need_training("study selection")
        from toptail.lab.studies.folder import RunFolder
        from toptail.lab.studies.selection.run import Brought, Stages
        from toptail.lab.studies.selection.study import Selection

        task = self._dataset()
        config = self.config(task.name)
        if self.train:
            self._train(config, command)
        folder = RunFolder(self.out / task.name)
        with (
            timed_progress() as tick,
            folder.recording(asdict(config), list(config.seeds), command),
        ):
            study = Selection.at(self.out, config, self.runs, tick)
            brought = Brought(self.pools, self.judge, self.critic)
            left_out = Stages(study, task.data, brought).run(making)
        for sentence in left_out:
            print(sentence)
        return folder.path

    def _train(self, config: SelectionConfig, command: str) -> None:
        """Train the reference ensemble, the critics and the behaviour model where missing."""
        from toptail.commands.train_progress import progress
        from toptail.lab.studies.selection.train import train_selection
        from toptail.lab.studies.trained import TrainingSettings

        assert self.runs is not None
        given = _given(steps=self.steps, diffusion_steps=self.diffusion_steps)
        with progress() as watch:
            train_selection(self.task, config, TrainingSettings(**given), self.runs, command, watch)


def reproduce(
    label: str,
    out: Path = Path("runs/selection"),
    runs: Path | None = None,
    task: str = "PointMaze",
    *,
    train: bool = False,
) -> Path:
    """Make one table of the paper and show it.

    Parameters
    ----------
    label
        One of `LABELS`.
    out
        Folder of the study; stages that are stored there are not made again.
    runs
        Folder of trained runs; None works from stored stages alone.
    task
        The data set.
    train
        First train what is missing in ``runs``.

    Returns
    -------
    The path of the report page.
    """
    if label not in LABELS:
        raise InputError(f"'{label}' is not a label of the paper known here: {', '.join(LABELS)}.")
    stages = ("queries", "pools", "reference", "geodesic", "scores", "rollouts", TABLES)
    study = StudySelection(
        task, runs=runs, out=out, train=train, stage=stages if runs is not None else (TABLES,)
    )
    flags = [f"--task={task}", *([f"--runs={runs}"] if runs else []), *(["--train"] * train)]
    command = shlex.join(["toptail", "reproduce", label, f"--out={out}", *flags])
    folder, report = study.work(command)
    assert report is not None  # the tables were asked for
    if not _print(folder, (label,)):
        raise InputError(
            f"{folder} has no scores for {label}: score the critics that it needs with 'toptail "
            "study selection --runs RUNS --train'."
        )
    print(f"Report: {report}")
    return report


@contextmanager
def timed_progress() -> Iterator[Callable[[str, float], None]]:
    """A progress bar that says how long the stage may still take."""
    with progress_bar() as show:
        stage, began = "", time.monotonic()

        def tick(text: str, share: float) -> None:
            nonlocal stage, began
            if text.partition(":")[0] != stage or share == 0:
                stage, began = text.partition(":")[0], time.monotonic()
            elapsed = time.monotonic() - began
            if 0 < share < 1 and elapsed > 1 and "left" not in text:
                left = round(elapsed * (1 - share) / share)
                text += f", about {left // 60}:{left % 60:02} left"
            show(text, share)

        yield tick


def _print(folder: Path, labels: Sequence[str]) -> bool:
    """Print the tables of these labels that the folder has; whether there was any."""
    from toptail.lab.studies.selection.results import read_selection_results
    from toptail.lab.studies.selection.show import main_table, square_table

    study = read_selection_results(folder)
    tables = [table for table in (main_table(study), square_table(study)) if table is not None]
    found = [table for table in tables if table.name in labels]
    for table in found:
        print_table(table)
    return bool(found)


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that were given."""
    return {name: value for name, value in settings.items() if value is not None}
