"""``toptail-paper study selection``: frozen queries, cached candidates, independent judges."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import tyro

from toptail.commands.engine import JobFlags
from toptail.commands.lists import names
from toptail.commands.options import Flag, Words, command_line, flags_of, with_given
from toptail.commands.requirements import need_training
from toptail.commands.sizes import DeploymentSize, TrainingSize
from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.lab.tasks.queries import group_bounds
from toptail_paper.commands.studying import (
    check_runs,
    finish_study,
    make_runs,
    print_outcome,
    run_study,
    tables_job,
)
from toptail_paper.selection.config import IDEALS_STAGE, STAGES, SelectionConfig
from toptail_paper.selection.contract import STUDY
from toptail_paper.selection.specs import DEPLOYED
from toptail_paper.study.search_error import LABEL
from toptail_paper.study.study import Request

TABLES: Final = "tables"
"""The last stage: audits, tables, claims and the page, from the files of the others."""
_QUERIES: Final = 8
"""Queries of each distance group that are rolled out in one piece."""

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail.lab.scorers.training import TrainingSettings
    from toptail.lab.tasks.trajectories import Trajectories

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
    """Let critics pick among the same candidates, and let independent judges say what they got.

    Goes through the stages queries, pools, reference, exact, euclidean, scores, rollouts and
    tables. Each leaves a file in OUT/TASK; one that is there and fits is not made again, and you
    may bring your own in its place. The criteria are declared before anything is scored. Two
    stages are made only where asked for: deployment, which trains actors and follows critics at
    every step, and ideals, which scores by PointMaze's ideal critics.
    """

    task: Annotated[str, tyro.conf.arg(metavar="NAME|FILE")]
    """A data set: an OGBench name, one of the paper's names, or the path of a training file."""

    runs: Path | None = None
    """Folder of trained runs, as 'toptail train' writes it: RUNS/TASK/CRITIC/seed-N."""

    out: Path = Path("runs/selection")
    """Folder of the study; the task's files go to OUT/TASK."""

    declare: Flag = False
    """Freeze the queries, write the criteria to OUT/TASK/declared.json, and stop; as long as
    nothing is scored, they can be declared anew."""

    stage: Annotated[Words, tyro.conf.arg(metavar="A,B")] = ()
    """Only these stages, separated by commas; all but deployment and ideals, in order, unless
    given."""

    deployed: Annotated[Words, tyro.conf.arg(metavar="A,B")] = ()
    """Also the stage deployment, of these critics, separated by commas; with --stage deployment
    the paper's four unless given."""

    planned_rollouts: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """The simulator judges at most N candidates that a plan chooses for all critics, beside the
    exact or the reference value as a cheap judge, in place of what each critic picks."""

    scorer: Annotated[Words, tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION")] = ()
    """A scorer of your own: a function of states, actions and goals, or one that returns such a
    function; or a checkpoint, ogbench:PATH, d3rlpy:PATH or torchscript:PATH; may be repeated."""

    pools: Annotated[Path | None, tyro.conf.arg(metavar="FILE.npz")] = None
    """Candidates of your own in place of the behaviour model's: 'actions' [Q, P, N, a]."""

    judge: Annotated[Words, tyro.conf.arg(metavar="NAME=FILE.npz")] = ()
    """Values of a judge of your own: 'values' [members, Q, P, N + 1], the logged action last;
    may be repeated."""

    env: Annotated[str | None, tyro.conf.arg(metavar="FILE.py:make|gymnasium:ID|ogbench:NAME")] = (
        None
    )
    """An environment that goes to stored rows and says when a goal is reached: rollouts and
    deployment are made there, as 'toptail check' does; OGBench's mazes are there without it."""

    train: Flag = False
    """First train what is missing in RUNS: critics, reference ensemble, behaviour model."""

    size: TrainingSize = field(default_factory=TrainingSize)
    """How large what is trained is."""

    deployment: DeploymentSize = field(default_factory=DeploymentSize)
    """How much the stage deployment does."""

    settings: Settings = field(default_factory=Settings)
    """What is frozen, judged and audited."""

    @classmethod
    def for_label(
        cls, label: str, out: Path, runs: Path | None, task: Sequence[str], *, train: bool
    ) -> StudySelection:
        """What a table or figure of the paper needs, of one task."""
        if len(task) > 1:
            raise InputError(f"{label} is made for one task at a time; give one --task.")
        deployed = label in DEPLOYED
        needed = [stage for stage in STAGES if stage != "deployment" or deployed]
        needed += [IDEALS_STAGE] if label == LABEL else []
        stages = (*(needed if runs is not None else ()), TABLES)
        return cls(task[0] if task else "PointMaze", runs, out, train=train, stage=stages)

    def run(self) -> int:
        """Make what is missing and tabulate it; prints the main table and the report's path."""
        if self.declare:
            say(f"Declared: {self.declared()}")
            return 0
        if self.by_jobs():
            return 0
        folder, report = self.work(command_line())
        if report == folder:
            say(f"Stages: {folder}")
        else:
            print_outcome(STUDY, folder, report, ("fixed-query", "function-class"))
        return 0

    def jobs(self) -> list[Job]:
        """With --train one piece per critic, then one per stage, and last the tables."""
        need_training("study selection")
        check_runs(self.runs, train=self.train)
        from toptail.jobs.job import Job

        task, folder = self._name(), self.out / self._name()
        done: list[Job] = []
        if self.train and self.runs is not None:
            from toptail.lab.scorers.training import task_pieces
            from toptail_paper.selection.train import selection_jobs

            jobs_of = partial(selection_jobs, self.config(task), self._training(), self.runs)
            done = task_pieces((self.task,), jobs_of, command_line())
        alone = replace(self, train=False)
        own = [self.scorer, self.judge, *([self.env] if self.env else [])]
        asked = json.loads(json.dumps([self.config(task), *own], default=vars))
        for stage in self.stages():
            if stage == "rollouts" and self.planned_rollouts is None and self.runs is not None:
                done += self._rollout_jobs(folder, asked, [job.id for job in done])
            if stage != TABLES:
                job = Job(
                    name=f"{stage} of {folder}",
                    content={"asked": asked, "needs": [job.id for job in done]},
                    home=folder,
                    outputs=[folder],
                    work=partial(replace(alone, stage=(stage,)).work, command_line()),
                    inputs=[self.task, *([str(self.runs)] if self.runs else ())],
                    needs=[job.id for job in done],
                )
                done = [*done, job]
        last = replace(alone, stage=(TABLES,))
        return [*done, *([tables_job(last, folder, done)] if TABLES in self.stages() else ())]

    def _rollout_jobs(self, folder: Path, asked: Any, needs: Sequence[str]) -> list[Job]:
        """Pieces of what the rollouts begin with; the stage adds what its power asks for."""
        from toptail.jobs.job import Job

        config = self.config(folder.name)
        pieces = -(-min(config.rollouts.per_group, config.queries.per_group) // _QUERIES)
        return [
            Job(
                name=f"rollouts {piece + 1} of {pieces} of {folder}",
                content={"asked": asked, "needs": needs},
                home=folder,
                outputs=[folder],
                work=partial(self._roll_out, piece, pieces),
                inputs=[self.task, str(self.runs)],
                needs=needs,
            )
            for piece in range(pieces)
        ]

    def _roll_out(self, piece: int, pieces: int) -> None:
        from toptail.lab.tasks.files import TaskDataset
        from toptail_paper.selection.run import Brought, Stages
        from toptail_paper.selection.study import Selection

        task = TaskDataset.load(self.task)
        study = Selection.at(self.out, self.config(task.name, task.data.val), self.runs)
        Stages(study, task.data, Brought(self.pools, env=self.env)).roll_out(piece, pieces)

    def declared(self) -> Path:
        """Freeze the queries and declare the criteria; returns the declaration's path."""
        need_training("study selection")
        from toptail.lab.tasks.files import TaskDataset
        from toptail_paper.selection.stages import make_queries
        from toptail_paper.selection.study import Selection

        task = TaskDataset.load(self.task)
        study = Selection.at(self.out, self.config(task.name, task.data.val))
        make_queries(study, task.data.val, anew=True)
        return study.folder.declared

    def work(self, command: str) -> tuple[Path, Path]:
        """Do what was asked for; returns the task's folder, and the page's path if it was made."""
        stages = self.stages()
        check_runs(self.runs, train=self.train)
        making = [stage for stage in stages if stage != TABLES]
        if not making:
            folder = self.out / self._name()
            return folder, finish_study(STUDY, folder)
        need_training("study selection")
        from toptail.lab.tasks.files import TaskDataset

        task = TaskDataset.load(self.task)
        config, folder = self.config(task.name, task.data.val), self.out / task.name
        if self.train:
            self._train(config, command)
        more = {"dataset": task.data, "stages": making, "pools": self.pools, "judges": self.judge}
        more |= {"deployed": names(self.deployed), "planned": self.planned_rollouts}
        more |= {"deployment": self.deployment.given(self.size), "env": self.env}
        request = Request(config, folder, command, self.runs, self.scorer, more)
        return folder, run_study(STUDY, request, tables=TABLES in stages)

    def stages(self) -> list[str]:
        """The stages asked for, in their order."""
        known = (*STAGES, IDEALS_STAGE, TABLES)
        asked = names(self.stage)
        for stage in asked:
            if stage not in known:
                raise InputError(f"There is no stage '{stage}': they are {', '.join(known)}.")
        unasked = {IDEALS_STAGE, *(() if self.deployed else ("deployment",))}
        return [s for s in known if s in asked or not (asked or s in unasked)]

    def config(self, task: str, val: Trajectories | None = None) -> SelectionConfig:
        """The task's settings with what was asked for, and goals as far as trajectories reach."""
        more: dict[str, Any] = {} if val is None else {"queries": group_bounds(val)}
        if (size := self.settings.pool_size) is not None:
            more["ks"] = tuple(sorted({*(1 << i for i in range(size.bit_length())), size}))
        return with_given(SelectionConfig.for_task(task), self.settings, **more)

    def _name(self) -> str:
        """The task's name; its data is not needed where only tables are made."""
        from toptail.lab.tasks.names import SHORT_NAMES

        path = Path(self.task)
        return path.stem if path.suffix == ".npz" else SHORT_NAMES.get(self.task, self.task)

    def _train(self, config: SelectionConfig, command: str) -> None:
        """Train the reference ensemble, the critics and the behaviour model where missing."""
        from toptail_paper.selection.train import train_selection

        make_runs(train_selection, self.task, config, self._training(), self.runs, command)

    def _training(self) -> TrainingSettings:
        """How --train trains."""
        from toptail.lab.scorers.training import TrainingSettings

        return TrainingSettings(**self.size.given())
