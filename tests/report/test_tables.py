"""The tables that every rendering shares."""

from __future__ import annotations

from typing import Any

import pytest

from toptail.report.content import tables_of
from toptail.report.scorer_tables import numbers_table
from toptail.report.table import Cell, Column, Table
from toptail.report.tables import captured_table, comparisons_table, groups_table, verdict_table


def texts(table: Table) -> list[list[str]]:
    return [[cell.plain for cell in row] for row in table.rows]


def test_every_part_of_an_audit_has_its_table(audit: dict[str, Any]) -> None:
    assert [table.name for table in tables_of(audit)] == [
        "verdicts",
        "values",
        "captured",
        "ordering",
        "off-support",
        "seeds",
        "groups",
        "comparisons",
        "checks",
    ]


def test_absent_parts_have_no_table(fifteen: dict[str, Any]) -> None:
    names = {table.name for table in tables_of(fifteen)}
    assert names == {"verdicts", "values", "captured", "ordering", "comparisons", "checks"}


def test_verdicts(audit: dict[str, Any]) -> None:
    assert texts(verdict_table(audit))[-1] == [
        "cursed",
        "unsafe",
        "4",
        "2",
        "8",
        "−0.021",
        "−0.30 [−0.38, −0.22]",
    ]


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
    assert rows[0][:3] == ["near (60 queries, K = 16)", "perfect", "safe"]


def test_numbers_of_a_scorer_have_one_row_for_each_k(audit: dict[str, Any]) -> None:
    table = numbers_table(audit, "noisy")
    assert [row[0].text for row in table.rows] == ["1", "2", "4", "8", "16"]
    labels = [column.label for column in table.columns]
    row = dict(zip(labels, texts(table)[-1], strict=True))
    assert row["Value"] == "0.538 [0.518, 0.558]"
    assert row["Normalized regret"] == "0.55"
    assert row["Divergence, at most (nats)"] == "1.84"  # ln 16 − 15/16


def test_a_table_with_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="'t' has a row that does not fit"):
        Table("t", "", "", (Column("a"),), ((Cell("1"), Cell("2")),))


def test_blocks_repeat_the_first_column_and_lose_nothing() -> None:
    columns = tuple(Column(str(i)) for i in range(8))
    table = Table("t", "", "", columns, (tuple(Cell(str(i)) for i in range(8)),))
    rows = [[cell.text for cell in block.rows[0]] for block in table.blocks(3)]
    assert rows == [["0", "1", "2", "3"], ["0", "4", "5", "6"], ["0", "7"]]
