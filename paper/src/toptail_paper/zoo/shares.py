"""What the picks of stored scores are worth: captured shares, gains, and their resamples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import toptail
from toptail.errors import InputError
from toptail.pools.columns import group_seeds
from toptail.stats import best_of_k, bootstrap_sums, cluster_sums, percentile_interval, split_oracle
from toptail_paper.zoo.scores import BEFORE, COLUMNS, replicates

RESAMPLES = 10_000

Floats = NDArray[np.float64]


class Shares(NamedTuple):
    """Captured shares, or gains, of some scorers with resamples that all of them share."""

    names: Sequence[str]
    point: Floats
    """``[scorers]``: value of the top score less that of a random candidate; of captured shares,
    over the headroom."""
    draws: Floats
    """``[resamples, scorers]``, over clusters."""

    def of(self, name: str) -> tuple[float, Floats]:
        at = self.names.index(name)
        return float(self.point[at]), self.draws[:, at]


@dataclass(frozen=True)
class ScoreTable:
    """A table of `toptail_paper.zoo.scores`: a value, and every scorer's ranks, by query."""

    path: Path
    judge: Path | None = None
    """Values of another judge, as `toptail_paper.zoo.scores.judged_again` makes them."""

    @cached_property
    def _columns(self) -> pa.Table:
        table = pq.read_table(self.path)
        if self.judge is None:
            return table
        other = pq.read_table(self.judge)
        if not other[BEFORE].equals(table["value"]):
            raise InputError(f"{self.judge} is about other candidates than {self.path}.")
        table = table.drop_columns(["value", *replicates(table.column_names)])
        for name in ("value", *replicates(other.column_names)):
            table = table.append_column(name, other[name])
        return table

    @cached_property
    def queries(self) -> int:
        return int(self._columns["query"].to_numpy()[-1]) + 1

    @cached_property
    def seeds(self) -> dict[str, dict[int | None, str]]:
        """Scorer to its columns by training seed."""
        return group_seeds(self._scores)

    @property
    def _scores(self) -> list[str]:
        names = self._columns.column_names
        return [name for name in names if name not in (*COLUMNS, *replicates(names))]

    def dense(self, name: str) -> Floats:
        """A column as ``[queries, n]``."""
        found: Floats = self._columns[name].to_numpy().astype(np.float64)
        return found.reshape(self.queries, -1)

    @cached_property
    def judged(self) -> Floats | None:
        """``[replicates, queries, n]`` of a judge with members or repetitions."""
        names = replicates(self._columns.column_names)
        return np.stack([self.dense(name) for name in names]) if names else None

    def headroom(self) -> dict[str, float]:
        """Gain of the best candidate by one half of the replicates, valued by the other half.

        The highest of noisy values would be too high; this errs downward.
        """
        if self.judged is None:
            raise ValueError(f"{self.path} has no replicates")
        best = split_oracle(self.judged, [self.judged.shape[2]])[:, 0]
        total, draws = self._resampled([best - self.dense("value").mean(axis=1)])
        return cell(float(total[0]), draws[:, 0])

    def captured(self) -> Shares:
        """The captured share of every scorer, its seeds averaged; the value is the judge's mean."""
        return self._picks("headroom")

    def gains(self) -> Shares:
        """The value that every scorer's pick gains over a random candidate, its seeds averaged."""
        return self._picks("query")

    def _picks(self, over: Literal["headroom", "query"]) -> Shares:
        value = self.dense("value")
        size = [value.shape[1]]
        picked = {
            name: np.mean(
                [best_of_k(self.dense(c), value, size)[:, 0] for c in own.values()], axis=0
            )
            for name, own in self.seeds.items()
        }
        total, draws = self._resampled([value.mean(axis=1), value.max(axis=1), *picked.values()])

        def measured(mean: Floats) -> Floats:
            low, high, top = mean[..., :1], mean[..., 1:2], mean[..., 2:]
            return (top - low) / (high - low) if over == "headroom" else top - low

        return Shares(list(picked), measured(total), measured(draws))

    def _resampled(self, by_query: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Means over queries of numbers per query: ``[m]``, and ``[resamples, m]``."""
        return over_clusters(self.dense("cluster")[:, 0], by_query)

    def audit(self) -> toptail.AuditResult:
        names = replicates(self._columns.column_names)
        how = {"judged": toptail.HowJudged(replicates=names)} if names else {"values": "value"}
        return toptail.audit(
            self._columns,
            scores=self._scores,
            query="query",
            cluster="cluster",
            group="group",
            **how,
        )


def over_clusters(cluster: NDArray[np.generic], numbers: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Means of m times ``[n]`` numbers: ``[m]``, and resampled over clusters ``[resamples, m]``."""
    columns = np.stack([np.ones(len(cluster)), *numbers], axis=1)
    sums = cluster_sums(columns, np.unique(cluster, return_inverse=True)[1])
    draws = bootstrap_sums(sums, np.random.default_rng(0), RESAMPLES)
    total = sums.sum(axis=0)
    return total[1:] / total[0], draws[:, 1:] / draws[:, :1]


def interval(draws: Floats) -> tuple[float, float]:
    """The 95 % interval of resamples."""
    low, high = percentile_interval(draws)
    return float(low), float(high)


def cell(point: float, draws: Floats) -> dict[str, float]:
    """A number with its 95 % interval."""
    low, high = interval(draws)
    return {"mean": point, "low": low, "high": high}
