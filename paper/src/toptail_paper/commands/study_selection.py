"""``toptail-paper study selection``: frozen queries, cached candidates, independent judges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

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
from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.lab.tasks.queries import group_bounds
from toptail_paper.commands.run_study import (
    check_training,
    finish_study,
    make_runs,
    print_outcome,
    run_study,
    tables_job,
)
from toptail_paper.commands.settings import DeploymentSize, TrainingSize, flags_of, with_given
from toptail_paper.selection.config import EXPERT_STAGE, IDEALS_STAGE, STAGES, SelectionConfig
from toptail_paper.selection.study import STUDY, SelectionRequest, UserInputs
from toptail_paper.study.main_settings import load_task
from toptail_paper.study.naming import data_set

TABLES: Final = "tables"
"""The last stage: audits, tables, claims and the page, from the files of the others."""
_QUERIES: Final = 8
"""Queries of each distance group whose rollouts are one job."""

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.tasks.trajectories import Trajectories
    from toptail_paper.study.training import TrainingSettings

    Settings = Any
else:
    Settings = flags_of(
        SelectionConfig("task"),
        ("seeds",),
        reference_seeds="reference.seeds",
        per_group="queries.per_group",
        pool_count="pools.count",
        pool_size="pools.size",
        rollout_queries="rollouts.per_group",
        rollout_repeats="rollouts.repeats",
        rollout_steps="rollouts.horizon",
    )


@dataclass(frozen=True)
class StudySelection(JobFlags):
    """Let critics pick among the same candidates, and let independent judges value the picks.

      toptail-paper study selection --task PointMaze --runs runs --train

    The stages are queries, pools, reference, exact, exact_continuous, euclidean, scores, rollouts
    and tables. Each leaves a file in OUT/TASK; one that exists and fits is not made again, and you
    may put your own in its place. The criteria are declared before anything is scored. Three stages
    are made only where asked for: deployment, which trains actors and follows critics at every
    step; ideals, which scores by PointMaze's ideal critics; and rollouts_expert, rollouts of the
    same picks that are continued by the policy which collected the data, without noise, in place
    of the behaviour model. To judge a critic in an
    environment or by a judge of your own, use 'toptail check'.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """A data set: an OGBench name, one of the paper's names, or the path of a training file."""
    runs: Path | None = None
    """Folder of trained runs, as 'toptail train' writes it: RUNS/TASK/CRITIC/seed-N."""
    out: Annotated[Path, OUTPUT] = Path("runs/selection")
    """Folder of the study; the task's files go to OUT/TASK."""
    declare: Annotated[bool, DECIDE] = False
    """Freeze the queries, write the criteria to OUT/TASK/declared.json, and stop; as long as
    nothing is scored, they can be declared anew."""
    stage: Annotated[Names, DECIDE] = ()
    """Only these stages; all but deployment, ideals and rollouts_expert unless
    given."""
    deployed: Annotated[Names, DECIDE] = ()
    """Also the stage deployment, of these critics; with --stage deployment the paper's four unless
    given."""
    scorer: Annotated[Words, tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION")] = ()
    """A scorer of your own: a function of states, actions and goals, or one that returns such a
    function; or a checkpoint, ogbench:PATH or d3rlpy:PATH; may be repeated."""
    pools: Annotated[Path | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Candidates of your own in place of the behaviour model's: 'actions' [Q, P, N, a]."""
    train: Annotated[bool, DECIDE] = False
    """First train what is missing in RUNS: critics, reference ensemble, behaviour model."""
    critics: Annotated[Names, DECIDE] = ()
    """With --train: which critics, beside the reference ensemble and the behaviour model; all of
    the paper's and its controls unless given."""
    size: Annotated[TrainingSize, SCALE] = field(default_factory=TrainingSize)
    """How large what is trained is."""
    deployment: Annotated[DeploymentSize, SCALE] = field(default_factory=DeploymentSize)
    """How much the stage deployment does."""
    settings: Annotated[Settings, SCALE] = field(default_factory=Settings)
    """What is frozen, judged and audited."""

    def run(self) -> int:
        if self.declare:
            say(f"Declared: {self.declared()}")
            return 0
        if self.by_jobs():
            return 0
        report, folder = self.work(command_line()), self.out / self._name()
        if report == folder:
            say(f"Stages: {folder}")
        else:
            print_outcome(STUDY, folder, report, ("fixed-query", "function-class"))
        return 0

    def jobs(self) -> list[Job]:
        """With --train one job per critic, then one per stage, and last the tables."""
        need_training("study selection")
        critics = check_training(self.runs, self.critics, train=self.train)
        folder = self.out / self._name()
        done: list[Job] = []
        if self.train and self.runs is not None:
            from toptail_paper.selection.run import selection_jobs
            from toptail_paper.study.training import training_jobs

            config = self.config(folder.name)
            jobs_of = partial(selection_jobs, config, self._training(), self.runs, critics)
            done = training_jobs((self.task,), jobs_of, command_line())
        alone = replace(self, train=False, critics=())
        for stage in self.stages():
            if stage == EXPERT_STAGE or (stage == "rollouts" and self.runs is not None):
                done += self._rollout_jobs(stage, folder, done)
            if stage != TABLES:
                work = partial(replace(alone, stage=(stage,)).work, command_line())
                done = [*done, self._job(f"{stage} of {folder}", work, done)]
        last = replace(alone, stage=(TABLES,))
        return [*done, *([tables_job(last, folder, done)] if TABLES in self.stages() else ())]

    def _job(self, name: str, work: Any, needed: Sequence[Job]) -> Job:
        from toptail.jobs.job import Job

        folder, needs = self.out / self._name(), [job.id for job in needed]
        settings = json.loads(json.dumps([self.config(folder.name), self.scorer], default=vars))
        content = {"settings": settings, "needs": needs}
        return Job(name, content, home=folder, outputs=[folder], work=work, needs=needs)

    def _rollout_jobs(self, stage: str, folder: Path, needed: Sequence[Job]) -> list[Job]:
        """Jobs of what the rollouts begin with; the stage adds what its power asks for."""
        config = self.config(folder.name)
        parts = -(-min(config.rollouts.per_group, config.queries.per_group) // _QUERIES)
        names_of = [f"{stage} {part + 1} of {parts} of {folder}" for part in range(parts)]
        return [
            self._job(name, partial(self._roll_out, stage, part, parts), needed)
            for part, name in enumerate(names_of)
        ]

    def _roll_out(self, stage: str, part: int, parts: int) -> None:
        from toptail_paper.selection.run import Stages
        from toptail_paper.selection.stages import Selection

        task = load_task(self.task)
        study = Selection.at(self.out, self.config(task.name, task.data.val), self.runs)
        Stages(study, task.data, UserInputs(self.pools)).roll_out(stage, part, parts)

    def declared(self) -> Path:
        """Freeze the queries and declare the criteria; returns the declaration's path."""
        need_training("study selection")
        from toptail_paper.selection.stages import Selection, make_queries

        task = load_task(self.task)
        study = Selection.at(self.out, self.config(task.name, task.data.val))
        make_queries(study, task.data.val, anew=True)
        return study.folder.declared

    def work(self, command: str) -> Path:
        """Run the stages; returns the page's path if it was made, and else the task's folder."""
        stages = self.stages()
        critics = check_training(self.runs, self.critics, train=self.train)
        making = [stage for stage in stages if stage != TABLES]
        if not making:
            return finish_study(STUDY, self.out / self._name())
        need_training("study selection")
        from toptail_paper.selection.run import train_selection

        task = load_task(self.task)
        config = self.config(task.name, task.data.val)
        if self.train:
            how = config, self._training(), self.runs, critics
            make_runs(train_selection, self.task, *how, command)
        request = SelectionRequest(
            config=config,
            folder=self.out / task.name,
            command=command,
            runs=self.runs,
            dataset=task.data,
            stages=making,
            inputs=UserInputs(self.pools, self.scorer),
            deployed=names(self.deployed),
            deployment=self.deployment.changes(self.size),
        )
        return run_study(STUDY, request, tables=TABLES in stages)

    def stages(self) -> list[str]:
        known = (*STAGES, IDEALS_STAGE, EXPERT_STAGE, TABLES)
        wanted = names(self.stage)
        for stage in wanted:
            if stage not in known:
                raise InputError(f"There is no stage '{stage}': they are {', '.join(known)}.")
        on_demand = {IDEALS_STAGE, EXPERT_STAGE, *(() if self.deployed else ("deployment",))}
        return [s for s in known if s in wanted or not (wanted or s in on_demand)]

    def config(self, task: str, val: Trajectories | None = None) -> SelectionConfig:
        """The task's settings with the given flags, and goals as far as trajectories reach."""
        more: dict[str, Any] = {} if val is None else {"queries": group_bounds(val)}
        if (size := self.settings.pool_size) is not None:
            more["ks"] = tuple(sorted({*(1 << i for i in range(size.bit_length())), size}))
        return with_given(SelectionConfig.for_task(task), self.settings, **more)

    def _name(self) -> str:
        """The task's name; its data is not needed where only tables are made."""
        path = Path(self.task)
        return path.stem if path.suffix == ".npz" else data_set(self.task)

    def _training(self) -> TrainingSettings:
        from toptail_paper.study.training import TrainingSettings

        return TrainingSettings(**self.size.changes())
