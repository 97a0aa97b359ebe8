"""What the selection study is asked for, and how what is missing is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toptail.lab.studies.common import RunFolder, Tick
from toptail.lab.studies.selection.config import STAGES, SelectionConfig


@dataclass(frozen=True)
class SelectionRequest:
    """One call of the study, for one task."""

    config: SelectionConfig
    """Every setting."""
    task: str
    """The data set: a name, or the path of a training file."""
    out: Path
    """Where the tasks' folders are."""
    command: str
    """What to record as the command."""
    runs: Path | None = None
    """Folder of trained runs; None where every stage's file is there or brought."""
    stages: Sequence[str] = STAGES
    """Which stages to make."""
    scorers: Sequence[str] = ()
    """``[NAME=]FILE.py:FUNCTION`` of the user's own scorers."""
    pools: Path | None = None
    """Candidates of the user's own."""
    judges: Sequence[str] = ()
    """``NAME=FILE.npz`` of the user's own judges."""

    @property
    def folder(self) -> Path:
        """The task's folder."""
        return self.out / self.config.task


def make_missing(request: SelectionRequest, tick: Tick) -> list[str]:
    """Make the stages that are asked for; returns sentences about those that were left out."""
    from toptail.lab.studies.selection.run import Brought, Stages
    from toptail.lab.studies.selection.study import Selection
    from toptail.lab.studies.semantics.draws import TaskDataset

    config = request.config
    run = RunFolder(request.folder)
    with run.recording(asdict(config), list(config.seeds), request.command):
        study = Selection.at(request.out, config, request.runs, tick)
        brought = Brought(request.pools, tuple(request.judges), tuple(request.scorers))
        return Stages(study, TaskDataset.load(request.task).data, brought).run(request.stages)


def write(folder: Path, tick: Tick, **how: Any) -> list[str]:
    """Write tables and curves; see `toptail.lab.studies.selection.finish.write_results`."""
    from toptail.lab.studies.selection.finish import write_results  # much to import for a help text

    return write_results(folder, tick, **how)
