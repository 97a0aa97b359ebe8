"""The controlled study: its steps, and what its page shows."""

from __future__ import annotations

from toptail.progress import Tick
from toptail_paper.controlled.figures import drawings
from toptail_paper.controlled.page import texts
from toptail_paper.controlled.results import read_controlled
from toptail_paper.controlled.specs import CONTENT, PARTS
from toptail_paper.study.study import Request, Study


def make_missing(request: Request, tick: Tick) -> list[str]:
    """Train what is missing, write the tables, and check the theory on a trained critic."""
    from toptail_paper.controlled.run import run_controlled
    from toptail_paper.controlled.theory.battery import write_theory

    run = run_controlled(request.config, request.folder, tick, request.command)
    tick("checking the theory", 1.0)
    write_theory(request.config, request.folder)
    return [f"Trained {run.made} critics; {run.asked - run.made} were finished already."]


STUDY = Study(
    name="controlled",
    steps=make_missing,
    write=None,
    parts=PARTS,
    content=CONTENT,
    read=read_controlled,
    drawings=drawings,
    texts=texts,
)
