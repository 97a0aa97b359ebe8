"""What the commands of all studies share: progress, the paper's numbers, jobs, printed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toptail.commands.flags import command_line, names
from toptail.commands.terminal import print_table, progress_bar, say
from toptail.errors import InputError
from toptail.lab.critics.registry import CRITICS, split_label

if TYPE_CHECKING:
    from toptail.jobs.job import Job
    from toptail_paper.study.study import Annotate, Request, Study


def run_study(study: Study, request: Request, *, tables: bool = True, **how: Any) -> Path:
    """Make what a request asks for, and with ``tables`` also tables, ledger and page.

    Returns the path of ``report.html``, or of the folder where no page was asked for.
    """
    from toptail_paper.claims.published import require_own

    require_own(request.folder, copied=True)
    with progress_bar() as tick:
        if tables:
            path, sentences = study.run(request, tick, _paper(study), **how)
        else:
            path, sentences = request.folder, list(study.steps(request, tick))
    for sentence in sentences:
        say(sentence)
    return path


def finish_study(study: Study, folder: Path, **how: Any) -> Path:
    """Make tables, ledger and page of what is stored; returns the page's path."""
    from toptail_paper.claims.published import require_own

    require_own(folder, copied=True)
    with progress_bar() as tick:
        return study.finish(folder, tick, _paper(study), **how)


def _paper(study: Study) -> Annotate | None:
    """What adds the paper's cells and its ledger; None for a study that the paper does not have."""
    from toptail_paper.claims import CLAIMS, annotate

    return annotate if study.name in CLAIMS else None


def make_runs(train: Callable[..., object], *what: object) -> None:
    """Train the runs that a study lacks, with the progress of 'toptail train'."""
    from toptail.commands.train import progress

    with progress() as watch:
        train(*what, watch)


def check_training(runs: Path | None, critics: Sequence[str], *, train: bool) -> tuple[str, ...]:
    """The critics that ``--critics`` names; refuses flags that do not go together."""
    if train and runs is None:
        raise InputError("--train needs --runs: the folder that the trained runs go to.")
    named = names(critics)
    if named and not train:
        raise InputError("--critics says what --train trains: give --train, too.")
    for name in named:
        if split_label(name)[0] not in CRITICS:
            raise InputError(
                f"--critics: there is no critic '{name}'; the critics are "
                f"{', '.join(CRITICS)}, and --scorer takes one of your own."
            )
    return named


def tables_job(command: Any, folder: Path, needed: Sequence[Job]) -> Job:
    """What is left of a study's command once these jobs are done, as its last job."""
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
    study: Study, folder: Path, report: Path, tables: Iterable[str], lines: Iterable[str] = ()
) -> None:
    """Print some tables of a study and some lines, and where the others and the page are."""
    for table in study.tables(folder, tables):
        print_table(table)
    for line in lines:
        say(line)
    say(f"Tables: {folder / 'tables'}\nReport: {report}")
