"""``toptail-paper study``: the paper's three studies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.commands.study_semantics import StudySemantics

if TYPE_CHECKING:
    AnyStudy = Any
else:
    AnyStudy = (
        Annotated[StudyControlled, tyro.conf.subcommand("controlled")]
        | Annotated[StudySelection, tyro.conf.subcommand("selection")]
        | Annotated[StudySemantics, tyro.conf.subcommand("semantics")]
    )


@dataclass(frozen=True)
class StudyCommand:
    """Run a study; results that exist in its folder are not computed again."""

    what: tyro.conf.OmitSubcommandPrefixes[tyro.conf.OmitArgPrefixes[AnyStudy]]
    """Which study."""

    def run(self) -> int:
        """Run the chosen study."""
        return int(self.what.run())
