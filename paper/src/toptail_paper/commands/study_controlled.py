"""``toptail-paper study controlled``: the paper's 2-D world, stored as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from toptail.commands.engine import JobFlags
from toptail.commands.options import Flag, command_line, flags_of, with_given
from toptail.commands.requirements import need_training
from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail_paper.commands.run_study import print_outcome, run_study, tables_job
from toptail_paper.controlled.config import StudyConfig
from toptail_paper.controlled.study import STUDY
from toptail_paper.study.study import Request

BASE: Final = StudyConfig(radii=(0.25, 0.40, 0.55))
"""The study with the paper's radius sweep."""

if TYPE_CHECKING:
    from toptail.jobs.job import Job

    Settings = Any
else:
    Settings = flags_of(
        BASE,
        ("radii", "seeds", "steps", "batch_size", "data_size", "queries", "pool", "workers"),
        sweep="sweeps",
        hidden="critics.hidden",
    )


@dataclass(frozen=True)
class StudyControlled(JobFlags):
    """The paper's critics in its 2-D world; what is finished in the folder is not repeated.

    Lists are separated by commas; 'none' is an empty one, and '--sweep all' sweeps steps,
    temperature, loss, bias and layer_norm.
    """

    out: Path = Path("runs/controlled")
    """Folder of the run."""
    settings: Settings = field(default_factory=Settings)
    """What is trained."""
    choose: Flag = False
    """Instead of the study: apply the rule that fixed its default setting, on seeds 0 to 4."""

    @classmethod
    def for_label(
        cls, label: str, out: Path, runs: Path | None, task: Sequence[str], *, train: bool
    ) -> StudyControlled:
        """What a table or figure of the paper needs."""
        if task or runs or train:
            raise InputError(
                f"{label} is made in the 2-D world, which trains its own critics: leave out "
                "--task, --runs and --train."
            )
        return cls(out, Settings() if label == "tab:r-sweep" else Settings(radii=("none",)))

    def run(self) -> int:
        """Train what is missing, write the tables, and render the page."""
        if self.choose:
            need_training("study")
            from toptail_paper.controlled.run import choose_default

            say(f"Chosen: {choose_default(self.config(), self.out, command_line())}")
            return 0
        if self.by_jobs():
            return 0
        print_outcome(STUDY, *self.work(command_line()))
        return 0

    def jobs(self) -> list[Job]:
        """One piece per critic and setting, and last the tables."""
        need_training("study")
        from toptail.lab.store.folder import RunFolder
        from toptail_paper.controlled.trainings import Plan

        trainings = Plan(self.config(), RunFolder(self.out)).jobs()
        return [*trainings, tables_job(self, self.out, trainings)]

    def work(self, command: str) -> tuple[Path, Path]:
        """Do what was asked for; returns the folder and the page's path."""
        need_training("study")
        return self.out, run_study(STUDY, Request(self.config(), self.out, command))

    def config(self) -> StudyConfig:
        """The study's configuration with what was asked for."""
        return with_given(BASE, self.settings)
