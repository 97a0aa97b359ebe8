"""``toptail-paper study keep``: what of a study ships, with its scores made small."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.lists import names
from toptail.commands.options import Flag, Words
from toptail.commands.terminal import say


@dataclass(frozen=True)
class StudyKeep:
    """Keep a study where room is little: its results, and its scores made small.

    The kept folder is read like the study's own: tables, curves, claims and the page can be made
    of it again, without data and without networks. Scores keep their order exactly, and their
    values to a stated share of their range. What was made of scores that are left behind stays as
    it is.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """The study's folder; of the selection study that of one task, OUT/TASK."""

    out: Path
    """Where it is kept; written completely or not at all."""

    critics: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Keep the scores of these critics alone; unless given, of the paper's four and your own."""

    also: Annotated[Words, tyro.conf.arg(metavar="A,B,...")] = ()
    """Keep also what takes much room: two-heads; of the semantics study support and
    seen-negatives; of the selection study actions."""

    replace: Flag = False
    """Let a kept folder become one with less in it."""

    def run(self) -> int:
        """Keep it, and print the size of each file and of all of them."""
        from toptail_paper.study.kept import Keeping, keep
        from toptail_paper.study.study import study_in

        study = study_in(self.folder)
        what = study.keeps(self.folder, Keeping(names(self.critics), names(self.also)))
        sizes = keep(self.folder, self.out, what, replace=self.replace)
        for name, size in sizes.items():
            say(f"{size / 1e6:8.3f} MB  {name}")
        say(f"{sum(sizes.values()) / 1e6:8.3f} MB in {len(sizes)} files: {self.out}")
        if what.left_behind:
            say(f"Left behind: scores of {len(what.left_behind)} columns.")
        return 0
