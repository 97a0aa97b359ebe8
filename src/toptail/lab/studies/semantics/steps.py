"""What the semantics study is asked for, and how what is missing is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from toptail.errors import InputError
from toptail.lab.studies.common import RunFolder, Tick, read_json
from toptail.lab.studies.semantics.config import SemanticsConfig


@dataclass(frozen=True)
class SemanticsRequest:
    """One call of the study."""

    config: SemanticsConfig
    """What is drawn, scored and reported."""
    folder: Path
    """Where it is stored."""
    command: str
    """What to record as the command."""
    runs: Path | None = None
    """Folder of trained runs; None scores the user's functions alone."""
    scorers: Sequence[str] = ()
    """``[NAME=]FILE.py:FUNCTION`` of the user's own scorers."""

    def recorded(self) -> Mapping[str, Any]:
        """The configuration for the folder, with the tasks that it holds already."""
        stored = config_in(self.folder)
        before = () if stored is None else stored.tasks
        tasks = tuple(dict.fromkeys((*before, *self.config.tasks)))
        return replace(self.config, tasks=tasks).described()


def config_in(folder: Path) -> SemanticsConfig | None:
    """The configuration that a folder has; None where it holds no study yet."""
    return stored_config(folder) if (folder / "config.json").is_file() else None


def stored_config(out: str | Path) -> SemanticsConfig:
    """The configuration in ``config.json``."""
    path = Path(out) / "config.json"
    if not path.is_file():
        raise InputError(
            f"{out} holds no semantics study (config.json is missing): run 'toptail study "
            "semantics' with --runs first."
        )
    stored = read_json(path)
    known = get_type_hints(SemanticsConfig)
    try:
        settings: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in stored["config"].items()
            if name in known
        }
        return SemanticsConfig(**settings)
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{path} is not the configuration of a semantics study: name another --out, or delete "
            "the file and run the study again."
        ) from None


def make_missing(request: SemanticsRequest, tick: Tick) -> list[str]:
    """Draw and score what is not stored."""
    from toptail.lab.studies.semantics.scoring import score_tasks

    run, config = RunFolder(request.folder), request.config
    with run.recording(request.recorded(), list(config.seeds), request.command):
        score_tasks(config, run, request.runs, tuple(request.scorers), tick)
    return []


def write(folder: Path, tick: Tick, **how: Any) -> list[str]:
    """Write tables and curves; see `toptail.lab.studies.semantics.finish.write_results`."""
    from toptail.lab.studies.semantics.finish import write_results  # much to import for a help text

    return write_results(folder, tick, **how)
