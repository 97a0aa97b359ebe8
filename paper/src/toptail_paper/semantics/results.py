"""What the semantics study left in its folder, as its figures and tables want to see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from toptail.errors import InputError, option
from toptail.io.files import entries
from toptail.io.json_files import read_json, read_json_if_exists
from toptail_paper.semantics.config import DRAWS, PROPOSALS, VALUES, SemanticsConfig
from toptail_paper.study.results import StudyResults, common_parts


@dataclass(frozen=True)
class SemanticsResults(StudyResults):
    """Everything a run folder holds for a reader."""

    curves: Mapping[str, Any]

    @property
    def k(self) -> tuple[int, ...]:
        """Candidate counts of the best-of-K curves."""
        return tuple(self.curves.get("k", ()))

    def curve(self, name: str) -> dict[str, dict[str, Any]]:
        """One kind of curve: task → scorer → what is stored, where there is anything."""
        found: dict[str, dict[str, Any]] = {}
        for task, scorers in self.curves.get("tasks", {}).items():
            kept = {s: parts[name] for s, parts in scorers.items() if parts.get(name) is not None}
            if kept:
                found[task] = kept
        return found


def read_semantics(folder: str | Path) -> SemanticsResults:
    """Read a run folder of the semantics study; one without a run is refused."""
    path = Path(folder)
    parts = common_parts(path, "semantics")
    return SemanticsResults(**parts, curves=read_json_if_exists(path / "curves.json") or {})


def config_in(folder: Path) -> SemanticsConfig | None:
    """The configuration of the study in a folder; None where there is no study yet.

    A call that failed before it scored anything also leaves a ``config.json``. It does not count:
    the next call may have other settings.
    """
    if not (folder / "config.json").is_file():
        return None
    drawn = (DRAWS, PROPOSALS)
    files = [path for path in entries(folder / "scores", "**/*.npz") if path.stem not in drawn]
    scored = any(path.parent.name != VALUES for path in files)
    return stored_config(folder) if scored or entries(folder / "tables", "*.json") else None


def stored_config(out: str | Path) -> SemanticsConfig:
    path = Path(out) / "config.json"
    if not path.is_file():
        raise InputError(
            f"{out} holds no semantics study (config.json is missing): run 'toptail-paper study "
            f"semantics' with {option('runs')} first."
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
            f"{path} is not the configuration of a semantics study: name another "
            f"{option('out')}, or delete the file and run the study again."
        ) from None
