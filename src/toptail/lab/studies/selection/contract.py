"""The selection study as all studies are described."""

from __future__ import annotations

from toptail.lab.studies.selection.config import SelectionConfig
from toptail.lab.studies.selection.figures import drawings
from toptail.lab.studies.selection.page import texts
from toptail.lab.studies.selection.results import read_selection_results
from toptail.lab.studies.selection.specs import CONTENT, PARTS
from toptail.lab.studies.selection.steps import make_missing, write
from toptail.lab.studies.study import Study

STUDY = Study(
    name="selection",
    where="at fixed queries",
    config=SelectionConfig,
    steps=make_missing,
    write=write,
    parts=PARTS,
    content=CONTENT,
    read=read_selection_results,
    drawings=drawings,
    texts=texts,
)
