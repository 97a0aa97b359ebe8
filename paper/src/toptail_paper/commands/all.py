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
    names,
    need_training,
    own_words,
)
from toptail.commands.terminal import say
from toptail.commands.train import BEHAVIOUR
from toptail.errors import InputError, NotDoneError
from toptail.lab.critics.registry import MAIN, label_of, split_label
from toptail.lab.critics.registry import names as critics_in
from toptail.lab.tasks.names import parse_name
from toptail_paper.study.main_settings import MAIN_SETTINGS, MainSettings, main_settings

if TYPE_CHECKING:
    from toptail.jobs.job import Job

CONTROLS: Final = {"pointmaze": critics_in("control")}
"""Families whose tables have the function-class controls."""

FIRST_STAGES: Final = "queries,pools,reference,exact,exact_continuous,euclidean,scores"
"""Stages of the selection study that need the main critics and the behaviour model."""


@dataclass(frozen=True, kw_only=True)
class All(JobFlags):
    """Run everything about whole tasks: data, critics, both studies on them.

      toptail-paper all --task PointMaze --out runs/pointmaze

    Training and scoring share the accelerator; collecting and rollouts use the cores meanwhile.
    Stopped at any moment, the same command goes on. Logs are in OUT/.jobs.
    """

    out: Annotated[Path, OUTPUT]
    """Folder of the studies: OUT/semantics and OUT/selection/TASK."""
    task: Names = ()
    """The paper's tasks, such as AntMaze, at their main settings, or OGBench's data sets; all
    eight tasks unless given."""
    runs: Path | None = None
    """Folder of the trained runs; OUT/runs unless given."""
    data: Path | None = None
    """Folder of the collected data sets; OUT/data unless given."""
    walkers: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the walkers that collect, DIR/BODY/actor.safetensors; the main settings' unless
    given."""
    also: Annotated[Names, DECIDE] = ()
    """Further critics on every task, such as tdq[reward=0/1], beside the main settings'."""
    steps: Annotated[int | None, SCALE] = None
    """Optimizer steps of every critic and behaviour model; the studies' own unless given."""
    minutes: Annotated[float | None, SCALE] = None
    """Stop after so many minutes; no limit unless given."""
    accelerator: Annotated[int, SCALE] = 2
    """Jobs that share the accelerator: while one compiles, another trains."""
    no_two_heads: Annotated[bool, DECIDE] = False
    """Leave the two-head critics out."""
    no_deployment: Annotated[bool, DECIDE] = False
    """Leave actors and closed loops out."""

    def run(self) -> int:
        need_training("all")
        if self.accelerator < 1 or (self.minutes is not None and not self.minutes > 0):
            raise InputError("--accelerator and --minutes must be more than 0.")
        if self.by_jobs() or self.ray is not None:
            return 0
        from toptail.jobs.executors import Processes
        from toptail.jobs.job import Resources

        jobs, words = self.jobs(), own_words()
        seconds = None if self.minutes is None else 60 * self.minutes
        room = Resources(1.0, self.accelerator)
        start = [sys.executable, "-m", "toptail_paper", *words, "--job"]
        executor = Processes(lambda job: [*start, job.id], room, seconds)
        executor.run(jobs, lambda stage, _share: say(stage))
        say(f"All {len(jobs)} jobs are done.")
        return 0

    def jobs(self) -> list[Job]:
        """The jobs of all tasks, in the order in which they start where they can."""
        from toptail.lab.tasks.collect import Collection, check_collectable
        from toptail.lab.walkers.experts import expert_for

        found: list[Job] = []
        for task in dict.fromkeys(names(self.task) or MAIN_SETTINGS):
            settings = main_settings(task)
            walkers = self.walkers or settings.walkers
            guide = expert_for(parse_name(settings.data), walkers)
            check_collectable(Collection(settings.data, expert=guide))
            # The tasks share the folder of the semantics study: one after another.
            shared = [job.id for job in found if job.name.startswith("semantics")][-1:]
            also = (*settings.also, *names(self.also))
            found += self._task(task, replace(settings, walkers=walkers, also=also), shared)
        return found

    @property
    def _runs(self) -> Path:
        return self.runs or self.out / "runs"

    @property
    def _data(self) -> Path:
        return self.data or self.out / "data"

    def _job(
        self, name: str, words: list[str], needs: list[str], outputs: list[Path], *, gpu: bool
    ) -> Job:
        from toptail.jobs.job import Job, Resources

        return Job(
            name=name,
            content={"command": words},
            home=self.out,
            outputs=outputs,
            work=lambda: self._call(name, words),
            needs=needs,
            resources=Resources(0.0, 1.0) if gpu else Resources(),
        )

    def _call(self, name: str, words: list[str]) -> None:
        from toptail import cli
        from toptail_paper.cli import PAPER

        os.environ["TOPTAIL_DATA"] = str(self._data.resolve())
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        program = PAPER if words[0] == "study" else cli.TOPTAIL
        sys.argv = [program.name, *words]  # records name the command line
        code = cli.main(words, program)
        if code:
            raise NotDoneError(f"{name} ended with code {code}.")

    def _task(self, label: str, settings: MainSettings, shared: list[str]) -> Iterator[Job]:
        """One task's jobs; its semantics wait for the jobs ``shared`` in the same folder."""
        from toptail.lab.tasks.files import split_path
        from toptail.lab.training.runs import RECORD, run_folder

        name = settings.data
        task, file = parse_name(name), self._data / f"{name}.npz"
        words = ["data", "collect", name, "--out", str(file)]
        if settings.walkers is not None:
            words += ["--walkers", str(settings.walkers)]
        both = [split_path(file, split) for split in ("train", "val")]
        collected = self._job(f"collect {label}", words, [], both, gpu=False)
        yield collected

        trainings = {}
        for critic, seeds in self._trainings(settings):
            words = ["train", "--task", name, "--out", str(self._runs), "--critics", critic]
            words += ["--seeds", ",".join(map(str, seeds)), "--steps", str(self._steps(name))]
            home = self._runs / name / label_of(*split_label(critic))
            records = [run_folder(home, seed) / RECORD for seed in seeds]
            trainings[critic] = self._job(
                f"train {label} {critic}", words, [collected.id], records, gpu=True
            )
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
        yield self._job(f"semantics {label}", words, [*every, *shared], files, gpu=True)

    def _steps(self, name: str) -> int:
        from toptail_paper.semantics.train import SemanticsTraining

        own = SemanticsTraining()
        usual = own.steps if parse_name(name).is_maze else own.play_steps
        return usual if self.steps is None else self.steps

    def _trainings(self, settings: MainSettings) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Critics and behaviour model of a task with their seeds; first what others wait for."""
        from toptail_paper.selection.config import SelectionConfig
        from toptail_paper.semantics.config import SemanticsConfig

        name, also = settings.data, settings.also
        task = parse_name(name)
        semantics, selection = SemanticsConfig((name,)), SelectionConfig.for_task(name)
        seeds = semantics.seeds
        if not task.is_maze:
            yield from ((critic, seeds) for critic in (*MAIN, *also))
            return
        yield BEHAVIOUR, semantics.diffusion_seeds
        yield "tdq", (*seeds, semantics.oracle_seed, *selection.reference.seeds)
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
        scored = self._job(f"selection {label}", [*study, FIRST_STAGES], first, main, gpu=True)
        yield scored
        rollouts = [folder / "rollouts.npz"]
        rolled = self._job(
            f"rollouts {label}", [*study, "rollouts"], [scored.id], rollouts, gpu=False
        )
        yield rolled
        before = [scored.id, rolled.id]
        if settings.deployment and not self.no_deployment:
            files = [folder / "deployment" / f"{each}.json" for each in ("actors", "closed_loop")]
            words = [*study, "deployment"]
            deployed = self._job(f"deployment {label}", words, [scored.id], files, gpu=True)
            yield deployed
            before.append(deployed.id)
        # Critics that were trained later are scored, and their picks rolled out.
        words = [*study, "scores,rollouts,tables"]
        report = [folder / "report.html"]
        yield self._job(f"tables of {label}", words, [*before, *every], report, gpu=False)
