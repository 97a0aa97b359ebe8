"""The semantics study as all studies are described."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from toptail.lab.studies.folder import RunFolder, alone
from toptail.lab.studies.kept import Keeping, Keepsake
from toptail.lab.studies.semantics.config import SemanticsConfig
from toptail.lab.studies.semantics.figures import drawings
from toptail.lab.studies.semantics.page import texts
from toptail.lab.studies.semantics.results import config_in, read_semantics
from toptail.lab.studies.semantics.specs import CONTENT, PARTS
from toptail.lab.studies.study import Request, Study
from toptail.progress import Tick


def make_missing(request: Request, tick: Tick) -> list[str]:
    """Draw and score what is not stored; the folder keeps the tasks that it holds already."""
    from toptail.lab.studies.semantics.scoring import score_tasks

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
    """Write tables and curves; see `toptail.lab.studies.semantics.finish.write_results`."""
    from toptail.lab.studies.semantics.finish import write_results  # much to import for a help text

    return write_results(folder, tick, **how)


def keeps(folder: Path, keeping: Keeping) -> Keepsake:
    """Say what ships; see `toptail.lab.studies.semantics.keep.keepsake`."""
    from toptail.lab.studies.semantics.keep import keepsake

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
