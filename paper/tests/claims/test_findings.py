"""Parts make a status; intervals leave parts open; statuses are the same wherever they are read."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from toptail_paper.claims.criteria import WEAKLY, above, at_least, at_most, below, between, exactly
from toptail_paper.claims.criteria import near as within
from toptail_paper.claims.findings import (
    STATUSES,
    Answer,
    Finding,
    Status,
    both,
    by_construction,
    computable,
    count_seen,
    from_parts,
    on_its_tasks,
)
from toptail_paper.claims.ledger import counted, render_markdown, tally
from toptail_paper.claims.numbers import Number, difference, from_seeds, quotient, spread_ratio
from toptail_paper.study import page

ONE = Number(1.0)


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([True, True], "seen"),
        ([True, None], "inconclusive"),
        ([None, None], "inconclusive"),
        ([False, False], "not seen"),
        ([False, None], "not seen"),
        ([True, False], "depends"),
        ([True, False, None], "depends"),
    ],
)
def test_parts_make_a_status(answers: list[Answer], status: str) -> None:
    finding = from_parts({"Puzzle": dict(zip("abc", answers, strict=False))}, ONE, "x.")
    assert finding.status == status
    assert ("does not hold for" in finding.comment) == (False in answers and len(set(answers)) > 1)
    assert ("Open" in finding.comment) == (None in answers)


def test_a_finding_that_rests_on_no_number_is_left_open() -> None:
    decided: tuple[Status, ...] = ("seen", "not seen", "depends")
    for status in decided:
        found = computable(Finding(status, math.nan, None, "x.", on="the task"))
        assert (found.status, found.on) == ("inconclusive", "")
        assert "could not be computed" in found.comment
    whole = Finding("not seen", 1.0, None, "x.")
    assert computable(whole) is whole


@pytest.mark.parametrize(
    ("condition", "holds", "fails", "left_open"),
    [
        (at_most(0.5), (0.1, 0.5), (0.51, 0.9), (0.4, 0.6)),
        (at_least(0.5), (0.5, 0.9), (0.1, 0.49), (0.4, 0.6)),
        (below(0.5), (0.1, 0.49), (0.5, 0.9), (0.4, 0.5)),
        (above(0.5), (0.51, 0.9), (0.1, 0.5), (0.5, 0.6)),
        (between(0.4, 0.6), (0.4, 0.6), (0.7, 0.9), (0.1, 0.9)),
        (within(0.5, 0.1), (0.45, 0.55), (0.7, 0.9), (0.0, 3.0)),
        (exactly(0.0), (0.0, 0.0), (0.1, 0.2), (-0.1, 0.2)),
        (WEAKLY, (-0.5, 0.5), (-0.9, -0.6), (-2.0, 0.9)),
        (at_least(0.1) & below(1.0), (0.1, 0.9), (1.0, 2.0), (-5.0, 8.0)),
    ],
)
def test_an_interval_meets_misses_or_leaves_open(
    condition: object,
    holds: tuple[float, float],
    fails: tuple[float, float],
    left_open: tuple[float, float],
) -> None:
    def answer(ends: tuple[float, float]) -> Answer:
        return condition.answer(Number(sum(ends) / 2, ends))  # type: ignore[attr-defined, no-any-return]

    assert (answer(holds), answer(fails), answer(left_open)) == (True, False, None)


def test_without_an_interval_the_mean_decides() -> None:
    wide = Number(0.4, (0.0, 1.0))
    assert at_most(0.5).answer(wide) is None
    assert at_most(0.5).answer(Number(0.4)) is True


def test_it_is_counted_on_how_many_tasks() -> None:
    parts: dict[str, dict[str, Answer]] = {
        "PointMaze": {"a": True},
        "AntMaze": {"b": True, "c": None},
        "HumanoidMaze": {"d": None, "e": False},
    }
    said = " Seen on 1 of 3 tasks: PointMaze; not on HumanoidMaze; open on AntMaze."
    assert count_seen(parts) == said
    finding = from_parts(parts, ONE, "x.", {"all together": False})
    assert finding.status == "depends"
    assert said in finding.comment
    assert "does not hold for: e, all together." in finding.comment
    assert from_parts({"PointMaze": {"a": True}}, ONE, "x.").comment == "x."


def test_another_task_is_a_status_of_its_own() -> None:
    finding = Finding("not seen", 1.0, None, "x.")
    assert on_its_tasks(finding, ["PointMaze"], ["PointMaze"]) is finding
    part = on_its_tasks(finding, ["PointMaze"], ["PointMaze", "AntMaze"])
    assert part.comment == "x. Decided on PointMaze alone; not in this ledger: AntMaze."
    assert on_its_tasks(finding, ["PointMaze"], ["AntMaze"]).status == "other task"
    split = Finding("depends", 1.0, None, "x.", on="the critic")
    assert on_its_tasks(split, ["PointMaze"], ["AntMaze"]).on == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("seen", "true by construction"),
        ("inconclusive", "true by construction"),
        ("depends", "depends"),
        ("not seen", "not seen"),
    ],
)
def test_what_cannot_fail_is_true_by_construction_unless_it_fails(
    before: Status, after: Status
) -> None:
    assert by_construction(Finding(before, 1.0, None, "x.")).status == after


@pytest.mark.parametrize(
    ("answers", "answer"),
    [((True, True), True), ((True, None), None), ((None, False), False), ((True, False), False)],
)
def test_a_part_that_asks_two_things_holds_if_both_do(
    answers: tuple[Answer, Answer], answer: Answer
) -> None:
    assert both(*answers) is answer


def test_a_statement_depends_on_the_task_where_each_task_has_one_answer() -> None:
    split: dict[str, dict[str, Answer]] = {
        "PointMaze": {"a": True, "b": None},
        "Puzzle": {"c": False},
    }
    assert from_parts(split, ONE, "x.", on="the critic").on == "the task"
    mixed: dict[str, dict[str, Answer]] = {
        "PointMaze": {"a": True, "b": False},
        "Puzzle": {"c": True},
    }
    assert from_parts(mixed, ONE, "x.", on="the critic").on == "the critic"
    assert from_parts({"Puzzle": {"c": True}}, ONE, "x.", on="the critic").on == ""


def test_spreads_are_compared_by_fishers_f() -> None:
    wide, narrow = (from_seeds({str(i): s * i for i in range(5)}) for s in (2.0, 1.0))
    ratio = spread_ratio(wide, narrow)
    # F(0.975; 4, 4) = 9.6045, whose square root is 3.0991.
    assert ratio.mean == pytest.approx(2.0)
    assert ratio.interval == pytest.approx((2 / 3.0991, 2 * 3.0991), rel=1e-4)
    assert spread_ratio(wide, from_seeds({"1": 1.0})).interval is None


def test_every_reader_of_statuses_knows_them_all() -> None:
    assert set(STATUSES) == {*page.STATUSES, *page.RARER}
    entries: list[Any] = [
        {"id": s, "sentence": "x", "where": "abstract", "status": s, "depends_on": None,
         "number": 1.0, "interval": None, "interval_over": None, "run": "", "comment": "y.",
         "also": [], "changed": None, "settled": None}
        for s in STATUSES
    ]  # fmt: skip
    assert tally(entries) == dict.fromkeys(STATUSES, 1)
    assert dict(page.claim_tally(entries)) == dict.fromkeys(STATUSES, 1)
    assert tally([]) == {"seen": 0, "depends": 0, "not seen": 0}
    assert all(f"**{s}**" in render_markdown(entries) for s in STATUSES)
    assert counted(entries[:3]) == "3 statements: 1 seen, 1 depends, 1 not seen"
    assert counted([entries[1]] * 2) == "2 statements: 0 seen, 2 depend, 0 not seen"


def test_intervals_of_differences_and_ratios_are_those_of_independent_numbers() -> None:
    x, y = Number(0.6, (0.5, 0.7)), Number(0.3, (0.2, 0.4))
    rng = np.random.default_rng(0)
    draws = rng.normal([[0.6], [0.3]], 0.1 / 1.96, (2, 200_000))
    for made, drawn in (
        (difference(x, y), draws[0] - draws[1]),
        (quotient(x, y), draws[0] / draws[1]),
    ):
        assert made.interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.02)
    assert difference(x, Number(0.3)).interval is None
    assert quotient(Number(0.6), y).interval is None


@pytest.mark.parametrize(
    "x", [Number(0.6, (0.5, 0.8)), Number(0.1, (-0.1, 0.2)), Number(-0.3, (-0.5, -0.2))]
)
def test_at_the_ends_of_a_ratio_the_difference_reaches_zero(x: Number) -> None:
    y = Number(0.5, (0.4, 0.55))
    share = quotient(x, y)

    def scaled(r: float) -> Number:
        ends = sorted((r * 0.4, r * 0.55))
        return Number(r * 0.5, (ends[0], ends[1]))

    assert difference(x, scaled(share.low)).low == pytest.approx(0.0, abs=1e-9)
    assert difference(x, scaled(share.high)).high == pytest.approx(0.0, abs=1e-9)


def test_a_ratio_to_what_may_be_zero_is_known_by_nothing() -> None:
    assert quotient(Number(0.6, (0.5, 0.7)), Number(0.1, (-0.1, 0.3))).interval == (
        -math.inf,
        math.inf,
    )
    assert quotient(Number(0.6, (0.5, 0.7)), Number(0.1, (0.05, 0.3))).low == -math.inf
