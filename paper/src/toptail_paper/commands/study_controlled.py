"""``toptail-paper study controlled``: the paper's 2-D world."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from toptail.commands.flags import DECIDE, OUTPUT, SCALE, JobFlags, command_line, need_training
from toptail.commands.terminal import say
from toptail.io.json_files import read_json_if_exists
from toptail_paper.commands.run_study import print_outcome, run_study, tables_job
from toptail_paper.commands.settings import flags_of, with_given
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
    """Train the paper's critics in its 2-D world, let them search, and report what happens.

      toptail-paper study controlled --radii none --out runs/controlled

    With --radii none it takes a few minutes on two cores. All five critics are trained, and there
    is no --critics: the tables compare them with each other, with TD-Q as the positive control.
    Lists are separated by commas; 'none' is an empty one, and '--sweep all' sweeps steps,
    temperature, loss, bias and layer_norm.
    """

    out: Annotated[Path, OUTPUT] = Path("runs/controlled")
    """Folder of the study; a killed command goes on where it stopped."""
    settings: Annotated[Settings, SCALE] = field(default_factory=Settings)
    """What is trained."""
    choose: Annotated[bool, DECIDE] = False
    """Instead of the study: apply the rule that fixed its default setting, on seeds 0 to 4."""

    def run(self) -> int:
        if self.choose:
            need_training("study")
            from toptail_paper.controlled.run import choose_default

            say(f"Chosen: {choose_default(self.config(), self.out, command_line())}")
            return 0
        if self.by_jobs():
            return 0
        from toptail_paper.claims import counted

        report = self.work(command_line())
        claims = read_json_if_exists(self.out / "claims.json")
        lines = [f"The paper's statements about this part: {counted(claims)}."] if claims else []
        print_outcome(STUDY, self.out, report, STUDY.labels, lines)
        return 0

    def jobs(self) -> list[Job]:
        """One job per critic and setting, and last the tables."""
        need_training("study")
        from toptail_paper.controlled.trainings import Trainings
        from toptail_paper.study.store import RunFolder

        trainings = Trainings(self.config(), RunFolder(self.out)).jobs()
        return [*trainings, tables_job(self, self.out, trainings)]

    def work(self, command: str) -> Path:
        """Run the study; returns the page's path."""
        need_training("study")
        return run_study(STUDY, Request(self.config(), self.out, command))

    def config(self) -> StudyConfig:
        return with_given(BASE, self.settings)
