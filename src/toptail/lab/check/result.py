"""What is asked of a check, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toptail.io.files import entries, staged_folder, write_arrays
from toptail.lab.check.candidates import Source
from toptail.lab.check.config import NEAREST, UNIFORM, CheckConfig
from toptail.lab.check.page import check_html
from toptail.lab.store.folder import write_json
from toptail.lab.tasks.queries import FrozenQueries
from toptail.pools import ScoredPools
from toptail.results import AuditResult, PicksResult


@dataclass(frozen=True)
class CheckRequest:
    """What is to be checked, by whom, and among which candidates."""

    task: str
    """An OGBench name, one of the paper's names, or the path of a training file."""
    scorers: tuple[str, ...]
    """Critics: functions of files, or folders of trained runs, with patterns."""
    pools: tuple[str, ...] = (NEAREST, UNIFORM)
    """Where candidates come from."""
    judge: str | None = None
    """Who judges; the best judge that the task has unless given."""
    env: str | None = None
    """The environment; that of an OGBench data set unless given."""
    goals: bool = True
    """Whether the task has goals where no environment says so."""
    runs: Path | None = None
    """Folder of trained runs: behaviour model and reference ensemble."""
    config: CheckConfig = field(default_factory=CheckConfig)
    """Sizes, horizon, discount, seed."""
    command: str = "toptail.lab.check.run.check(...)"
    """What made it, for the record."""


@dataclass(frozen=True, eq=False)
class SourceResult:
    """What was found among the candidates of one source."""

    source: Source
    """Where they come from."""
    pools: Mapping[str, np.ndarray]
    """``actions [Q, N, a]``, ``support_distance``, ``on_support``, and ``scores/COLUMN``."""
    table: ScoredPools | None
    """Scores and values as the audit reads them; None where nobody judged."""
    audit: AuditResult | None
    """The audit of one step; None where nobody judged."""
    followed: Mapping[str, PicksResult]
    """Scorer -> the audit of its episodes; empty where there are none."""
    doubts: tuple[str, ...]
    """Why the judge may not be believed; then the audit decides nothing."""
    picked: Mapping[str, PicksResult] = field(default_factory=dict)
    """Scorer -> the audit of its picks, where these alone were judged; then there is no table."""


@dataclass(frozen=True, eq=False)
class CheckResult:
    """Everything that a check found."""

    content: dict[str, Any]
    """``check.json``."""
    queries: FrozenQueries
    """States and goals that were asked about."""
    sources: tuple[SourceResult, ...]
    """One for each source of candidates."""


def write_check(result: CheckResult, out: Path) -> Path:
    """Write a check, whole or not at all; returns the path of ``report.html``.

    ``SOURCE/`` has the candidates (``pools.npz``), their scores and values (``table.parquet``), the
    audit of one step and those of the episodes. What an earlier check left about sources that this
    one did not ask for is taken away.
    """
    made = {each.source.name for each in result.sources}
    with staged_folder(out, _older(out, made)) as stage:
        for each in result.sources:
            _write_source(each, stage / each.source.name)
        result.queries.save(stage / "queries.npz")
        write_json(stage / "check.json", result.content)
        (stage / "report.html").write_text(check_html(result.content), encoding="utf-8")
    return out / "report.html"


def _write_source(made: SourceResult, folder: Path) -> None:
    folder.mkdir()
    write_arrays(folder / "pools.npz", dict(made.pools), compressed=True)
    if made.table is not None and made.audit is not None:
        made.table.write(folder / "table.parquet")
        made.audit.write(folder / "one_step")
    for kind, results in (("one_step", made.picked), ("closed_loop", made.followed)):
        for name, picks in results.items():
            picks.write(folder / kind / name)


def _older(out: Path, made: set[str]) -> list[str]:
    """Files of an earlier check about sources that are not made now."""
    stale = [pools.parent for pools in entries(out, "*/pools.npz") if pools.parent.name not in made]
    files = [path for folder in stale for path in entries(folder, "**/*") if path.is_file()]
    return [str(path.relative_to(out)) for path in files]
