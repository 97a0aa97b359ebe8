"""The semantics study: its request, its steps, and what its page shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toptail.progress import Tick
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.figures import drawings
from toptail_paper.semantics.page import texts
from toptail_paper.semantics.results import config_in, read_semantics
from toptail_paper.semantics.specs import CONTENT, PARTS
from toptail_paper.study.store import RunFolder, alone
from toptail_paper.study.study import Request, Study


@dataclass(frozen=True)
class SemanticsRequest(Request):
    """One call of the semantics study."""

    config: SemanticsConfig
    ideals: bool = False
    """Whether the ideal critics are scored, too, on the tasks where they are known."""


def make_missing(request: SemanticsRequest, tick: Tick) -> list[str]:
    """Draw and score what is not stored; the folder keeps the tasks that it holds already."""
    from toptail_paper.semantics.scoring import score_tasks

    config, run = request.config, RunFolder(request.folder, study="semantics")
    with alone(request.folder, tick):
        stored = config_in(request.folder)
        before = () if stored is None else stored.tasks
        whole = replace(config, tasks=tuple(dict.fromkeys((*before, *config.tasks))))
        with run.recording(whole.described(), list(config.seeds), request.command):
            score_tasks(config, run, request.runs, request.scorers, tick, ideals=request.ideals)
    return []


def write(folder: Path, tick: Tick, **how: Any) -> list[str]:
    """Write tables and curves; see `toptail_paper.semantics.write.write_results`."""
    # Slow to import, and not needed for help.
    from toptail_paper.semantics.write import write_results

    return write_results(folder, tick, **how)


STUDY = Study(
    name="semantics",
    steps=make_missing,
    write=write,
    parts=PARTS,
    content=CONTENT,
    read=read_semantics,
    drawings=drawings,
    texts=texts,
)
