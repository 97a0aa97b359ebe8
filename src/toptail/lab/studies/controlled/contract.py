"""The controlled study as all studies are described."""

from __future__ import annotations

from toptail.lab.studies.controlled.config import StudyConfig
from toptail.lab.studies.controlled.figures import drawings
from toptail.lab.studies.controlled.page import texts
from toptail.lab.studies.controlled.results import read_controlled
from toptail.lab.studies.controlled.specs import CONTENT, PARTS
from toptail.lab.studies.study import Request, Study
from toptail.progress import Tick


def make_missing(request: Request, tick: Tick) -> list[str]:
    """Train what is missing, write the tables, and check the theory on a trained critic."""
    from toptail.lab.studies.controlled.run import run_controlled
    from toptail.lab.studies.controlled.theory.trained import write_theory

    run = run_controlled(request.config, request.folder, tick, request.command)
    tick("checking the theory", 1.0)
    write_theory(request.config, request.folder)
    return [f"Trained {run.made} critics, found {run.asked - run.made} finished."]


STUDY = Study(
    name="controlled",
    where="in the 2-D world",
    config=StudyConfig,
    steps=make_missing,
    write=None,
    parts=PARTS,
    content=CONTENT,
    read=read_controlled,
    drawings=drawings,
    texts=texts,
)
