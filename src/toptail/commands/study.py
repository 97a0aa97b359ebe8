"""``toptail study``: the paper's experiments, stored as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import tyro

from toptail.commands.study_controlled import StudyControlled
from toptail.commands.study_selection import StudySelection
from toptail.commands.study_semantics import StudySemantics

COMMANDS: Final[Mapping[str, Any]] = {
    "controlled": StudyControlled,
    "semantics": StudySemantics,
    "selection": StudySelection,
}
"""The command of every study."""


@dataclass(frozen=True)
class StudyCommand:
    """Run one of the paper's studies; what is finished in the folder is not repeated."""

    what: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[StudyControlled, tyro.conf.subcommand("controlled")]
            | Annotated[StudySemantics, tyro.conf.subcommand("semantics")]
            | Annotated[StudySelection, tyro.conf.subcommand("selection")]
        ]
    ]
    """Which study."""

    def run(self) -> int:
        """Run the chosen study."""
        return self.what.run()
