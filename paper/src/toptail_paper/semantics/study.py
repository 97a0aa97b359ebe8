"""The semantics study as all studies are described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from toptail.lab.store.folder import RunFolder, alone
from toptail.progress import Tick
from toptail_paper.semantics.config import SemanticsConfig
from toptail_paper.semantics.figures import drawings
from toptail_paper.semantics.page import texts
from toptail_paper.semantics.results import config_in, read_semantics
from toptail_paper.semantics.specs import CONTENT, PARTS
from toptail_paper.study.kept import Keeping, Keepsake
from toptail_paper.study.study import Request, Study


def make_missing(request: Request, tick: Tick) -> list[str]:
    """Draw and score what is not stored; the folder keeps the tasks that it holds already."""
    from toptail_paper.semantics.scoring import score_tasks

    config: SemanticsConfig = request.config
    run = RunFolder(request.folder)
    with alone(request.folder, tick):
        stored = config_in(request.folder)
        before = () if stored is None else stored.tasks
        whole = replace(config, tasks=tuple(dict.fromkeys((*before, *config.tasks))))
        with run.recording(whole.described(), list(config.seeds), request.command):
            ideals = bool(request.brought.get("ideals"))
            score_tasks(config, run, request.runs, tuple(request.scorers), tick, ideals=ideals)
    return []


def write(folder: Path, tick: Tick, **how: Any) -> list[str]:
    """Write tables and curves; see `toptail_paper.semantics.write.write_results`."""
    from toptail_paper.semantics.write import write_results  # much to import for a help text

    return write_results(folder, tick, **how)


def keeps(folder: Path, keeping: Keeping) -> Keepsake:
    """Say what ships; see `toptail_paper.semantics.keep.keepsake`."""
    from toptail_paper.semantics.keep import keepsake

    return keepsake(folder, keeping)


STUDY = Study(
    name="semantics",
    where="on recorded data",
    config=SemanticsConfig,
    steps=make_missing,
    write=write,
    parts=PARTS,
    content=CONTENT,
    read=read_semantics,
    drawings=drawings,
    texts=texts,
    keeps=keeps,
)
