"""What a study left in its folder, as its page, figures and tables want to see it.

Reads stored files only: no scores, no networks. A part that a run did not make is empty, and what
would be drawn from it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toptail.io.files import entries
from toptail.io.json_files import read_json_if_exists
from toptail_paper.study.scale import read_scale


@dataclass(frozen=True)
class StudyResults:
    """What every study's folder holds for a reader."""

    config: Mapping[str, Any]
    """The study's configuration; empty where its files were brought by hand."""
    record: Mapping[str, Any]
    """Command, versions, commit, seconds; empty where its files were brought by hand."""
    tables: Mapping[str, Mapping[str, Any]]
    """``tables/*.json`` by name."""
    claims: Sequence[Mapping[str, Any]]
    """``claims.json``; empty where nobody asked what the paper says."""
    scale: Mapping[str, Any]
    """``scale.json``; empty where nobody noted how large the run was."""

    def rows(self, table: str) -> Mapping[str, Any]:
        """Rows of a table: task → scorer → metric → cell; empty where there is no such table."""
        rows: Mapping[str, Any] = self.tables.get(table, {}).get("rows", {})
        return rows

    @property
    def has_paper(self) -> bool:
        """Whether the paper's cells stand in the tables."""
        return any(table.get("paper") for table in self.tables.values())


def common_parts(folder: Path) -> dict[str, Any]:
    """What `StudyResults` holds, by name."""
    return {
        "config": (read_json_if_exists(folder / "config.json") or {}).get("config", {}),
        "record": read_json_if_exists(folder / "record.json") or {},
        "tables": {p.stem: read_json_if_exists(p) for p in entries(folder / "tables", "*.json")},
        "claims": read_json_if_exists(folder / "claims.json") or [],
        "scale": read_scale(folder),
    }
