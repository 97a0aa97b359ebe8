"""``toptail train``: critics on a task, all seeds at once, stopped and continued at will."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

from toptail.commands.engine import JobFlags
from toptail.commands.lists import names, numbers
from toptail.commands.options import Words, command_line
from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.registry import CRITICS, MAIN, entry, label_of, split_label
from toptail.lab.training.config import RunOptions, require_seeds

BEHAVIOUR: Final = "diffusion"
"""The learner among the critics' names that is none: it proposes what critics choose from."""

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.training.config import LearnerConfig
    from toptail.lab.training.run_files import Run


@dataclass(frozen=True, kw_only=True)
class _What:
    """What is trained on what; before the options, so that the help begins with it."""

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """An OGBench name, one of the paper's eight names, or the path of a training file."""

    out: Path
    """Folder of the runs."""

    critics: Annotated[
        Words,
        tyro.conf.arg(
            metavar="A,B,...",
            help=f"Critics, given one by one or separated by commas: {', '.join(CRITICS)}. "
            f"Unless given, {', '.join(MAIN)}. '{BEHAVIOUR}' is the behaviour model that proposes "
            "candidates. A critic with settings of its own, as in cosine[temperature=0.1], is "
            "trained beside the critic, into a folder of that name.",
        ),
    ] = ()

    temperatures: Annotated[Words, tyro.conf.arg(metavar="X,X,...")] = ()
    """Temperatures: each critic that has one is trained once with each, as in
    cosine[temperature=0.1]."""

    seeds: Annotated[Words, tyro.conf.arg(metavar="N,N,...")] = ()
    """Seeds, given one by one or separated by commas; they train together. Unless given,
    42,43,44."""

    checkpoint_every: int | None = None
    """Steps between two checkpoints; 50000 on a GPU and 1000 on a CPU unless given."""

    log: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Also report what metrics.jsonl gets to tensorboard, trackio or wandb, whichever is
    installed."""


@tyro.conf.configure(tyro.conf.FlagCreatePairsOff)
@dataclass(frozen=True, kw_only=True)
class Train(JobFlags, RunOptions, _What):
    """Train critics on a data set, on the GPU or the CPU, whichever is there.

    Every seed of a critic is a run in OUT/TASK/CRITIC/seed-N. Killed at any moment, the same
    command goes on where it stopped and ends with the same bits. Finished runs are left alone;
    invalid ones are repeated with the same seed. With more --steps, finished runs go on from
    where they ended.
    """

    def run(self) -> int:
        """Train, draw the curves, and list the runs; the exit code is 1 if one is invalid."""
        if self.by_jobs():
            return 0
        seeds, configs = self._seeds(), self.chosen()
        from toptail.commands.train_progress import progress
        from toptail.lab.tasks.files import load
        from toptail.lab.training.config import keep_compiled
        from toptail.lab.training.reports import require_trackers, tracking
        from toptail.lab.training.session import train_runs
        from toptail.lab.training.task_data import TaskData

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
        """One piece per critic: all of its seeds."""
        from toptail.lab.scorers.training import TrainingJob

        seeds, every, line = self._seeds(), self._checkpoint_every(), command_line()
        trainings = [TrainingJob(config, seeds, self.out) for config in self.chosen()]
        return [training.piece(self.task, every, line) for training in trainings]

    def _seeds(self) -> tuple[int, ...]:
        seeds = numbers("--seeds", self.seeds or ("42,43,44",), int)
        require_seeds(seeds)
        check_whole("checkpoint_every", self._checkpoint_every(), 1)
        return tuple(seeds)

    def chosen(self) -> list[LearnerConfig]:
        """One configuration per critic that was named, and one of the behaviour model if it was."""
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
        labels = self._with_temperatures(critics)
        configs: list[LearnerConfig] = [*self.configs(task, labels)] if labels else []
        if BEHAVIOUR in named:
            configs.append(self._behaviour_model(task, alone=not critics))
        return configs

    def _with_temperatures(self, critics: Sequence[str]) -> list[str]:
        """The critics, those with a temperature once for each that was listed."""
        from toptail.lab.critics.full import full_size, setting_names

        if not self.temperatures:
            return list(critics)
        listed = numbers("--temperatures", self.temperatures, float)
        found: list[str] = []
        for label in critics:
            critic, own = split_label(label)
            has = "temperature" in setting_names(full_size(critic)) and "temperature" not in own
            each = [label_of(critic, {**own, "temperature": value}) for value in listed]
            found += each if has else [label]
        if self.temperature is not None or found == list(critics):
            raise InputError(
                f"{option('temperatures')} has no effect beside {option('temperature')} or on "
                f"{', '.join(critics)}: leave it out."
            )
        return found

    def _behaviour_model(self, task: str, *, alone: bool) -> LearnerConfig:
        """The behaviour model's configuration; of the critics' settings it has the layers."""
        from toptail.lab.proposals.diffusion import DiffusionRun

        shared = self.how()
        own = {name: x for name, x in self.settings().items() if name == "hidden" or alone}
        if alone and self.gamma is not None:
            shared["gamma"] = self.gamma
        run = DiffusionRun(task, BEHAVIOUR, self.steps, settings=tuple(own.items()), **shared)
        run.build()
        return run

    def _checkpoint_every(self) -> int:
        from toptail.lab.training.config import checkpoint_every

        return checkpoint_every() if self.checkpoint_every is None else self.checkpoint_every


def _finish(runs: Sequence[Run]) -> int:
    """Draw what is not drawn yet, and say how every run stands."""
    from toptail.commands.runs import print_runs, standing
    from toptail.lab.training.reports import save_training_figure
    from toptail.lab.training.run_files import METRICS, read_lines

    for run in runs:
        if not (run.folder / "curves.png").is_file():
            title = f"{run.config['task']} · {run.folder.parent.name} · {run.folder.name}"
            save_training_figure(read_lines(run.folder / METRICS), title, run.folder)
    print_runs(runs)
    return 0 if all(standing(run)[0] == "finished" for run in runs) else 1
