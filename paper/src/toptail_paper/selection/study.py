"""The selection study as all studies are described."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toptail.lab.store.folder import RunFolder
from toptail.progress import Tick
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.figures import drawings
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.page import texts
from toptail_paper.selection.results import read_selection_results
from toptail_paper.selection.specs import CONTENT, PARTS
from toptail_paper.study.kept import Keeping, Keepsake
from toptail_paper.study.study import Request, Study


def make_missing(request: Request, tick: Tick) -> list[str]:
    """Make the stages that are asked for; returns sentences about those that were left out.

    ``brought`` holds the ``dataset``, the ``stages``, the user's own ``pools`` and ``judges``, the
    critics to be ``deployed``, where not all are, what is not the default in ``deployment``, how
    many rollouts are ``planned``, if any, and the ``env`` to simulate in.
    """
    from toptail_paper.selection.run import Brought, Stages
    from toptail_paper.selection.stages import Selection

    config, more, run = request.config, request.brought, RunFolder(request.folder)
    scorers = tuple(request.scorers)
    brought = Brought(more["pools"], tuple(more["judges"]), scorers, more.get("env"))
    with (
        _nothing_left(SelectionFolder(request.folder)),
        run.recording(asdict(config), list(config.seeds), request.command),
    ):
        study = Selection.at(request.folder.parent, config, request.runs, tick)
        deployed = tuple(more.get("deployed", ()))
        size, planned = more.get("deployment", {}), more.get("planned")
        stages = Stages(study, more["dataset"], brought, deployed, size, planned)
        return stages.run(more["stages"])


@contextmanager
def _nothing_left(folder: SelectionFolder) -> Iterator[None]:
    """Take back what a call that fails has declared, unless something was scored against it.

    Otherwise a mistake would bind the corrected call to its settings.
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
    from toptail_paper.selection.write import write_results  # much to import for a help text

    return write_results(folder, tick, **how)


def keeps(folder: Path, keeping: Keeping) -> Keepsake:
    """Say what ships; see `toptail_paper.selection.keep.keepsake`."""
    from toptail_paper.selection.keep import keepsake

    return keepsake(folder, keeping)


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
    keeps=keeps,
)
