"""The critics' tables ``fixed-query``, ``function-class`` and ``factored``; curves over K."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from itertools import product
from typing import Any, Final

import numpy as np

from toptail.io.json_files import jsonable
from toptail.lab.critics.registry import CRITICS, names
from toptail.lab.judges.point import EXACT
from toptail.progress import Tick, no_tick
from toptail.stats import best_of_k
from toptail.stats.best_of_k import Floats
from toptail.stats.resample import Estimate
from toptail_paper.selection.files import REFERENCE
from toptail_paper.selection.load import NO_SEED, TaskSelection
from toptail_paper.selection.measure import Judged, Mask, Picked, Resampled, by_query
from toptail_paper.selection.results import SelectionMetric
from toptail_paper.selection.rollout_data import RANDOM
from toptail_paper.selection.specs import TABLES
from toptail_paper.study.naming import ideal_of, is_circular
from toptail_paper.study.search_error import (
    LABEL,
    NOTES,
    POOLED,
    POOLED_CANDIDATES,
    POOLED_RESAMPLES,
)
from toptail_paper.study.tables import StoredCell, cell, curve_cell, with_more
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.search import pooled_search_error
from toptail_paper.triples.search_error import SearchError, search_error

RESAMPLES = 2_000
HIGH = 0.9
"""The paper asks how many selected scores exceed this."""
JUDGED = ("tau_b", "nregret", "pool_nregret", "best_pick")
"""What is measured under every judge."""


class MeasuredPicks:
    """All columns of a task under all judges, with one set of resamples of trajectories."""

    def __init__(
        self, data: TaskSelection, resamples: int = RESAMPLES, tick: Tick = no_tick
    ) -> None:
        self.data = data
        rng = np.random.default_rng(0)
        self.means = Resampled(TrajectoryBootstrap(data.trajectory, rng, resamples))
        self.judged: dict[tuple[str, str], Judged] = {}
        self.picked: dict[str, Picked] = {}
        pools = {judge: data.judged(judge) for judge in data.judges}
        for done, column in enumerate(data.scores):
            scores = data.candidate_scores(column)
            for judge in data.judges:
                self.judged[judge, column] = Judged.of(scores, pools[judge])
            self.picked[column] = Picked.of(scores, data.on_support, data.support_distance, data.k)
            tick("measuring the picks", (done + 1) / len(data.scores))
        for judge, of_judge in pools.items():
            self.judged[judge, RANDOM] = Judged.of_random(of_judge)

    @cached_property
    def rows(self) -> dict[str, dict[str, StoredCell]]:
        """Scorer -> metric -> cell, without the rollouts; a random pick is the last one."""
        rows = {
            name: self._picked_cells(columns) | self._judged_row(name, columns)
            for name, columns in self.data.critics.items()
        }
        base = self.means.mean(next(iter(self.picked.values())).base_rate)
        picked = {"off_support_rate": base, "base_rate": base, "off_over_base": base / base}
        rows[RANDOM] = {name: self.means.cell({NO_SEED: x}) for name, x in picked.items()}
        rows[RANDOM] |= self._judged_row(RANDOM, {NO_SEED: RANDOM})
        return rows

    def _judged_row(self, name: str, columns: Mapping[int, str]) -> dict[str, StoredCell]:
        cells: dict[str, StoredCell] = {}
        for judge in self.data.judges:
            marks = {"circular": True} if judge == REFERENCE and is_circular(name) else {}
            for group, keep in self.data.slices.items():
                cell_of = partial(self.means.cell, replicates=not group)
                for name_, cell_ in self._judged_cells(judge, columns, keep, cell_of).items():
                    metric = SelectionMetric(name_, self.data.size, judge, group)
                    cells[str(metric)] = with_more(cell_, **marks)
        return cells

    def _judged_cells(
        self, judge: str, columns: Mapping[int, str], keep: Mask, cell_of: Callable[..., StoredCell]
    ) -> dict[str, StoredCell]:
        parts = {seed: self.judged[judge, column] for seed, column in columns.items()}
        means = self.means
        tau = {seed: means.mean(part.tau_b, keep) for seed, part in parts.items()}
        regret = {seed: means.regret(part, keep) for seed, part in parts.items()}
        undefined = sum(int(np.isnan(part.tau_b[keep]).sum()) for part in parts.values())
        return {
            "tau_b": cell_of(tau, **({"undefined": undefined} if undefined else {})),
            "nregret": cell_of(regret),
            "pool_nregret": cell_of(
                {seed: means.mean(part.pool_regret, keep) for seed, part in parts.items()}
            ),
            "best_pick": means.cell(
                {seed: means.mean(part.best_pick, keep) for seed, part in parts.items()},
                replicates=False,
            ),
        }

    def _picked_cells(self, columns: Mapping[int, str]) -> dict[str, StoredCell]:
        parts = {seed: self.picked[column] for seed, column in columns.items()}
        means = self.means
        off = {seed: means.mean(part.off_support[:, -1]) for seed, part in parts.items()}
        base = {seed: means.mean(part.base_rate) for seed, part in parts.items()}
        high = {seed: means.mean((part.score > HIGH).mean(axis=1)) for seed, part in parts.items()}
        toward = {seed: means.mean(part.support_correlation) for seed, part in parts.items()}
        return {
            "median_selected": cell({s: float(np.median(p.score)) for s, p in parts.items()}),
            f"share_above_{HIGH}": means.cell(high),
            "off_support_rate": means.cell(off),
            "base_rate": means.cell(base),
            "off_over_base": means.cell({seed: off[seed] / base[seed] for seed in parts}),
            "support_score_correlation": means.cell(toward),
        }

    def curves(self) -> dict[str, Any]:
        """Every scorer over K under every judge, as ``curves.json`` holds it."""
        judges = {}
        for judge in self.data.judges:
            first = self.judged[judge, next(iter(self.data.scores))]
            judges[judge] = {
                "oracle": _over_k(self.means.mean, first.oracle).point.tolist(),
                "random": float(self.means.mean(first.random).point),
                "critics": {
                    name: self._curve(judge, columns) for name, columns in self.data.critics.items()
                },
            }
        content: dict[str, Any] = jsonable({"k": list(self.data.k), "judges": judges})
        return content

    def _curve(self, judge: str, columns: Mapping[int, str]) -> dict[str, Any]:
        """Value, normalized regret and off-support rate over K, of all queries and by group."""
        groups = {name: self._curve_of(judge, columns, k) for name, k in self.data.groups.items()}
        return self._curve_of(judge, columns, self.data.slices[""]) | {"groups": groups}

    def _curve_of(self, judge: str, columns: Mapping[int, str], keep: Mask) -> dict[str, Any]:
        places = range(len(self.data.k))
        mean = partial(self.means.mean, keep=keep)
        value, regret, off = {}, {}, {}
        for seed, column in columns.items():
            part = self.judged[judge, column]
            value[seed] = _over_k(mean, part.value)
            regret[seed] = _stack([self.means.regret(part, keep, at) for at in places])
            off[seed] = _over_k(mean, self.picked[column].off_support)
        return {
            "value": curve_cell(value),
            "nregret": curve_cell(regret),
            "off_support": curve_cell(off),
        }


def _stack(estimates: list[Estimate]) -> Estimate:
    points = np.array([estimate.point for estimate in estimates])
    return Estimate(points, np.stack([estimate.draws for estimate in estimates], axis=-1))


def _over_k(mean: Callable[[Any], Estimate], columns: Any) -> Estimate:
    return _stack([mean(columns[:, at]) for at in range(columns.shape[1])])


def fixed_query_table(
    measured: MeasuredPicks, rollouts: Mapping[str, StoredCell], reliable: bool
) -> dict[str, Any]:
    """The main table: every scorer under every judge, with each selector's ``rollout_delta``.

    Cells of a reference ensemble that was not admitted are marked.
    """
    data, rows = measured.data, {}
    groups = product(JUDGED, data.slices)
    by_reference = [str(SelectionMetric(m, data.size, group=group)) for m, group in groups]
    for name, row in measured.rows.items():
        rows[name] = dict(row)
        for metric in [m for m in by_reference if m in row and not reliable]:
            rows[name][metric] = row[metric] | {"unreliable": True}
        if name in rollouts:
            rows[name]["rollout_delta"] = rollouts[name]
    for selector in rollouts:  # the reference's own pick and the logged action have no scores
        rows.setdefault(selector, {"rollout_delta": rollouts[selector]})
    caption = f"Fixed-query action selection at K={data.size}, {len(data.trajectory):,} queries"
    notes = [
        f"tau_b_{data.size} and nregret_{data.size} are judged by the reference ensemble; "
        "JUDGE/METRIC is the same under another judge, METRIC/GROUP within one distance group.",
        "nregret: mean regret over mean headroom; 0 is the best candidate of each pool, 1 a random "
        "one, above 1 worse than random.",
        "pool_nregret: the mean over pools of each pool's own normalized regret, which gives pools "
        "with little at stake the same weight; the paper does not say which of the two it means.",
        "best_pick: share of the pools in which the pick is a best candidate by the judge; pools "
        "in which all candidates are worth the same count.",
        "Intervals: trajectories resampled, pools averaged within a query, over the seed mean.",
        "circular: the scorer belongs to the family of the judge (Bellman-trained), so that its "
        "number is partly built in. unreliable: the reference ensemble did not pass its declared "
        "criteria.",
    ]
    return TABLES["fixed-query"].table(caption, {data.key: rows}, notes)


def function_class_table(measured: MeasuredPicks) -> dict[str, Any] | None:
    """The 2 x 2 of objective and function class; None where no added cell was scored."""
    data, layout = measured.data, function_classes()
    if not any(name in measured.rows for name in names("control")):
        return None
    rows = _order_and_regret(measured, (name for row in layout.values() for name in row.values()))
    caption = f"{data.key} fixed-query: objective versus function class, K={data.size}"
    notes = ["raw and nce_mlp are contrastive; td_bilinear and tdq are trained on Bellman targets."]
    return TABLES["function-class"].table(caption, {data.key: rows}, notes, layout=layout)


def _order_and_regret(
    measured: MeasuredPicks, scorers: Iterable[str]
) -> dict[str, dict[str, StoredCell]]:
    data = measured.data
    pairs = product((REFERENCE, *(j for j in data.judges if j != REFERENCE)), JUDGED[:2])
    metrics = [str(SelectionMetric(name, data.size, judge)) for judge, name in pairs]
    return {
        name: {m: measured.rows[name][m] for m in metrics if m in measured.rows[name]}
        for name in scorers
        if name in measured.rows
    }


def factored_table(measured: MeasuredPicks) -> dict[str, Any] | None:
    """The objective by its factors; None where no critic that takes it apart was scored."""
    data = measured.data
    if not any(name in measured.rows for name in names("factor")):
        return None
    cells = {entry.name: entry for entry in CRITICS.values() if entry.cell is not None}
    rows = _order_and_regret(measured, cells)
    caption = f"{data.key} fixed-query: the objective, factored, K={data.size}"
    notes = ["Monte-Carlo estimates know the behaviour's future alone: they have no optimal cell."]
    layout = {name: {"cell": cells[name].cell, "ideal": cells[name].ideal} for name in rows}
    return TABLES["factored"].table(caption, {data.key: rows}, notes, layout=layout)


def function_classes() -> dict[str, dict[str, str]]:
    """Objective -> function class -> critic: the paper's 2 x 2, two critics and two controls."""
    found: dict[tuple[str, str], str] = {
        (entry.trained_by, entry.network): entry.name
        for entry in CRITICS.values()
        if entry.group in ("main", "control")
    }
    return {
        row: {"bilinear": found[objective, "bilinear"], "mlp": found[objective, "mlp"]}
        for row, objective in (("contrastive", "contrastive"), ("td", "bellman"))
    }


PICK_NORM: Final = "pick-norm"


def pick_norm_table(measured: MeasuredPicks) -> dict[str, Any] | None:
    """The rows of the critics whose norms are stored; None where none are."""
    data = measured.data
    rows = {
        name: _row(measured, normed)
        for name, columns in data.critics.items()
        if (normed := {seed: c for seed, c in columns.items() if c in data.norms})
    }
    if not rows:
        return None
    caption = f"Norm of phi of the pick over that of a random candidate, {data.key}"
    return TABLES[PICK_NORM].table(caption, {data.key: rows})


def _row(measured: MeasuredPicks, columns: Mapping[int, str]) -> dict[str, StoredCell]:
    """The norm of a random candidate, and for every K that of the pick in units of it."""
    data, means = measured.data, measured.means
    at_k = {seed: pick_norms(data, column) for seed, column in columns.items()}
    alone = {seed: means.mean(norms[:, 0]) for seed, norms in at_k.items()}
    cells = {"random_norm": means.cell(alone, replicates=False)}
    for place, k in list(enumerate(data.k))[1:]:
        ratio = {seed: means.mean(norms[:, place]) / alone[seed] for seed, norms in at_k.items()}
        cells[f"pick_norm_{k}"] = means.cell(ratio, replicates=False)
    return cells


def pick_norms(data: TaskSelection, column: str) -> Floats:
    """Expected norm of the best of K by score, ``[queries, n_k]``; the first K is 1."""
    norms = data.norms[column][..., : data.size].astype(np.float64)
    scores, flat = (x.reshape(-1, data.size) for x in (data.candidate_scores(column), norms))
    return by_query(best_of_k(scores, flat, data.k), len(norms))


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
        own = self.data.candidate_scores(ideal)
        scores = {seed: self.data.candidate_scores(column) for seed, column in columns.items()}
        fixed = {seed: self._fixed(x, own) for seed, x in scores.items()}
        pooled = {seed: self._pooled(x, own) for seed, x in scores.items()}
        return {
            f"{start}{term}": self.measured.means.cell(
                {s: x[term] for s, x in terms.items()}, replicates=False
            )
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
