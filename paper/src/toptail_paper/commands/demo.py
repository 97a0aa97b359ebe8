"""``toptail demo``: the controlled study in a few minutes, and its report page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from toptail.commands.requirements import need_training
from toptail.commands.terminal import print_table, say
from toptail_paper.commands.run_study import run_study


@dataclass(frozen=True)
class ControlledDemo:
    """Train the paper's critics in its 2-D world, let them search, and report what happens.

    Takes a few minutes on two cores: main table, within-model control, best-of-K curves,
    support decomposition, noise, theory checks, claims, and one page with all of it.
    """

    out: Path = Path("toptail-demo")
    """Folder of the run; a killed demo goes on where it stopped."""

    def run(self) -> int:
        """Run the study's default setting, render everything, and say where it is."""
        need_training("demo")
        from toptail_paper.claims import tally
        from toptail_paper.controlled.config import StudyConfig
        from toptail_paper.controlled.study import STUDY
        from toptail_paper.study.study import Request

        request = Request(StudyConfig(), self.out, f"toptail-paper demo --out {self.out}")
        report = run_study(STUDY, request)
        for table in STUDY.tables(self.out, STUDY.labels):
            print_table(table)
        counts = tally(STUDY.read(self.out).claims)
        words = ", ".join(f"{count} {status}" for status, count in counts.items())
        say(f"Of the paper's statements about this part: {words}.")
        say(f"Report: {report}")
        return 0
