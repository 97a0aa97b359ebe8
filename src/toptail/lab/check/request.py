"""What is asked of a check, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toptail.lab.check.config import NEAREST, UNIFORM, CheckConfig
from toptail.lab.check.sources import Source
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
