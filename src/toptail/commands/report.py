"""``toptail report``: render a stored audit or choice again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from toptail.commands.terminal import say


@dataclass(frozen=True)
class Report:
    """Render the report of a folder again from its audit.json or choice.json."""

    folder: Annotated[Path, tyro.conf.Positional]
    """The folder that 'toptail audit' or 'toptail choose' wrote."""

    def run(self) -> int:
        """Read what is stored and write everything that is rendered from it."""
        from toptail.errors import refusing
        from toptail.results import ChoiceResult, read_audit, write_report

        if (self.folder / "choice.json").is_file():
            choice = ChoiceResult.read(self.folder)
            with refusing(self.folder / "choice.json", "cannot be drawn", "choose again"):
                report = choice.write(self.folder)
        else:
            audit = read_audit(self.folder)
            with refusing(self.folder / "audit.json", "cannot be drawn", "audit the table again"):
                report = write_report(audit, self.folder)
        say(f"Report: {report}")
        return 0
