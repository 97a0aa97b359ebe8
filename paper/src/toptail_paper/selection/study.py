"""The selection study: its request, its steps, and what its page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toptail.progress import Tick
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.figures import drawings
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.page import texts
from toptail_paper.selection.results import read_selection_results
from toptail_paper.selection.specs import CONTENT, PARTS
from toptail_paper.study.store import RunFolder
from toptail_paper.study.study import Request, Study

if TYPE_CHECKING:
    from toptail.lab.tasks.files import Dataset


@dataclass(frozen=True)
class UserInputs:
    """Candidates and scorers of a user's own."""

    pools: Path | None = None
    """An npz file with ``actions [Q, P, N, a]`` in place of the behaviour model's candidates."""
    scorers: tuple[str, ...] = ()
    """``[NAME=]FILE.py:FUNCTION``, a scorer each, beside the trained critics."""


@dataclass(frozen=True, kw_only=True)
class SelectionRequest(Request):
    """One call of the selection study, of one task."""

    config: SelectionConfig
    dataset: Dataset
    stages: Sequence[str]
    """The stages to be made, without the tables."""
    inputs: UserInputs = UserInputs()
    deployed: tuple[str, ...] = ()
    """Critics whose deployment is checked; the trained ones of the paper's four where empty."""
    deployment: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Settings of actors and episodes that are not the task's own: ``{"actor": {"steps": 9}}``."""


def make_missing(request: SelectionRequest, tick: Tick) -> list[str]:
    """Make the stages that are asked for; returns sentences about those that were left out."""
    from toptail_paper.selection.run import Stages
    from toptail_paper.selection.stages import Selection

    config, run = request.config, RunFolder(request.folder, study="selection")
    with (
        _forget_on_failure(SelectionFolder(request.folder)),
        run.recording(asdict(config), list(config.seeds), request.command),
    ):
        study = Selection.at(request.folder.parent, config, request.runs, tick)
        how = request.inputs, request.deployed, request.deployment
        return Stages(study, request.dataset, *how).run(request.stages)


@contextmanager
def _forget_on_failure(folder: SelectionFolder) -> Iterator[None]:
    """Remove the declaration of a call that fails before it has scored anything.

    Otherwise the settings of a mistaken call would bind the corrected one.
    """
    declared = folder.declared.is_file()
    try:
        yield
    except Exception:
        if not declared and not folder.scored():
            folder.forget()
        raise


def write(folder: Path, tick: Tick, **how: Any) -> list[str]:
    """Write tables and curves; see `toptail_paper.selection.write.write_results`."""
    # Slow to import, and not needed for help.
    from toptail_paper.selection.write import write_results

    return write_results(folder, tick, **how)


STUDY = Study(
    name="selection",
    steps=make_missing,
    write=write,
    parts=PARTS,
    content=CONTENT,
    read=read_selection_results,
    drawings=drawings,
    texts=texts,
)
