"""``toptail report``: render a stored audit again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.terminal import say


@dataclass(frozen=True)
class Report:
    """Render audit.md, audit.tex and report.html again from a folder's audit.json."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder that 'toptail audit' wrote."""

    def run(self) -> int:
        """Read audit.json and write everything that is rendered from it."""
        from toptail.pools.guard import refusing
        from toptail.results import read_audit, write_report

        audit = read_audit(self.folder)
        with refusing(self.folder / "audit.json", "cannot be drawn", "audit the table again"):
            report = write_report(audit, self.folder)
        say(f"Report: {report}")
        return 0
