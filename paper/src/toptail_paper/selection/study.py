"""One task's study: its folder, its settings, its trained runs, and how candidates are scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from toptail.errors import InputError, option
from toptail.lab.scorers.base import Score, score_shared
from toptail.lab.tasks.queries import FrozenQueries
from toptail.lab.tasks.trajectories import FloatArray
from toptail.progress import Tick, no_tick
from toptail_paper.selection.config import SelectionConfig
from toptail_paper.selection.declare import require_declared
from toptail_paper.selection.files import SelectionFolder
from toptail_paper.selection.pools import CandidatePools

BLOCK = 16_384
"""Candidates that are scored in one call."""


@dataclass(frozen=True)
class Selection:
    """One task's study: where it is kept, what was asked for, and where trained runs are."""

    folder: SelectionFolder
    """``OUT/TASK``."""

    config: SelectionConfig
    """Every setting."""

    runs: Path | None = None
    """``RUNS`` of ``RUNS/TASK/CRITIC/seed-N``; None where every stage's file is already there."""

    tick: Tick = no_tick
    """Told the progress of each stage."""

    @classmethod
    def at(
        cls, out: Path, config: SelectionConfig, runs: Path | None = None, tick: Tick = no_tick
    ) -> Selection:
        """The study that lives in ``out/TASK``."""
        return cls(SelectionFolder(out / config.task), config, runs, tick)

    def needed_runs(self, stage: str) -> Path:
        """The folder of trained runs, or a sentence about what it is needed for."""
        if self.runs is None:
            raise InputError(
                f"{stage} needs trained runs: name their folder with {option('runs')}, or put the "
                f"stage's file into {self.folder.path}."
            )
        return self.runs

    def made_from(self, queries: FrozenQueries, pools: CandidatePools) -> dict[str, Any]:
        """What every file of scores and values says that it was made from.

        Nothing is scored, valued or rolled out against criteria that were not declared.
        """
        declared = require_declared(self.folder, self.config, queries)
        return {"declared": declared["hash"], "queries": queries.sha256, "pools": pools.sha256}


def score_candidates(
    score: Score, queries: FrozenQueries, pools: CandidatePools, tick: Callable[[float], None]
) -> FloatArray:
    """Score every candidate and the logged action, [Q, P, N + 1], in blocks of rows."""
    actions = pools.with_logged()
    per_query = actions.shape[1] * actions.shape[2]
    flat = actions.reshape(-1, actions.shape[-1])
    candidate = np.arange(len(flat))
    query = candidate // per_query
    asked = np.stack([candidate, query], axis=1)
    result = np.empty(len(flat), dtype=np.float32)
    states, goals = queries.states[query], queries.goals
    for at, given in score_shared(score, states, flat, goals, asked, BLOCK):
        scores, count = np.asarray(given), at.stop - at.start
        if scores.shape != (count,):
            raise InputError(
                f"A scorer gave scores of shape {scores.shape} for {count} rows: expected one "
                "number per row."
            )
        result[at] = scores
        tick(at.stop / len(flat))
    return result.reshape(actions.shape[:3])
