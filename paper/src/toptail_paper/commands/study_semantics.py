"""``toptail-paper study semantics``: what a learned score means, on any task and for any critic."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail.commands.flags import (
    DECIDE,
    OUTPUT,
    SCALE,
    JobFlags,
    Names,
    Words,
    command_line,
    names,
    need_training,
)
from toptail.errors import InputError
from toptail_paper.commands.run_study import (
    check_training,
    finish_study,
    make_runs,
    print_outcome,
    run_study,
    tables_job,
)
from toptail_paper.commands.settings import TrainingSize, flags_of, with_given
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.page import memory_lines
from toptail_paper.semantics.results import config_in
from toptail_paper.semantics.study import STUDY, SemanticsRequest

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail_paper.semantics.train import SemanticsTraining

    Settings = Any
else:
    Settings = flags_of(
        SemanticsConfig(("task",)),
        ("seeds", "split", "triples", "negatives", "support_queries", "n_near", "resamples"),
    )


@dataclass(frozen=True)
class StudySemantics(JobFlags):
    """Measure on recorded triples (state, action, goal) what the score of a critic means.

      toptail-paper study semantics --task PointMaze --runs runs --train

    Scores every finished run of RUNS, stores the scores, and makes tables, figures, the paper's
    claims and a page of them. Stored scores and diagnostics are not computed again; without --runs
    and --scorer the command uses stored scores alone.
    """

    task: Annotated[Words, tyro.conf.arg(metavar="NAME|FILE")] = ()
    """A data set: an OGBench name, one of the paper's eight names, or the path of a training file;
    repeat it or separate several by commas."""
    runs: Path | None = None
    """Folder of trained runs, as 'toptail train' writes it: RUNS/TASK/CRITIC/seed-N."""
    out: Annotated[Path, OUTPUT] = Path("runs/semantics")
    """Folder of the study."""
    train: Annotated[bool, DECIDE] = False
    """First train what is missing in RUNS: critics, the independent value, behaviour models."""
    critics: Annotated[Names, DECIDE] = ()
    """With --train: which critics; the paper's four, on navigation data with the two-head variants,
    unless given."""
    temperature: Annotated[bool, DECIDE] = False
    """With --train: also train the temperature study of the cosine critic."""
    scorer: Annotated[Words, tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION")] = ()
    """A scorer of your own, one more row in every table: a function of states, actions and goals,
    or one that returns such a function; or a checkpoint, ogbench:PATH or
    d3rlpy:PATH; may be repeated."""
    ideals: Annotated[bool, DECIDE] = False
    """Also score by the ideal critics, which need no training, on PointMaze: takes minutes."""
    size: Annotated[TrainingSize, SCALE] = field(default_factory=TrainingSize)
    """How large what is trained is."""
    settings: Annotated[Settings, SCALE] = field(default_factory=Settings)
    """What is drawn and reported; the folder's own unless given."""
    workers: Annotated[int | None, SCALE] = None
    """Processes that compute the diagnostics; one per core unless given."""

    def run(self) -> int:
        if self.by_jobs():
            return 0
        report = self.work(command_line())
        lines = memory_lines(STUDY.read(self.out).tables.get("seen", {}))
        print_outcome(STUDY, self.out, report, ("main", "retrieval"), lines)
        return 0

    def jobs(self) -> list[Job]:
        """With --train one job per critic and task, and last the scores and tables."""
        self._check_flags()
        trainings: list[Job] = []
        if self.train and self.runs is not None:
            need_training("study semantics")
            from toptail_paper.semantics.train import semantics_jobs
            from toptail_paper.study.training import training_jobs

            config = self.config()
            jobs_of = partial(semantics_jobs, config, self.training(), self.runs)
            trainings = training_jobs(config.tasks, jobs_of, command_line())
        alone = replace(self, train=False, critics=())
        return [*trainings, tables_job(alone, self.out, trainings)]

    def work(self, command: str) -> Path:
        """Run the study; returns the page's path."""
        self._check_flags()
        if self.runs is None and not self.scorer and not self.ideals:
            self._check_stored()
            return finish_study(STUDY, self.out, workers=self.workers)
        need_training("study semantics")
        config = self.config()
        if self.train:
            from toptail_paper.semantics.train import train_semantics

            make_runs(train_semantics, config, self.training(), self.runs, command)
        request = SemanticsRequest(
            config, self.out, command, self.runs, self.scorer, ideals=self.ideals
        )
        return run_study(STUDY, request, workers=self.workers)

    def _check_flags(self) -> tuple[str, ...]:
        if self.temperature and not self.train:
            raise InputError(
                "--temperature trains the temperature study and needs --train; runs of it that "
                "exist are scored in any case."
            )
        return check_training(self.runs, self.critics, train=self.train)

    def training(self) -> SemanticsTraining:
        from toptail_paper.semantics.train import SemanticsTraining

        given: dict[str, Any] = {"sweep": self.temperature, **self.size.changes()}
        if self.size.steps is not None:
            given["play_steps"] = self.size.steps
        if critics := self._check_flags():
            given |= {"critics": critics, "play_critics": critics}
        return SemanticsTraining(**given)

    def config(self) -> SemanticsConfig:
        """What is scored: the folder's settings, where it has any, with the given flags."""
        stored = config_in(self.out)
        tasks = names(self.task) or (stored.tasks if stored is not None else ())
        if not tasks:
            raise InputError(
                f"--task is missing, and {self.out} holds no study yet: name a data set, as in "
                "--task PointMaze."
            )
        base = stored or SemanticsConfig(tasks)
        fewer = {}
        if self.settings.triples is not None and self.settings.support_queries is None:
            fewer["support_queries"] = min(self.settings.triples, base.support_queries)
        return with_given(base, self.settings, tasks=tasks, **fewer)

    def _check_stored(self) -> None:
        """Refuse tasks that were never scored, and other settings than the folder's."""
        from toptail.lab.training.runs import differences
        from toptail_paper.semantics.load import read_task

        for task in names(self.task):
            read_task(self.out, task)
        stored = config_in(self.out)
        if stored is None:
            return
        wanted = replace(self.config(), tasks=stored.tasks)
        changed = differences(stored.described(), wanted.described())
        if changed:
            raise InputError(
                f"{self.out} was made with other settings, {', '.join(changed)}: without --runs "
                "and --scorer it keeps its own; leave the flag out, or give --runs."
            )
