"""``toptail train``: train critics on a data set, resumable at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, get_type_hints

import tyro

from toptail.commands.engine import JobFlags
from toptail.commands.lists import names, numbers
from toptail.commands.options import Words, command_line
from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import CRITICS, MAIN, entry, split_label
from toptail.lab.training.config import SETTINGS, RunOptions, RunSize, require_seeds, typed_settings

BEHAVIOUR: Final = "diffusion"
"""Name of the behaviour model, which proposes candidates and is no critic."""
_SETTABLE: Final = ", ".join(name for name in SETTINGS if name not in get_type_hints(RunSize))

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.training.config import LearnerConfig
    from toptail.lab.training.runs import Run


@dataclass(frozen=True, kw_only=True)
class _What:
    """Data, output and critics; a class of its own, so that the help begins with them."""

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """An OGBench name, a short name such as PointMaze, or the path of a training file."""
    out: Path
    """Folder of the runs."""
    critics: Annotated[
        Words,
        tyro.conf.arg(
            metavar="A,B,...",
            help=f"Critics, given one by one or separated by commas: {', '.join(CRITICS)}. "
            f"Unless given, {', '.join(MAIN)}. '{BEHAVIOUR}' is the behaviour model that proposes "
            "candidates. cosine[temperature=0.1] is the critic with a setting of its own, in a "
            "folder of that name.",
        ),
    ] = ()

    set: Annotated[
        Words,
        tyro.conf.arg(
            metavar="NAME=VALUE,...",
            help="Settings of all critics that have them, as in temperature=0.1,layer_norm=off: "
            f"{_SETTABLE}.",
        ),
    ] = ()

    on: Annotated[Path | None, tyro.conf.arg(metavar="RUNS/TASK/CRITIC")] = None
    """Folder of trained runs, for critics that read the frozen parameters of another run: seed N
    reads RUNS/TASK/CRITIC/seed-N."""
    seeds: Annotated[Words, tyro.conf.arg(metavar="N,N,...")] = ()
    """Seeds, given one by one or separated by commas; they train together. Unless given,
    42,43,44."""
    checkpoint_every: int | None = None
    """Steps between two checkpoints; 50000 on a GPU and 1000 on a CPU unless given."""
    log: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Trackers that get the metrics, too: tensorboard, trackio, wandb (each must be installed)."""


@dataclass(frozen=True, kw_only=True)
class Train(JobFlags, RunSize, _What):
    """Train critics on a data set, on a GPU if there is one.

    toptail train --task PointMaze --critics raw,tdq --steps 20000 --out runs

    Every seed of a critic is a run in OUT/TASK/CRITIC/seed-N. Killed at any moment, the same
    command resumes it and ends with the same bits. Finished runs are left alone, and extended with
    more --steps; invalid runs are repeated with the same seed.
    """

    def run(self) -> int:
        """Train, draw the curves, and list the runs; the exit code is 1 if one is invalid."""
        if self.by_jobs():
            return 0
        seeds, configs = self._seeds(), self.chosen()
        from toptail.commands.train_progress import progress
        from toptail.lab.tasks.files import load
        from toptail.lab.training.config import keep_compiled
        from toptail.lab.training.data import TaskData
        from toptail.lab.training.reports import require_trackers, tracking
        from toptail.lab.training.session import train_runs

        trackers = names(self.log)
        require_trackers(trackers)
        keep_compiled()
        data = TaskData.place(load(self.task), configs, len(seeds))
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
        return [training.piece(self.task, every, line) for training in trainings]

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
            configs += self.options().configs(task, critics, self.on)
        if BEHAVIOUR in named:
            configs.append(self._behaviour_model(task, alone=not critics))
        return configs

    def options(self) -> RunOptions:
        """Sizes and settings of the critics."""
        _, written = split_label(f"critics[{','.join(self.set)}]" if self.set else "critics")
        own = typed_settings(option("set"), written)
        sizes = {field.name: getattr(self, field.name) for field in fields(RunSize)}
        for name in own.keys() & sizes.keys():
            raise InputError(f"{option('set', name)}: use {option(name)} in its place.")
        return RunOptions(**sizes).having(own)

    def _behaviour_model(self, task: str, *, alone: bool) -> LearnerConfig:
        """The behaviour model's configuration; among critics it takes their layers alone."""
        from toptail.lab.proposals.diffusion import DiffusionRun

        options = self.options()
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
