"""``toptail train``: train critics on a data set, resumable at any moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn

from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    Count,
    JobFlags,
    Names,
    Words,
    command_line,
    names,
    numbers,
)
from toptail.commands.terminal import Lines
from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import CRITICS, MAIN, entry
from toptail.lab.training.config import OPTIONS, RunOptions, require_seeds

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.scorers.embeddings import Embedding
    from toptail.lab.training.config import LearnerConfig
    from toptail.lab.training.runs import Run
    from toptail.lab.training.session import BatchProgress, Watch

BEHAVIOUR: Final = "diffusion"
"""Name of the behaviour model, which proposes candidates and is no critic."""
HEAD: Final = "value_head"
"""The critic that reads embeddings."""


@dataclass(frozen=True, kw_only=True)
class Train(JobFlags):
    """Train critics on a data set, on a GPU if there is one.

      toptail train --task PointMaze --critics raw,tdq --steps 20000 --out runs
      toptail train --task PointMaze --steps 500 --out runs --set hidden=64

    Every seed of a critic is a run in OUT/TASK/CRITIC/seed-N. Killed at any moment, the same
    command resumes it and ends with the same bits. Finished runs are left alone, and extended with
    more --steps; invalid runs are repeated with the same seed.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """An OGBench name, a short name such as PointMaze, or the path of a training file."""
    on: Annotated[Path | None, tyro.conf.arg(metavar="RUNS/TASK/CRITIC")] = None
    """Folder of trained runs, for critics that read the frozen parameters of another run: seed N
    reads RUNS/TASK/CRITIC/seed-N."""
    embed: Annotated[str | None, tyro.conf.arg(metavar="FILE.py:FUNCTION|ogbench:PATH")] = None
    """Embeddings of your own for value_head: a function of states, actions and goals that returns
    phi(s, a) and psi(g), or a checkpoint that has them. They are computed once for all rows."""
    critics: Annotated[
        Names,
        DECIDE,
        tyro.conf.arg(
            metavar="A,B,...",
            help=f"Critics: {', '.join(CRITICS)}; unless given {', '.join(MAIN)}. "
            f"'{BEHAVIOUR}' is the behaviour model that proposes candidates, and "
            "cosine[temperature=0.1] the critic with a setting of its own, in a folder of that "
            "name.",
        ),
    ] = ()
    set: Annotated[
        Words,
        DECIDE,
        tyro.conf.arg(
            metavar="NAME=VALUE,...",
            help="Settings of all critics that have them, as in hidden=64,layer_norm=off: "
            f"{', '.join(OPTIONS)}.",
        ),
    ] = ()
    out: Annotated[Path, OUTPUT]
    """Folder of the runs."""
    log: Annotated[Names, OUTPUT] = ()
    """Trackers that get the metrics, too: tensorboard, trackio, wandb (each must be installed)."""
    steps: Annotated[int, SCALE]
    """Optimizer steps."""
    seeds: Annotated[Words, SCALE, tyro.conf.arg(metavar="N,N,...")] = ()
    """Seeds, which train together; 42,43,44 unless given."""
    checkpoint_every: Annotated[Count, SCALE] = None
    """Steps between two checkpoints; 50000 on a GPU and 1000 on a CPU unless given."""

    def run(self) -> int:
        """Train, draw the curves, and list the runs; the exit code is 1 if one is invalid."""
        if self.by_jobs():
            return 0
        seeds, configs = self._seeds(), self.chosen()
        from toptail.lab.tasks.files import load
        from toptail.lab.training.config import keep_compiled
        from toptail.lab.training.data import TaskData
        from toptail.lab.training.reports import require_trackers, tracking
        from toptail.lab.training.session import train_runs

        trackers = names(self.log)
        require_trackers(trackers)
        keep_compiled()
        dataset = load(self.task)
        data = TaskData.place(dataset, configs, len(seeds))
        if (embedding := self._embedding()) is not None:
            data = embedding.beside(data, dataset)
        runs: list[Run] = []
        with (
            progress() as shown,
            tracking(trackers, self.out, configs[0].task, shown) as watch,
        ):
            for config in configs:
                runs += train_runs(
                    config,
                    data,
                    seeds,
                    self.out,
                    checkpoint_every=self._checkpoint_every(),
                    command=command_line(),
                    watch=watch,
                )
        return _finish(runs)

    def jobs(self) -> list[Job]:
        """One job per critic: all of its seeds."""
        from toptail.lab.training.session import TrainingJob

        seeds, every, line = self._seeds(), self._checkpoint_every(), command_line()
        trainings = [TrainingJob(config, seeds, self.out) for config in self.chosen()]
        embedding = self._embedding()
        prepare = None if embedding is None else embedding.beside
        return [training.piece(self.task, every, line, prepare) for training in trainings]

    def _seeds(self) -> tuple[int, ...]:
        seeds = numbers("--seeds", self.seeds or ("42,43,44",), int)
        require_seeds(seeds)
        check_whole("checkpoint_every", self._checkpoint_every(), 1)
        return tuple(seeds)

    def chosen(self) -> list[LearnerConfig]:
        """One configuration per critic, and one of the behaviour model if it is named."""
        from toptail.lab.tasks.files import find, task_of

        named = names(self.critics or MAIN)
        critics = [name for name in named if name != BEHAVIOUR and entry(name)]
        if not named:
            raise InputError(
                f"{option('critics')} names no critic; the critics are {', '.join(CRITICS)}."
            )
        path = find(self.task)
        found = task_of(path)
        task = path.stem if found is None else found.name
        configs: list[LearnerConfig] = []
        if critics:
            options = RunOptions.written(self.steps, self.set).having(self._widths(named))
            configs += options.configs(task, critics, self.on)
        if BEHAVIOUR in named:
            configs.append(self._behaviour_model(task, alone=not critics))
        return configs

    def _embedding(self) -> Embedding | None:
        from toptail.lab.scorers.embeddings import Embedding

        return None if self.embed is None else Embedding.load(self.embed)

    def _widths(self, named: Sequence[str]) -> dict[str, int]:
        """Widths of the embeddings that are given, as settings of the head on them."""
        from toptail.lab.tasks.files import load

        if (embedding := self._embedding()) is None:
            return {}
        if self.on is not None or any(entry(name).name != HEAD for name in named):
            raise InputError(
                f"{option('embed', self.embed)} goes with {option('critics')} {HEAD} alone, and "
                f"without {option('on')}."
            )
        return embedding.widths(load(self.task))

    def _behaviour_model(self, task: str, *, alone: bool) -> LearnerConfig:
        """The behaviour model's configuration; among critics it takes their layers alone."""
        from toptail.lab.proposals.diffusion import DiffusionRun

        options = RunOptions.written(self.steps, self.set)
        shared = options.shared()
        own = {name: x for name, x in options.settings().items() if name == "hidden" or alone}
        if alone and options.gamma is not None:
            shared["gamma"] = options.gamma
        run = DiffusionRun(task, BEHAVIOUR, self.steps, settings=tuple(own.items()), **shared)
        run.build()
        return run

    def _checkpoint_every(self) -> int:
        from toptail.lab.training.config import checkpoint_every

        return checkpoint_every() if self.checkpoint_every is None else self.checkpoint_every


def _finish(runs: Sequence[Run]) -> int:
    """Draw missing curves, and list the runs; the exit code is 1 if one is invalid."""
    from toptail.commands.runs import print_runs, state_of
    from toptail.lab.training.reports import save_training_figure
    from toptail.lab.training.runs import METRICS, read_lines

    for run in runs:
        if not (run.folder / "curves.png").is_file():
            title = f"{run.config['task']} · {run.folder.parent.name} · {run.folder.name}"
            save_training_figure(read_lines(run.folder / METRICS), title, run.folder)
    print_runs(runs)
    return 0 if all(state_of(run)[0] == "finished" for run in runs) else 1


# Progress: a bar on a terminal, a line every few seconds elsewhere.

SHOWN = {
    "loss": "loss",
    "logit_gap": "gap",
    "phi_norm": "‖φ‖",
    "psi_norm": "‖ψ‖",
    "tau": "tau",
    "auc": "AUC",
}
"""Scalars of the progress bar, and their names there."""

SPEED_SECONDS = 600.0
"""Seconds that the speed is averaged over: a chunk of steps may take a minute."""


class BatchBars:
    """One progress bar per batch of runs."""

    def __init__(self) -> None:
        self.left = TimeRemainingColumn()
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}", justify="right"),
            TextColumn("{task.fields[pace]}"),
            self.left,
            speed_estimate_period=SPEED_SECONDS,
        )
        self._ids: dict[tuple[str, tuple[int, ...]], TaskID] = {}

    def update(self, at: BatchProgress) -> Task:
        key = at.critic, at.seeds
        if key not in self._ids:
            self._ids[key] = self.bars.add_task(
                at.critic, total=at.steps, completed=at.step, pace=""
            )
        self.bars.update(self._ids[key], completed=at.step)
        (task,) = (task for task in self.bars.tasks if task.id == self._ids[key])
        seeds = f"{len(at.seeds)} seed{'s' * (len(at.seeds) > 1)}"
        speed = task.speed or 0.0
        pace = f"{speed:,.{1 if speed < 10 else 0}f} steps/s × {seeds}"
        self.bars.update(task.id, pace=f"{at.stage} …" if task.speed is None else pace)
        return task

    def line(self, at: BatchProgress) -> str:
        task = self.update(at)
        pace = f"{task.fields['pace']}, {self.left.render(task)} left"
        parts = (f"{at.critic} {at.step:,}/{at.steps:,} steps", pace, newest(at))
        return " · ".join(part for part in parts if part)


def newest(at: BatchProgress) -> str:
    """The newest scalars, means over the seeds where they are finite."""
    parts = []
    for name, label in SHOWN.items():
        values = [line[name] for line in at.lines.values() if name in line]
        finite = [value for value in values if value is not None]
        if values:
            parts.append(f"{label} {sum(finite) / len(finite):.3g}" if finite else f"{label} –")
    return " · ".join(parts)


@contextmanager
def progress() -> Iterator[Watch]:
    """A bar per batch and the newest numbers on a terminal.

    Elsewhere a line when a batch begins, at every checkpoint, and every few seconds.
    """
    console, bars = Console(stderr=True), BatchBars()
    if not console.is_terminal:
        lines = Lines()

        def write(at: BatchProgress) -> None:
            bars.update(at)
            if at.stage == "compiling" or at.stored or lines.due():
                lines.write(bars.line(at))

        yield write
        return
    with Live(Group(bars.bars), console=console, refresh_per_second=4) as live:

        def show(at: BatchProgress) -> None:
            bars.update(at)
            live.update(Group(bars.bars, newest(at)))

        yield show
