"""The controlled study as all studies are described."""

from __future__ import annotations

from toptail.lab.studies.controlled.config import StudyConfig
from toptail.lab.studies.controlled.figures import drawings
from toptail.lab.studies.controlled.page import texts
from toptail.lab.studies.controlled.results import read_controlled
from toptail.lab.studies.controlled.specs import CONTENT, PARTS
from toptail.lab.studies.controlled.steps import make_missing
from toptail.lab.studies.study import Study

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
