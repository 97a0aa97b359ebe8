"""``toptail study semantics``: what a learned score means, on any task and for any critic."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import tyro

from toptail.commands.demo import need_training, print_table
from toptail.commands.lists import names, whole_numbers
from toptail.commands.progress import progress_bar
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.studies.semantics.config import SemanticsConfig
    from toptail.lab.studies.semantics.results import Semantics
    from toptail.lab.studies.semantics.train import SemanticsTraining

TABLES: Final = (
    *("tab:main", "tab:calibration-summary", "tab:retrieval", "tab:readout", "tab:bellman"),
    *("tab:ogbench-curse", "tab:robustness", "tab:value-oracle", "tab:value-oracle-diffusion"),
    "tab:twohead",
)
"""Tables of this part, by the paper's labels."""

SAME: Final = {"fig:ogbench-drift": "fig:ogbench-curse"}
"""Second labels that the paper has for one figure."""

FIGURES: Final = ("fig:calibration", "fig:good-rankers", "fig:ogbench-curse", *SAME)
"""Figures of this part, by the paper's labels."""

LABELS: Final = (*TABLES, *FIGURES)
"""Everything that `reproduce` knows."""

_Flag = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True)
class StudySemantics:
    """Ask critics about recorded triples what their score means.

    Scores every finished run that is there, stores the scores, and makes tables, figures, the
    paper's claims and a page of them. Scores that are stored are not computed again, nor are
    diagnostics of the same scores; without --runs and --critic the command works from stored
    scores alone.
    """

    task: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]], tyro.conf.arg(metavar="NAME|FILE")
    ] = ()
    """A data set: an OGBench name, one of the paper's eight names, or the path of a training file;
    repeat it or separate several by commas."""

    runs: Path | None = None
    """Folder of trained runs, as 'toptail train' writes it: RUNS/TASK/CRITIC/seed-N."""

    out: Path = Path("runs/semantics")
    """Folder of the study."""

    train: _Flag = False
    """First train what is missing in RUNS: critics, the independent value, behaviour models."""

    steps: int | None = None
    """With --train: optimizer steps of each critic; 100000 on navigation and 50000 on manipulation
    data unless given."""

    diffusion_steps: int | None = None
    """With --train: optimizer steps of the behaviour models; 100000 unless given, 0 for none."""

    critics: Annotated[str | None, tyro.conf.arg(metavar="A,B,...")] = None
    """With --train: which critics, separated by commas; the paper's four, on navigation data with
    the two-head variants, unless given."""

    temperature: _Flag = False
    """With --train: also train the temperature study of the cosine critic."""

    critic: Annotated[
        tyro.conf.UseAppendAction[tuple[str, ...]],
        tyro.conf.arg(metavar="[NAME=]FILE.py:FUNCTION"),
    ] = ()
    """A critic of your own, one more row in every table: a function of states, actions and goals,
    or one that returns such a function; may be repeated."""

    seeds: Annotated[str | None, tyro.conf.arg(metavar="N,N,...")] = None
    """Training seeds that are reported, separated by commas; 42,43,44 unless given."""

    split: Literal["val", "train"] | None = None
    """Split that the triples are drawn from; val unless given."""

    triples: int | None = None
    """Triples per task; 3000 unless given."""

    negatives: int | None = None
    """Goals of other trajectories beside each true one; 49 unless given."""

    support_queries: int | None = None
    """Triples that get pools of near and random actions; 500, or all of fewer, unless given."""

    n_near: Annotated[str | None, tyro.conf.arg(metavar="N,N,...")] = None
    """How many nearest states count as near, separated by commas; 50,200,800 unless given."""

    resamples: int | None = None
    """Bootstrap resamples behind each interval; 1000 unless given."""

    workers: int | None = None
    """Processes that compute the diagnostics; one per core unless given."""

    def run(self) -> int:
        """Train and score what is missing, then make everything of the stored scores."""
        from toptail.lab.studies.semantics.results import read_semantics
        from toptail.lab.studies.semantics.seen_figure import seen_lines

        report = self.work(shlex.join(["toptail", *sys.argv[1:]]))
        study = read_semantics(self.out)
        _print_tables(study, ("main", "retrieval"))
        for line in seen_lines(study.tables.get("seen", {})):
            print(line)
        print(f"Tables: {self.out / 'tables'}\nReport: {report}")
        return 0

    def work(self, command: str) -> Path:
        """Do what was asked for; returns the path of the report page."""
        if self.runs is None and (self.train or self.temperature):
            raise InputError("--train needs --runs: the folder that the trained runs go to.")
        if self.temperature and not self.train:
            raise InputError(
                "--temperature trains the temperature study and needs --train; runs of it that "
                "are there are scored in any case."
            )
        from toptail.lab.studies.semantics.finish import finish_semantics

        if self.runs is None and not self.critic:
            self._check_stored()
        else:
            self._score(command)
        with progress_bar() as tick:
            return finish_semantics(self.out, tick, self.workers)

    def _score(self, command: str) -> None:
        """Train what is missing, if asked to, and score what is not stored."""
        need_training("study semantics")
        from toptail.commands.train_progress import progress
        from toptail.lab.studies.folder import RunFolder
        from toptail.lab.studies.semantics.scoring import score_tasks
        from toptail.lab.studies.semantics.train import train_semantics

        config = self.config()
        if self.train and self.runs is not None:
            with progress() as watch:
                train_semantics(config, self.training(), self.runs, command, watch)
        folder = RunFolder(self.out)
        with (
            progress_bar() as tick,
            folder.recording(self.recorded(config), list(config.seeds), command),
        ):
            score_tasks(config, folder, self.runs, self.critic, tick)

    def training(self) -> SemanticsTraining:
        """What --train trains."""
        from toptail.lab.critics.full import FULL_SIZE
        from toptail.lab.studies.semantics.train import SemanticsTraining

        given: dict[str, Any] = {"sweep": self.temperature}
        if self.steps is not None:
            given |= {"steps": self.steps, "play_steps": self.steps}
        if self.diffusion_steps is not None:
            given["diffusion_steps"] = self.diffusion_steps
        if self.critics is not None:
            wanted = names([self.critics])
            for name in wanted:
                if name not in FULL_SIZE:
                    raise InputError(
                        f"--critics: there is no critic '{name}'; the critics are "
                        f"{', '.join(FULL_SIZE)}, and --critic takes one of your own."
                    )
            given |= {"critics": wanted, "play_critics": wanted}
        return SemanticsTraining(**given)

    def config(self) -> SemanticsConfig:
        """What is scored: the folder's settings, where it has any, with what was asked for."""
        from toptail.lab.studies.semantics.config import SemanticsConfig

        stored = self._stored()
        tasks = names(self.task) or (stored.tasks if stored is not None else ())
        if not tasks:
            raise InputError(
                f"--task is missing, and {self.out} holds no study yet: name a data set, as in "
                "--task PointMaze."
            )
        given = {
            "seeds": None if self.seeds is None else whole_numbers("--seeds", self.seeds),
            "n_near": None if self.n_near is None else whole_numbers("--n-near", self.n_near),
            **{name: getattr(self, name) for name in ("split", "triples", "negatives")},
            **{name: getattr(self, name) for name in ("support_queries", "resamples")},
        }
        base = SemanticsConfig(tasks=tasks) if stored is None else replace(stored, tasks=tasks)
        if self.triples is not None and self.support_queries is None:
            given["support_queries"] = min(self.triples, base.support_queries)
        return replace(base, **{name: x for name, x in given.items() if x is not None})

    def recorded(self, config: SemanticsConfig) -> dict[str, Any]:
        """The configuration for the folder, with the tasks that it holds already."""
        stored = self._stored()
        before = () if stored is None else stored.tasks
        return replace(config, tasks=tuple(dict.fromkeys((*before, *config.tasks)))).described()

    def _stored(self) -> SemanticsConfig | None:
        from toptail.lab.studies.semantics.finish import stored_config

        return stored_config(self.out) if (self.out / "config.json").is_file() else None

    def _check_stored(self) -> None:
        """Refuse tasks that were never scored, and other settings than the folder's."""
        from toptail.lab.studies.semantics.load import read_task
        from toptail.lab.training.records import differences

        for task in names(self.task):
            read_task(self.out, task)
        stored = self._stored()
        if stored is None:
            return
        asked = replace(self.config(), tasks=stored.tasks)
        changed = differences(stored.described(), asked.described())
        if changed:
            raise InputError(
                f"{self.out} was made with other settings, {', '.join(changed)}: without --runs "
                "and --critic it keeps its own; leave the flag out, or give --runs."
            )


def reproduce(
    label: str,
    out: Path = Path("runs/semantics"),
    runs: Path | None = None,
    task: Sequence[str] = (),
    *,
    train: bool = False,
) -> Path:
    """Make one table or figure of the paper and show it.

    Parameters
    ----------
    label
        One of `LABELS`.
    out
        Folder of the study; scores that are stored there are not computed again.
    runs
        Folder of trained runs; None works from stored scores alone.
    task
        Data sets; those of the folder unless given.
    train
        First train what is missing in ``runs``.

    Returns
    -------
    The path of the report page.
    """
    if label not in LABELS:
        raise InputError(f"'{label}' is not a label of the paper known here: {', '.join(LABELS)}.")
    study = StudySemantics(task=tuple(task), out=out, runs=runs, train=train)
    flags = [*(f"--task={name}" for name in task), *([f"--runs={runs}"] if runs else [])]
    flags += ["--train"] if train else []
    report = study.work(shlex.join(["toptail", "reproduce", label, f"--out={out}", *flags]))
    if label in TABLES:
        from toptail.lab.studies.semantics.results import read_semantics

        if not _print_tables(read_semantics(out), [label.removeprefix("tab:")]):
            raise InputError(
                f"{out} has no scores for {label}; score the critics and behaviour models that it "
                "needs with 'toptail study semantics --runs RUNS --train'."
            )
    else:
        _print_figure(out, label)
    print(f"Report: {report}")
    return report


def _print_tables(study: Semantics, names: Sequence[str]) -> bool:
    """Print the stored tables of these names; whether there was any."""
    from toptail.lab.studies.semantics.show import show

    found = [name for name in names if study.rows(name)]
    for name in found:
        print_table(show(name, study.tables[name]))
    return bool(found)


def _print_figure(out: Path, label: str) -> None:
    """Say where a figure's files are."""
    from toptail.lab.studies.semantics.figures import drawings
    from toptail.lab.studies.semantics.results import read_semantics

    for drawing in drawings(read_semantics(out)):
        if drawing.label == SAME.get(label, label):
            print(f"Figure: {out / 'figures' / drawing.name}.svg and .png")
            return
    raise InputError(
        f"{out} has no scores for {label}, which needs a navigation task; score one with "
        "'toptail study semantics --task PointMaze --runs RUNS'."
    )
