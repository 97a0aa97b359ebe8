"""``toptail-paper study``: every study, stored as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

import tyro

from toptail.commands.options import Words, command_line, flags_of, with_given
from toptail.commands.requirements import need_training
from toptail.errors import InputError
from toptail_paper.commands.all import StudyChain
from toptail_paper.commands.run_study import print_outcome, run_study
from toptail_paper.commands.study_controlled import StudyControlled
from toptail_paper.commands.study_keep import StudyKeep
from toptail_paper.commands.study_selection import StudySelection
from toptail_paper.commands.study_semantics import StudySemantics
from toptail_paper.study.study import Request, Study, studies


class PlainStudy:
    """The command of a study that needs no more than its folder, runs, scorers and settings."""

    study: ClassVar[Study]
    out: Path
    runs: Path | None
    scorer: tuple[str, ...]
    settings: Any

    @classmethod
    def for_label(
        cls, label: str, out: Path, runs: Path | None, task: Sequence[str], *, train: bool
    ) -> PlainStudy:
        """What one of the study's tables or figures needs: the same for all."""
        if task or train:
            raise InputError(f"{label} does not take --task and --train: leave them out.")
        return cls(out=out, runs=runs)  # type: ignore[call-arg]

    def run(self) -> int:
        """Make what is missing, and say where it is."""
        print_outcome(self.study, *self.work(command_line()))
        return 0

    def work(self, command: str) -> tuple[Path, Path]:
        """Do what was asked for; returns the folder and the page's path."""
        need_training(f"study {self.study.name}")
        config = with_given(self.study.config(), self.settings)
        request = Request(config, self.out, command, self.runs, self.scorer)
        return self.out, run_study(self.study, request)


def plain_command(study: Study) -> type[PlainStudy]:
    """A command for a study whose configuration has defaults: each setting is a flag."""
    base = study.config()
    plain = [f.name for f in fields(base) if not is_dataclass(getattr(base, f.name))]
    settings = flags_of(base, plain)
    scorers = tyro.conf.arg(
        metavar="[NAME=]FILE.py:FUNCTION", help="A scorer of your own; may be repeated."
    )
    out = tyro.conf.arg(help="Folder of the study.")
    runs = tyro.conf.arg(help="Folder of trained runs, as 'toptail train' writes it.")
    flags = [
        ("out", Annotated[Path, out], field(default=Path("runs") / study.name)),
        ("runs", Annotated[Path | None, runs], field(default=None)),
        ("scorer", Annotated[Words, scorers], field(default=())),
        ("settings", settings, field(default_factory=settings)),
    ]
    about = {"study": study, "__doc__": f"The study '{study.name}', {study.where}."}
    return make_dataclass("PlainCommand", flags, bases=(PlainStudy,), namespace=about, frozen=True)


_OWN: Final[Mapping[str, Any]] = {
    "controlled": StudyControlled,
    "semantics": StudySemantics,
    "selection": StudySelection,
}

COMMANDS: Final[Mapping[str, Any]] = {
    **_OWN,
    **{name: plain_command(study) for name, study in studies().items() if name not in _OWN},
}
"""The command of every study."""

if TYPE_CHECKING:
    AnyStudy = Any
else:
    _ALL = {**COMMANDS, "chain": StudyChain, "keep": StudyKeep}
    AnyStudy = reduce(or_, (Annotated[c, tyro.conf.subcommand(n)] for n, c in _ALL.items()))


@dataclass(frozen=True)
class StudyCommand:
    """Run a study, or whole tasks as a chain, or keep one; what is finished is not repeated."""

    what: tyro.conf.OmitSubcommandPrefixes[tyro.conf.OmitArgPrefixes[AnyStudy]]
    """Which study; 'chain' for whole tasks; 'keep' for a study that is finished."""

    def run(self) -> int:
        """Run the chosen study."""
        return int(self.what.run())
