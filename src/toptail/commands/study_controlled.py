"""``toptail study controlled``: the paper's 2-D world, stored as tables."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import tyro

from toptail.commands.demo import need_training
from toptail.commands.progress import progress_bar
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.lab.studies.controlled import StudyConfig

T = TypeVar("T")


@dataclass(frozen=True)
class StudyControlled:
    """The paper's critics in its 2-D world; what is finished in the folder is not repeated."""

    out: Path = Path("runs/controlled")
    """Folder of the run."""
    radii: Annotated[str, tyro.conf.arg(metavar="R,R,...")] = "0.25,0.40,0.55"
    """Support radii of the radius sweep, separated by commas; 'none' leaves it out."""
    seeds: Annotated[str, tyro.conf.arg(metavar="N,N,...")] = "42,43,44,45,46"
    """Training seeds, separated by commas."""
    sweep: Annotated[str, tyro.conf.arg(metavar="NAME,...")] = "none"
    """Settings to sweep (steps, temperature, loss, bias, layer_norm), with commas, or 'all'."""
    steps: int | None = None
    """Training steps, where they should not be the study's own."""
    workers: int = 2
    """Critics trained at the same time."""
    choose: bool = False
    """Instead of the study: apply the rule that fixed its default setting, on seeds 0 to 4."""

    def run(self) -> int:
        """Train what is missing, write the tables, and render the page."""
        need_training("study")
        from toptail.lab.studies.controlled import choose_default, run_controlled
        from toptail.lab.studies.finish import finish_controlled

        config = self.config()
        command = shlex.join(["toptail", *sys.argv[1:]])
        if self.choose:
            print(f"Chosen: {choose_default(config, self.out, command)}")
            return 0
        with progress_bar() as tick:
            run = run_controlled(config, self.out, tick, command)
            tick("writing the report", 1.0)
            report = finish_controlled(config, self.out)
        print(f"Trained {run.made} critics, found {run.asked - run.made} finished.")
        print(f"Tables: {self.out / 'tables'}\nReport: {report}")
        return 0

    def config(self) -> StudyConfig:
        """The study's configuration with what was asked for."""
        from toptail.lab.studies.controlled import SWEEPS, StudyConfig

        sweeps = SWEEPS if self.sweep == "all" else _list("--sweep", self.sweep, str)
        config = StudyConfig(
            radii=tuple(_list("--radii", self.radii, float)),
            seeds=tuple(_list("--seeds", self.seeds, int)),
            sweeps=tuple(sweeps),  # type: ignore[arg-type]
            workers=self.workers,
        )
        return config if self.steps is None else replace(config, steps=self.steps)


def _list(flag: str, text: str, kind: Callable[[str], T]) -> list[T]:
    """Parse a list separated by commas; 'none' is the empty list."""
    if text.strip().lower() in ("", "none"):
        return []
    try:
        return [kind(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError:
        example = "42,43,44" if kind is int else "0.25,0.40"
        raise InputError(
            f"{flag} takes numbers separated by commas, as in {example}; not '{text}'."
        ) from None
