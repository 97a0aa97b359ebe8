"""The tables that every rendering shares."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toptail.commands.terminal import print_table
from toptail.report.table import Cell, Column, Table
from toptail.report.tables import (
    MOST_STEPS,
    baseline_table,
    captured_table,
    comparisons_table,
    group_tests_table,
    groups_table,
    heterogeneity,
    numbers_table,
    populations_table,
    steps_table,
    tables_of,
    verdict_table,
)


def texts(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in table.rows]


def test_every_part_of_an_audit_has_its_table(compared: dict[str, Any]) -> None:
    assert [table.name for table in tables_of(compared)] == [
        *("baseline", "verdicts", "populations", "values", "captured", "ordering", "off-support"),
        *("seeds", "groups", "group-tests", "comparisons", "checks"),
    ]


def test_absent_parts_have_no_table(fifteen: dict[str, Any]) -> None:
    names = {table.name for table in tables_of(fifteen)}
    assert names == {"verdicts", "values", "captured", "ordering", "comparisons", "checks"}


def test_verdicts(audit: dict[str, Any]) -> None:
    rows = texts(verdict_table(audit))
    numbers = ["−0.30 [−0.38, −0.22]", "−0.085", "0.473 (K = 4)", "2", "8", "−0.21"]
    assert rows[-1] == ["cursed", "unsafe *", *numbers]
    assert rows[2][:3] == ["uncertain", "inconclusive (needs 340 queries)", "0.15 [0.07, 0.23]"]


def test_drawn_intervals_share_an_axis_with_zero_and_rho(audit: dict[str, Any]) -> None:
    drawn = [row[2].whisker for row in verdict_table(audit).rows]
    assert all(w is not None for w in drawn)
    best, worst = drawn[0], drawn[-1]
    assert best is not None
    assert worst is not None
    # From -0.38, the lowest end shown, to 1.08, the highest.
    assert (worst.low, best.high) == pytest.approx((0, 1))
    assert {w.zero for w in drawn if w} == {best.zero}
    assert (best.zero, best.limit) == pytest.approx((0.38 / 1.46, 0.28 / 1.46))
    audit["scorers"]["cursed"]["gain"]["low"][-1] = None
    assert verdict_table(audit).rows[-1][2].whisker is None


def test_a_baseline_says_what_was_compared(compared: dict[str, Any]) -> None:
    table = baseline_table(compared)
    assert texts(table)[2] == [
        *("cursed", "worse", "−0.120 [−0.145, −0.095]", "16", "The new table is worse at K = 16."),
    ]
    compared["baseline"]["scorers"]["noisy"]["old"] = "noisy_v1"
    compared["baseline"]["scorers"]["perfect"]["old"] = "perfect"
    names = [row[0] for row in texts(baseline_table(compared))]
    assert names[:2] == ["perfect", "noisy (was “noisy_v1”)"]
    for part in ("“old.parquet”", "90 shared queries", "10 only here", "4 only there", "2%"):
        assert part in table.caption


def test_populations_stand_beside_each_other(audit: dict[str, Any]) -> None:
    audit["populations"]["all"]["value"]["noisy"] = 0.123
    table = populations_table(audit)
    assert [column.label for column in table.columns[1:]] == [
        "Audited (100 queries, smallest pool 16)",
        "All pools (103 queries, smallest pool 6)",
    ]
    assert texts(table)[1] == ["noisy", "0.500", "0.123"]
    assert "K = 4" in table.caption


def test_steps_nearest_to_harm_come_first(audit: dict[str, Any]) -> None:
    rows = texts(steps_table(audit, "cursed"))
    assert rows[0] == ["4 → 16", "−0.52 [−0.57, −0.45]"]
    assert len(rows) == MOST_STEPS


def test_captured_share_starts_after_k_1_and_tints_stay_in_range(audit: dict[str, Any]) -> None:
    table = captured_table(audit)
    assert [column.label for column in table.columns[1:]] == ["K = 2", "K = 4", "K = 8", "K = 16"]
    tints = [cell.share for row in table.rows for cell in row[1:]]
    assert all(tint is not None and 0 <= tint <= 1 for tint in tints)


def test_most_significant_comparisons_come_first(audit: dict[str, Any]) -> None:
    audit["comparisons"].reverse()
    audit["comparisons"][0]["p_holm"] = None
    shown = [row[-1].key for row in comparisons_table(audit).rows]
    assert shown[:-1] == sorted(key for key in shown if key is not None)
    assert shown[-1] is None


def test_groups_say_how_many_queries_they_have(audit: dict[str, Any]) -> None:
    rows = texts(groups_table(audit))
    assert len(rows) == 10
    assert rows[0][:4] == ["perfect", "near (60 queries, K = 16)", "safe", "1.00 [0.92, 1.08]"]
    assert rows[1][:2] == ["perfect", "far (40 queries, K = 16)"]
    only = groups_table(audit, ["cursed"])
    assert texts(only) == rows[-2:]
    assert only.rows == groups_table(audit).rows[-2:]  # drawn on the same axis


def test_clearest_differences_between_groups_come_first(audit: dict[str, Any]) -> None:
    audit["group_tests"].reverse()
    rows = texts(group_tests_table(audit))
    assert rows[0] == ["perfect", "near", "far", "+0.12 [0.01, 0.23]", "0.030", "0.050"]
    assert heterogeneity(audit, "noisy") == "all groups alike: p = 0.030"
    audit["group_heterogeneity"]["noisy"] = 0.0001
    assert heterogeneity(audit, "noisy") == "all groups alike: p < 0.001"
    audit["group_heterogeneity"] = None
    assert heterogeneity(audit, "noisy") == ""


def test_numbers_of_a_scorer_have_one_row_for_each_k(audit: dict[str, Any]) -> None:
    table = numbers_table(audit, "noisy")
    assert [row[0].text for row in table.rows] == ["1", "2", "4", "8", "16"]
    labels = [column.label for column in table.columns]
    row = dict(zip(labels, texts(table)[-1], strict=True))
    assert row["Gain / headroom at K = 16"] == "0.45 [0.37, 0.53]"
    assert row["Value"] == "0.538 [0.518, 0.558]"
    assert row["Normalized regret"] == "0.55"
    assert row["Divergence, at most (nats)"] == "1.84"  # ln 16 − 15/16


def test_a_table_with_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'t' has a row that does not fit"):
        Table("t", "", "", (Column("a"),), ((Cell("1"), Cell("2")),))


def test_details_of_several_lines_are_lines_on_the_terminal(capsys: Any) -> None:
    cells = (Cell("TD-Q"), Cell("0.64 ± 0.01", "[0.60, 0.68]\npaper 0.63"))
    print_table(Table("tau", "Order", "", (Column("Critic", "name"), Column("τ")), (cells,)))
    out = capsys.readouterr().out
    assert "\\n" not in out
    lines = [re.sub(r"[^\w.,±\[\] ]", "", x).split("  ")[-1].strip() for x in out.splitlines()]
    at = next(i for i, line in enumerate(lines) if "0.64" in line)
    assert lines[at + 1 : at + 3] == ["[0.60, 0.68]", "paper 0.63"]
