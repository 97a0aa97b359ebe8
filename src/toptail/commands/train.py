"""``toptail train``: train critics on a data set, resumable at any moment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

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
from toptail.commands.terminal import progress_bar
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
        from toptail.lab.training.reports import tracking
        from toptail.lab.training.session import train_runs
        from toptail.report.trackers import require_trackers

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
        return [training.job(self.task, every, line, prepare) for training in trainings]

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
        """The behaviour model's configuration; beside critics it takes only ``hidden`` of --set."""
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


SHOWN = {
    "loss": "loss",
    "logit_gap": "gap",
    "phi_norm": "‖φ‖",
    "psi_norm": "‖ψ‖",
    "tau": "tau",
    "auc": "AUC",
}
"""Scalars of the progress bar, and their names there."""


@contextmanager
def progress() -> Iterator[Watch]:
    """The progress of a training: steps, speed, time left, and the newest numbers.

    Elsewhere than on a terminal, a line when a batch begins, at every checkpoint, and every few
    seconds.
    """
    began: dict[tuple[str, tuple[int, ...]], tuple[float, int]] = {}
    with progress_bar() as tick:

        def watch(at: BatchProgress) -> None:
            now, compiling = time.monotonic(), at.stage == "compiling"
            here = now, at.step
            start, first = here if compiling else began.setdefault((at.critic, at.seeds), here)
            speed = (at.step - first) / (now - start) if now > start else 0.0
            parts = (f"{at.critic} {at.step:,}/{at.steps:,} steps", pace(at, speed), newest(at))
            line = " · ".join(part for part in parts if part)
            tick(line, at.step / at.steps, now=compiling or at.stored)

        yield watch


def pace(at: BatchProgress, speed: float) -> str:
    """Steps per second and the time left; the stage while they are not known."""
    if not speed:
        return f"{at.stage} …"
    seeds = f"{len(at.seeds)} seed{'s' * (len(at.seeds) > 1)}"
    left = timedelta(seconds=round((at.steps - at.step) / speed))
    return f"{speed:,.{1 if speed < 10 else 0}f} steps/s × {seeds}, {left} left"


def newest(at: BatchProgress) -> str:
    """The newest scalars, means over the seeds where they are finite."""
    parts = []
    for name, label in SHOWN.items():
        values = [line[name] for line in at.lines.values() if name in line]
        finite = [value for value in values if value is not None]
        if values:
            parts.append(f"{label} {sum(finite) / len(finite):.3g}" if finite else f"{label} –")
    return " · ".join(parts)
