"""The semantics study as all studies are described."""

from __future__ import annotations

from toptail.lab.studies.semantics.config import SemanticsConfig
from toptail.lab.studies.semantics.figures import drawings
from toptail.lab.studies.semantics.page import texts
from toptail.lab.studies.semantics.results import read_semantics
from toptail.lab.studies.semantics.specs import CONTENT, PARTS
from toptail.lab.studies.semantics.steps import make_missing, write
from toptail.lab.studies.study import Study

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
)
