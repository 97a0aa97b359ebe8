"""``toptail-paper all``: collect, train, score, roll out and tabulate whole tasks.

Each job is one command of ``toptail`` or ``toptail-paper``, which goes on where it was stopped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import tyro

from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    JobFlags,
    Names,
    Words,
    names,
    need_training,
    own_words,
    parts,
)
from toptail.commands.terminal import say
from toptail.commands.train import BEHAVIOUR, HEAD
from toptail.errors import InputError, NotDoneError
from toptail.jobs.job import Resources
from toptail.lab.critics.registry import MAIN, label_of, split_label
from toptail.lab.critics.registry import names as critics_in
from toptail.lab.tasks.names import parse_name
from toptail_paper.commands.settings import SIZES, TrainingSize
from toptail_paper.study.main_settings import MAIN_SETTINGS, MainSettings, main_settings

if TYPE_CHECKING:
    from toptail.jobs.job import Job

CONTROLS: Final = {"pointmaze": critics_in("control")}
"""Families whose tables have the function-class controls."""

FIRST_STAGES: Final = "queries,pools,reference,exact,exact_continuous,euclidean,scores"
"""Stages of the selection study that need the main critics and the behaviour model."""

HEAD_BASE: Final = "raw"
"""The critic whose embeddings a value head reads."""

VALIDATION: Final = 100
"""Validation episodes, at least: a verdict resamples them, and with few of them there is none."""

CORES: Final = Resources(1.0, 0.0)
"""A job that uses all cores."""
ACCELERATOR: Final = Resources(0.0, 1.0)
"""A job that uses the accelerator."""


def judges_of(data: str) -> dict[str, tuple[int, ...]]:
    """What proposes and judges in a maze, with all seeds: behaviour models and TD-Q."""
    from toptail_paper.selection.config import SelectionConfig
    from toptail_paper.semantics.config import SemanticsConfig

    semantics, selection = SemanticsConfig((data,)), SelectionConfig.for_task(data)
    value = (*semantics.seeds, semantics.oracle_seed, *selection.reference.seeds)
    return {BEHAVIOUR: semantics.diffusion_seeds, "tdq": value}


def is_head(critic: str) -> bool:
    """Whether a critic is trained on the embeddings of another one."""
    return split_label(critic)[0] == HEAD


@dataclass(frozen=True, kw_only=True)
class TaskJobs(JobFlags):
    """What commands over whole tasks share: folders, time, and jobs that are commands."""

    out: Annotated[Path, OUTPUT]
    """Folder of what is made; runs and data are below it unless named."""
    task: Names = ()
    """The paper's tasks, such as AntMaze, at their main settings, or OGBench's data sets; all of
    them unless given."""
    runs: Path | None = None
    """Folder of the trained runs; OUT/runs unless given."""
    data: Path | None = None
    """Folder of the collected data sets; OUT/data unless given."""
    walkers: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the walkers that collect, DIR/BODY/actor.safetensors; the main settings' unless
    given."""
    steps: Annotated[int | None, SCALE] = None
    """Optimizer steps of every critic and behaviour model; the studies' own unless given."""
    set: Annotated[Words, SCALE, tyro.conf.arg(metavar="NAME=VALUE,...")] = ()
    """Sizes of every network that has them: batch_size, learning_rate, hidden (width), depth and
    embed_dim, as in hidden=128,batch_size=256."""
    episodes: Annotated[int | None, SCALE] = None
    """Training episodes that are collected; as many as in the published data set unless given."""
    minutes: Annotated[float | None, SCALE] = None
    """Stop after so many minutes; no limit unless given."""
    accelerator: Annotated[int, SCALE] = 2
    """Jobs that share the accelerator: while one compiles, another trains."""

    def run(self) -> int:
        need_training("all")
        if self.accelerator < 1 or (self.minutes is not None and not self.minutes > 0):
            raise InputError("--accelerator and --minutes must be more than 0.")
        if self.by_jobs() or self.ray is not None:
            return 0
        from toptail.jobs.executors import Processes

        jobs, words = self.jobs(), own_words()
        seconds = None if self.minutes is None else 60 * self.minutes
        room = Resources(1.0, self.accelerator)
        start = [sys.executable, "-m", "toptail_paper", *words, "--job"]
        executor = Processes(lambda job: [*start, job.id], room, seconds)
        executor.run(jobs, lambda stage, _share: say(stage))
        say(f"All {len(jobs)} jobs are done.")
        return 0

    def settings_of(self, task: str) -> MainSettings:
        """The settings of a task that can be collected here."""
        from toptail.lab.tasks.collect import Collection, check_collectable
        from toptail.lab.walkers.experts import expert_for

        settings = main_settings(task)
        walkers = self.walkers or settings.walkers
        guide = expert_for(parse_name(settings.data), walkers)
        check_collectable(Collection(settings.data, expert=guide))
        return replace(settings, walkers=walkers)

    @property
    def _runs(self) -> Path:
        return self.runs or self.out / "runs"

    @property
    def _data(self) -> Path:
        return self.data or self.out / "data"

    def _job(
        self,
        name: str,
        words: list[str],
        needs: list[str],
        outputs: list[Path],
        resources: Resources,
    ) -> Job:
        from toptail.jobs.job import Job

        return Job(
            name=name,
            content={"command": words},
            home=self.out,
            outputs=outputs,
            work=lambda: self._call(name, words, gently=resources.gpus == 0),
            needs=needs,
            resources=resources,
        )

    def _call(self, name: str, words: list[str], *, gently: bool) -> None:
        """Run a command; what does not train gives way to what does."""
        from toptail import cli
        from toptail_paper.cli import PAPER

        if gently:
            os.nice(10)
        os.environ["TOPTAIL_DATA"] = str(self._data.resolve())
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        program = PAPER if words[0] in PAPER.commands else cli.TOPTAIL
        sys.argv = [program.name, *words]  # records name the command line
        code = cli.main(words, program)
        if code:
            raise NotDoneError(f"{name} ended with code {code}.")

    def _collect(self, label: str, settings: MainSettings) -> Job:
        from toptail.lab.tasks.files import split_path

        file = self._data / f"{settings.data}.npz"
        words = ["data", "collect", settings.data, "--out", str(file)]
        if self.episodes is not None:
            words += ["--episodes", str(self.episodes)]
            words += ["--val-episodes", str(max(VALIDATION, self.episodes // 10))]
        if settings.walkers is not None:
            words += ["--walkers", str(settings.walkers)]
        both = [split_path(file, split) for split in ("train", "val")]
        return self._job(f"collect {label}", words, [], both, CORES)

    def _training(
        self, label: str, data: str, critic: str, seeds: tuple[int, ...], needs: list[str]
    ) -> Job:
        """All seeds of a critic; a value head reads the raw critic of the same seed."""
        from toptail.lab.training.runs import RECORD, run_folder

        words = ["train", "--task", data, "--out", str(self._runs), "--critics", critic]
        words += ["--seeds", ",".join(map(str, seeds)), "--steps", str(self._steps(data))]
        if sizes := self._sizes(critic):
            words += ["--set", ",".join(sizes)]
        if is_head(critic):
            words += ["--on", str(self._runs / data / HEAD_BASE)]
        home = self._runs / data / label_of(*split_label(critic))
        records = [run_folder(home, seed) / RECORD for seed in seeds]
        return self._job(f"train {label} {critic}", words, needs, records, ACCELERATOR)

    def _sizes(self, critic: str) -> list[str]:
        """What ``--set`` asks for and the critic has: not all have embeddings of their own."""
        from toptail.lab.critics.registry import full_size, setting_values

        TrainingSize(set=self.set).sizes()  # refuses what is no size
        own = {*SIZES} - {"embed_dim"}
        if critic != BEHAVIOUR and not is_head(critic):
            own |= {name for name, _ in setting_values(full_size(split_label(critic)[0]))}
        return [part for part in parts(self.set) if part.partition("=")[0] in own]

    def _steps(self, name: str) -> int:
        from toptail_paper.semantics.train import SemanticsTraining

        own = SemanticsTraining()
        usual = own.steps if parse_name(name).is_maze else own.play_steps
        return usual if self.steps is None else self.steps


@dataclass(frozen=True, kw_only=True)
class All(TaskJobs):
    """Run everything about whole tasks: data, critics, both studies on them.

      toptail-paper all --task PointMaze --out runs/pointmaze

    Training and scoring share the accelerator; collecting and rollouts use the cores meanwhile.
    Stopped at any moment, the same command goes on. Logs are in OUT/.jobs; the studies are in
    OUT/semantics and OUT/selection/TASK, and OUT/cells.md has every number beside the paper's.
    Without --task the controlled world is run, too.
    """

    also: Annotated[Names, DECIDE] = ()
    """Further critics on every task, such as tdq[reward=0/1], beside the main settings'."""
    no_two_heads: Annotated[bool, DECIDE] = False
    """Leave the two-head critics out."""
    no_deployment: Annotated[bool, DECIDE] = False
    """Leave actors and closed loops out."""

    def jobs(self) -> list[Job]:
        """The jobs of all tasks, in the order in which they start where they can."""
        found: list[Job] = []
        for task in dict.fromkeys(names(self.task) or MAIN_SETTINGS):
            settings = self.settings_of(task)
            # The tasks share the folder of the semantics study: one after another.
            shared = [job.id for job in found if job.name.startswith("semantics")][-1:]
            also = (*settings.also, *names(self.also))
            found += self._task(task, replace(settings, also=also), shared)
        if not names(self.task):
            folder = self.out / "controlled"
            words = ["study", "controlled", "--out", str(folder)]
            page = [folder / "report.html"]
            found.append(self._job("controlled world", words, [], page, CORES))
        # Every statement of the paper over all tasks, and every number beside the paper's.
        words, cells = ["ledger", "--out", str(self.out), "--cells"], [self.out / "cells.md"]
        needs = [job.id for job in found]
        return [*found, self._job("ledger", words, needs, cells, CORES)]

    def _task(self, label: str, settings: MainSettings, shared: list[str]) -> Iterator[Job]:
        """One task's jobs; its semantics wait for the jobs ``shared`` in the same folder."""
        name = settings.data
        task, collected = parse_name(name), self._collect(label, settings)
        yield collected

        trainings: dict[str, Job] = {}
        for critic, seeds in self._trainings(settings):
            below = [trainings[HEAD_BASE].id] if is_head(critic) else []
            needs = [collected.id, *below]
            trainings[critic] = self._training(label, name, critic, seeds, needs)
        first = [job for critic, job in trainings.items() if critic in (*MAIN, BEHAVIOUR)]
        every = [job.id for job in trainings.values()]
        yield from first
        if task.is_maze:
            yield from self._selection(label, settings, [job.id for job in first], every)
        yield from (job for job in trainings.values() if job not in first)
        folder = self.out / "semantics"
        words = ["study", "semantics", "--task", name, "--runs", str(self._runs)]
        files = [folder / "scores" / name / "draws.npz", folder / "report.html"]
        words += ["--out", str(folder)]
        yield self._job(f"semantics {label}", words, [*every, *shared], files, ACCELERATOR)

    def _trainings(self, settings: MainSettings) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Critics and behaviour model of a task with their seeds; first what others wait for."""
        from toptail_paper.semantics.config import SemanticsConfig

        name, also = settings.data, settings.also
        task = parse_name(name)
        seeds = SemanticsConfig((name,)).seeds
        if not task.is_maze:
            yield from ((critic, seeds) for critic in (*MAIN, *also))
            return
        yield from judges_of(name).items()
        yield from ((critic, seeds) for critic in reversed(MAIN) if critic != "tdq")
        if settings.two_heads and not self.no_two_heads:
            yield from ((critic, seeds) for critic in critics_in("two_head"))
        yield from ((critic, seeds) for critic in (*also, *CONTROLS.get(task.family, ())))

    def _selection(
        self, label: str, settings: MainSettings, first: list[str], every: list[str]
    ) -> Iterator[Job]:
        """The stages of the selection study, as early as what they need exists."""
        name = settings.data
        folder = self.out / "selection" / name
        study = ["study", "selection", "--task", name, "--runs", str(self._runs)]
        study += ["--rollout-queries", str(settings.rollout_queries)]
        study += ["--out", str(folder.parent), "--stage"]
        main = [folder / "scores" / f"{critic}@42.npz" for critic in MAIN]
        scored = self._job(f"selection {label}", [*study, FIRST_STAGES], first, main, ACCELERATOR)
        yield scored
        rollouts = [folder / "rollouts.npz"]
        rolled = self._job(f"rollouts {label}", [*study, "rollouts"], [scored.id], rollouts, CORES)
        yield rolled
        before = [scored.id, rolled.id]
        if settings.deployment and not self.no_deployment:
            files = [folder / "deployment" / f"{each}.json" for each in ("actors", "closed_loop")]
            words = [*study, "deployment"]
            deployed = self._job(f"deployment {label}", words, [scored.id], files, ACCELERATOR)
            yield deployed
            before.append(deployed.id)
        # Critics that were trained later are scored, and their picks rolled out.
        words = [*study, "scores,rollouts,tables"]
        report = [folder / "report.html"]
        yield self._job(f"tables of {label}", words, [*before, *every], report, CORES)
