"""How every command runs a study: with its progress, and with what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toptail.commands.options import command_line
from toptail.commands.progress import progress_bar
from toptail.commands.terminal import print_table, say
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail_paper.study.study import Annotate, Study


def run_study(study: Study, request: Any, *, tables: bool = True, **how: Any) -> Path:
    """Make what a request asks for, and its page if ``tables`` are asked for, too.

    Returns the path of ``report.html``, or of the folder where no page was asked for.
    """
    from toptail_paper.claims.published import require_own

    require_own(request.folder, copied=True)
    with progress_bar() as tick:
        if tables:
            path, told = study.run(request, tick, _paper(study), **how)
        else:
            path, told = request.folder, list(study.steps(request, tick))
    for sentence in told:
        say(sentence)
    return path


def make_runs(train: Callable[..., object], *what: object) -> None:
    """Train what a study lacks, with the progress of 'toptail train'."""
    from toptail.commands.train_progress import progress

    with progress() as watch:
        train(*what, watch)


def check_runs(runs: Path | None, *, train: bool) -> None:
    """Refuse to train without a place to put the runs."""
    if train and runs is None:
        raise InputError("--train needs --runs: the folder that the trained runs go to.")


def finish_study(study: Study, folder: Path, **how: Any) -> Path:
    """Make tables, claims and page of what is stored; returns the page's path."""
    with progress_bar() as tick:
        return study.finish(folder, tick, _paper(study), **how)


def _paper(study: Study) -> Annotate | None:
    """What adds the paper's cells and its ledger; None for a study that the paper does not have."""
    from toptail_paper.claims import CLAIMS, annotate

    return annotate if study.name in CLAIMS else None


def tables_job(command: Any, folder: Path, needed: Sequence[Job]) -> Job:
    """What is left of a study's command once these pieces are done, as its last piece."""
    from toptail.jobs.job import Job

    return Job(
        name=f"tables of {folder}",
        content={"needs": [job.id for job in needed]},
        home=folder,
        outputs=[folder / "report.html"],
        work=lambda: command.work(command_line()),
        needs=[job.id for job in needed],
        last=True,
    )


def print_outcome(
    study: Study, folder: Path, report: Path, names: Iterable[str] = (), lines: Iterable[str] = ()
) -> None:
    """Print some tables of a study and some lines, and where the others and the page are."""
    for table in study.tables(folder, names):
        print_table(table)
    for line in lines:
        say(line)
    say(f"Tables: {folder / 'tables'}\nReport: {report}")
