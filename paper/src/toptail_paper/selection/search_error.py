"""The table of where search error comes from, at fixed queries and pooled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.audit.triples.search import pooled_search_error
from toptail.lab.critics.registry import ideal_of
from toptail.lab.judges.point import EXACT
from toptail.stats import SearchError, search_error
from toptail.stats.best_of_k import Floats
from toptail_paper.selection.measure import by_query
from toptail_paper.selection.specs import TABLES
from toptail_paper.selection.tables import MeasuredPicks
from toptail_paper.study.search_error import (
    LABEL,
    NOTES,
    POOLED,
    POOLED_CANDIDATES,
    POOLED_RESAMPLES,
)
from toptail_paper.study.tables import StoredCell


def search_error_table(measured: MeasuredPicks) -> dict[str, Any] | None:
    """The terms of every scorer whose ideal was scored; None without ideals or the exact judge."""
    data = measured.data
    if EXACT not in data.values:
        return None
    split = _Split(measured)
    rows = {
        name: split.row(columns, ideal)
        for name, columns in data.critics.items()
        if (ideal := ideal_of(name)) is not None and ideal in data.scores
    }
    if not rows:
        return None
    caption = f"Where search error comes from: normalized regret at K={data.size}, by exact value"
    return TABLES[LABEL].table(caption, {data.key: rows}, NOTES)


class _Split:
    """The pools of a task with exact values, for all scorers."""

    def __init__(self, measured: MeasuredPicks) -> None:
        self.measured, self.data = measured, measured.data
        self.values = self.data.judged(EXACT).values
        rng = np.random.default_rng(1)
        labels = np.repeat(self.data.trajectory, min(POOLED_CANDIDATES, self.data.size))
        count = min(POOLED_RESAMPLES, len(measured.means.bootstrap.times))
        self.bootstrap = TrajectoryBootstrap(labels, rng, count)

    def row(self, columns: Mapping[int, str], ideal: str) -> dict[str, StoredCell]:
        """The cells of one scorer."""
        own = self.data.candidate_scores(ideal)
        scores = {seed: self.data.candidate_scores(column) for seed, column in columns.items()}
        fixed = {seed: self._fixed(x, own) for seed, x in scores.items()}
        pooled = {seed: self._pooled(x, own) for seed, x in scores.items()}
        return {
            f"{start}{term}": self.measured.means.cell({s: x[term] for s, x in terms.items()})
            for start, terms in (("", fixed), (POOLED, pooled))
            for term in SearchError._fields
        }

    def _fixed(self, scores: Floats, ideal: Floats) -> dict[str, Estimate]:
        """The terms over the headroom, both means over queries."""
        size = self.data.size
        critic, own, value = (x.reshape(-1, size) for x in (scores, ideal, self.values))
        support = self.data.on_support.reshape(-1, size)
        split = search_error(critic, own, value, support, (size,))
        mean, pools = self.measured.means.mean, self.data.judged(EXACT)
        headroom = mean(pools.oracle[:, -1]) - mean(pools.random)
        terms = zip(SearchError._fields, split, strict=True)
        return {name: mean(by_query(term, len(scores))[:, 0]) / headroom for name, term in terms}

    def _pooled(self, scores: Floats, ideal: Floats) -> dict[str, Estimate]:
        """The same for the first candidates of each query's first pool, all in one pool."""
        critic, own, value, support = (
            x[:, 0, :POOLED_CANDIDATES].reshape(-1)
            for x in (scores, ideal, self.values, self.data.on_support)
        )
        size = self.data.size
        split, headroom = pooled_search_error(critic, own, value, support, size, self.bootstrap)
        return {name: split[i] / headroom for i, name in enumerate(SearchError._fields)}
