"""Differences and ratios of one task are paired by stored replicates; others stay independent."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper.tests.semantics.results import results
from toptail_paper.claims import CLAIMS
from toptail_paper.claims.criteria import Criterion, above, at_most
from toptail_paper.claims.findings import Finding
from toptail_paper.claims.grids import SETTLED, CellCheck, SettledGrid
from toptail_paper.claims.ledger import stored_results
from toptail_paper.claims.numbers import (
    Number,
    Replicates,
    difference,
    each,
    less,
    number,
    quotient,
)
from toptail_paper.study import replicates
from toptail_paper.study.tables import replicated_cell, write_tables
from toptail_paper.triples.bootstrap import TrajectoryBootstrap

RNG = np.random.default_rng(5)
TRAJECTORY = np.repeat(np.arange(12), 4)
COMMON = RNG.normal(size=(12, 1)).repeat(4, axis=1).ravel()
"""What a trajectory adds to every critic: numbers rise and fall together."""
COLUMNS = {
    critic: {seed: mean + COMMON + 0.2 * RNG.normal(size=48) for seed in (42, 43)}
    for critic, mean in (("tdq", 5.0), ("raw", 4.6))
}


def resampling() -> TrajectoryBootstrap:
    return TrajectoryBootstrap(TRAJECTORY, np.random.default_rng(0), 400)


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Any]:
    """A table with two critics on a task, and the same numbers on another, as a study has them."""
    bootstrap = resampling()
    rows = {
        critic: {"tau": replicated_cell({s: bootstrap.mean(x) for s, x in seeds.items()})}
        for critic, seeds in COLUMNS.items()
    }
    table = {"label": "main", "rows": {"PointMaze": rows, "AntMaze": rows}, "paper": {}}
    write_tables(tmp_path / "tables", {"main": table})
    return dict(stored_results(tmp_path))


def by_hand() -> dict[str, list[float]]:
    """Every critic's mean in every resample, row by row."""
    found: dict[str, list[float]] = {critic: [] for critic in COLUMNS}
    for drawn in resampling().times:
        for critic, seeds in COLUMNS.items():
            total, count = 0.0, 0
            for column in seeds.values():
                for row, trajectory in enumerate(TRAJECTORY):
                    for _ in range(drawn[trajectory]):
                        total, count = total + column[row], count + 1
            found[critic].append(total / count)
    return found


def test_a_difference_and_a_ratio_have_the_paired_interval(tables: dict[str, Any]) -> None:
    slow = by_hand()
    raw, tdq = (number(tables, "main", "PointMaze", c, "tau") for c in ("raw", "tdq"))
    for combined, of in (
        (difference(raw, tdq), operator.sub),
        (quotient(raw, tdq), operator.truediv),
    ):
        draws = [of(a, b) for a, b in zip(slow["raw"], slow["tdq"], strict=True)]
        assert combined.interval == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=1e-5)
        assert combined.mean == pytest.approx(of(raw.mean, tdq.mean))
        assert combined.over == "whole trajectories, paired"
    assert raw.interval is not None
    paired = difference(raw, tdq).interval
    assert paired is not None
    assert paired[1] - paired[0] < 0.3 * (raw.high - raw.low)


def test_numbers_of_two_tasks_or_without_replicates_are_independent(
    tables: dict[str, Any],
) -> None:
    raw = number(tables, "main", "PointMaze", "raw", "tau")
    elsewhere = number(tables, "main", "AntMaze", "tdq", "tau")
    without = {name: x for name, x in tables.items() if name != replicates.REPLICATES}
    alone = number(without, "main", "PointMaze", "tdq", "tau")
    tdq = number(tables, "main", "PointMaze", "tdq", "tau")
    for other in (elsewhere, alone):
        for combined in (difference(raw, other), quotient(raw, other)):
            assert combined.over == "whole trajectories, both numbers as independent"
    wide, narrow = difference(raw, alone), difference(raw, tdq)
    assert wide.high - wide.low > narrow.high - narrow.low


def test_pairing_decides_what_independence_leaves_open(tables: dict[str, Any]) -> None:
    leads = less(each("main", "tau", ("tdq",)), each("main", "tau", ("raw",)))
    asked = Criterion(leads, ("PointMaze",), above(0.0), "a lead {condition}")
    without = {name: x for name, x in tables.items() if name != replicates.REPLICATES}
    assert asked(tables).status == "seen"
    assert "Taken as independent" not in asked(tables).comment
    assert asked(without).status == "inconclusive"
    assert "Taken as independent: no bootstrap replicates" in asked(without).comment


def test_a_reference_that_may_be_zero_is_no_yardstick() -> None:
    """One whose interval reaches zero bounds nothing; a few replicates below zero are outliers."""

    def of(mean: float, draws: Any) -> Number:
        low, high = np.quantile(draws, [0.025, 0.975])
        return Number(mean, (low, high), replicates=Replicates(draws, "PointMaze"))

    x = of(1.0, np.full(200, 1.0))
    share = quotient(x, of(0.1, np.linspace(-0.1, 0.3, 200)))
    assert (share.low, share.high) == (-np.inf, np.inf)
    draws = np.concatenate([np.linspace(0.5, 1.5, 197), [-0.1, -0.1, 0.0]])
    share = quotient(x, of(1.0, draws))
    assert 0.5 < share.low < 1 < share.high < 2.1


def test_many_cells_have_fewer_replicates_and_gone_ones_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicates, "MOST_BYTES", 400)
    draws = {f"main/{i}/tau": np.arange(50.0) for i in range(10)}
    replicates.write_replicates(tmp_path / "replicates", {"PointMaze": draws, "AntMaze": draws})
    kept = replicates.read_replicates(tmp_path)
    assert {len(x) for x in kept["PointMaze"].values()} == {10}
    replicates.write_replicates(tmp_path / "replicates", {"AntMaze": draws})
    assert list(replicates.read_replicates(tmp_path)) == ["AntMaze"]


def test_a_cell_of_two_tables_has_its_replicates_once() -> None:
    cell = {"mean": 1.0, "draws": np.arange(3.0)}
    table = {"rows": {"PointMaze": {"raw": {"tau": cell}}}}
    clean, found = replicates.split_tables({"first": table, "second": table})
    assert list(found["PointMaze"]) == ["first/raw/tau"]
    plain = {"rows": {"PointMaze": {"raw": {"tau": {"mean": 1.0}}}}}
    assert clean == {"first": plain, "second": plain}


def grid(*auc: float) -> dict[str, Any]:
    cells = {
        f"tdq[x={i}]": {
            "settings": {"x": f"{i}", "data": "scene-play-v0"},
            "metrics": {"auc": {"mean": x, "low": x - 0.01, "high": x + 0.01}},
        }
        for i, x in enumerate(auc)
    }
    return {"cells": {"scene-play-v0": cells}}


READ: dict[str, tuple[dict[str, float], dict[str, float]]] = {
    "norm-drift": ({"regret": 0.5, "share/norm_cap": 0.8}, {"regret": 0.5, "share/norm_cap": 0.3}),
    "tdq-weak-on-cube": ({"auc": 0.55}, {"auc": 0.97}),
    "hybrid-lowest-on-puzzle": ({"auc": 0.6}, {"auc": 0.999}),
    "bounded-order": ({"tau": 0.05, "auc": 0.85}, {"tau": 0.05, "auc": 0.5}),
    "cosine-training-loses": ({"tau": 0.05, "auc": 0.85}, {"tau": 0.3, "auc": 0.93}),
}
"""Numbers of a grid's cell in which each statement holds, and in which it does not."""


def test_every_statement_that_reads_a_grid_is_shown_to_need_it() -> None:
    asked = {claim.id: claim for claims in CLAIMS.values() for claim in claims if claim.grids}
    assert set(asked) == set(READ)
    failing = Finding("not seen", 0.0, None, "Comment.")
    for name, numbers in READ.items():
        (own,) = asked[name].grids
        data = own.where.get("data", "scene-play-v0")
        for metrics, expected in zip(numbers, ("depends", "not seen"), strict=True):
            cells = {m: {"mean": x, "low": x - 0.01, "high": x + 0.01} for m, x in metrics.items()}
            content = {"cells": {data: {"x": {"settings": {"data": data}, "metrics": cells}}}}
            tables = results() | {SETTLED: {own.names[0]: content}}
            assert own.ask(failing, tables).status == expected, name


def test_a_cell_of_a_settled_grid_turns_not_seen_into_depends() -> None:
    main = {"mean": 0.9, "low": 0.89, "high": 0.91, "seeds": {}}
    tables: dict[str, Any] = {"retrieval": {"rows": {"Scene": {"cosine": {"auc": main}}}}}
    asked = SettledGrid(("g",), (CellCheck("auc", at_most(-0.2), ("cosine",)),), "a low AUC")
    for status, cells, expected in (
        ("not seen", (0.5, 0.95), "depends"),
        ("not seen", (0.85, 0.95), "not seen"),
        ("not seen", (0.7,), "not seen"),  # open
        ("seen", (0.5,), "seen"),
        ("inconclusive", (0.5,), "inconclusive"),
    ):
        finding = asked.ask(
            Finding(status, 0.0, None, "Comment."),  # type: ignore[arg-type]
            tables | {SETTLED: {"g": grid(*cells)}},
        )
        assert finding.status == expected
        assert f"of {len(cells)} cells" in finding.comment
    untouched = Finding("not seen", 0.0, None, "Comment.")
    assert asked.ask(untouched, tables) == untouched
    elsewhere = SettledGrid(("g",), asked.asked, "a low AUC", {"x": "1"})
    finding = elsewhere.ask(untouched, tables | {SETTLED: {"g": grid(0.5, 0.95)}})
    assert finding.status == "not seen"
