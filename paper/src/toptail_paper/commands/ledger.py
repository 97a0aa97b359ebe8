"""``toptail-paper ledger``: decide the paper's statements again, from stored tables alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from toptail.commands.flags import OUTPUT
from toptail.commands.terminal import say
from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail_paper.claims import annotate, counted, write_across
from toptail_paper.claims.ledger_over_tasks import STUDY
from toptail_paper.claims.published import summary, write_cells
from toptail_paper.claims.reported import published
from toptail_paper.study.study import study_in


@dataclass(frozen=True)
class Ledger:
    """Decide every statement of the paper again from stored tables, and count the verdicts.

      toptail-paper ledger --cells

    Writes claims.json and claims.md into every study's folder below OUT that has a ledger. Folders
    of the selection study hold one task each: side by side, they also get a ledger over all tasks.
    """

    out: Annotated[Path | None, OUTPUT] = None
    """Folder with the studies' folders; the stored results unless given."""
    cells: Annotated[bool, OUTPUT] = False
    """Also list every number of the paper in OUT/cells.md, with what was measured or why it was
    not."""

    def run(self) -> int:
        out = published() if self.out is None else self.out
        tasks: dict[Path, list[Path]] = {}
        for folder in _folders(out):
            study = study_in(folder).name
            say(f"{folder}: {counted(annotate(folder, study))}.")
            if study == STUDY:
                tasks.setdefault(folder.parent, []).append(folder)
        for above, folders in tasks.items():
            if len(folders) > 1:
                say(f"{above}, over {len(folders)} tasks: {counted(write_across(above, folders))}.")
        if self.cells:
            say(f"{out}: {summary(write_cells(out))}.")
        return 0


def _folders(out: Path) -> list[Path]:
    """The folders of studies below a folder that have a ledger."""
    found = [path.parent for path in entries(out, "**/claims.json")]
    # A ledger above other ledgers is made of them.
    folders = [folder for folder in found if not any(folder in each.parents for each in found)]
    if not folders:
        raise InputError(
            f"There is no ledger below {out} (no claims.json): name a folder that 'toptail-paper "
            f"study' wrote with {option('out', 'FOLDER')}."
        )
    return folders
