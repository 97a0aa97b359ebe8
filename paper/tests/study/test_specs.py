"""A table's spec: which metrics it knows, how they are called, and how cells are shown."""

from __future__ import annotations

from typing import Any

import pytest

from toptail.errors import InputError
from toptail.report.table import Cell
from toptail_paper.study.compare import Comparison, beside, where_compared
from toptail_paper.study.show import show
from toptail_paper.study.tables import Metric, TableSpec, cell

SPEC = TableSpec(
    "made-up",
    "A title",
    "A caption.",
    {
        "tau": "τ",
        "near_{n}": "{n} nearest",
        "{judge}/tau": "{judge}: τ",
        "share": Metric("Share", 2, percent=True),
        "seeds": Metric("Seeds", show=lambda ours, _: Cell(str(len(ours["seeds"])))),
        "kept": None,
    },
)


def stored(*metrics: str, task: str = "t", **more: Any) -> dict[str, Any]:
    cells = {metric: cell({1: 0.5, 2: 0.7}, (0.4, 0.8)) for metric in metrics}
    spec = TableSpec("made-up", "", "", dict.fromkeys(cells))
    return spec.table("Made up", {task: {"raw": cells}}) | more


def headings(*metrics: str) -> list[str]:
    return [column.label for column in show(SPEC, stored(*metrics)).columns[1:]]


def test_columns_stand_in_the_specs_order_and_patterns_as_stored() -> None:
    assert headings("share", "b/tau", "near_5", "a/tau", "tau", "kept") == [
        *("τ", "b: τ", "5 nearest", "a: τ", "Share"),
    ]


def test_a_metric_that_is_only_stored_has_no_column_and_no_row() -> None:
    both = stored("tau", "kept")
    both["rows"]["t"]["mine"] = {"kept": cell({1: 0.1})}
    assert [row[0].text for row in show(SPEC, both).rows] == ["Raw bilinear"]


def test_an_unknown_metric_is_refused_where_it_is_made_and_where_it_is_shown() -> None:
    for known in ("near_5", "a/tau", "kept"):
        SPEC.table("Made up", {"t": {"raw": {known: cell({1: 0.0})}}})
    for unknown in ("taus", "near_", "a/b/tau"):
        with pytest.raises(InputError, match=f"'made-up' has the metric '{unknown}'"):
            SPEC.table("Made up", {"t": {"raw": {unknown: cell({1: 0.0})}}})
        with pytest.raises(InputError, match=f"'made-up' has the metric '{unknown}'"):
            show(SPEC, stored(unknown))


def test_a_view_of_another_specs_table_shows_what_it_names() -> None:
    view = TableSpec("view", "", "", {"tau": "τ"}, of="made-up")
    assert [column.label for column in show(view, stored("tau", "share")).columns] == [
        *("Critic", "t"),
    ]
    assert view.stored == "made-up"


def test_a_table_is_written_without_the_papers_cells() -> None:
    assert SPEC.table("Made up", {}, ["A note."], k=3) == {
        "label": "made-up",
        "caption": "Made up",
        "rows": {},
        "paper": {},
        "notes": ["A note."],
        "k": 3,
    }


def test_cells_as_numbers_percentages_and_in_ways_of_their_own() -> None:
    (row,) = show(SPEC, stored("tau", "share", "seeds")).rows
    assert [shown.plain for shown in row[1:]] == [
        *("0.600 ± 0.141 [0.400, 0.800]", "60 ± 14 % [0.40, 0.80]", "2"),
    ]


def test_settings_of_a_task_head_their_columns() -> None:
    across = TableSpec("made-up", "", "", {"tau": "Order", "kept": "Kept"}, tasks="columns")
    rows = stored("tau", "kept", task="world@R=0.25")
    assert [column.label for column in show(across, rows).columns] == [
        *("Critic", "R = 0.25: order", "R = 0.25: kept"),
    ]


def test_marks_and_triangles() -> None:
    ours = {"mean": 0.5, "std": 0.01, "low": 0.4, "high": 0.6, "circular": True}
    pair = Comparison("t", "raw", "tau", ours, {"mean": 0.3})
    assert beside(ours, pair, 2).plain == "▲ 0.50 ± 0.01† [0.40, 0.60], paper 0.30"
    assert beside(ours, pair, 2, intervals=False).detail == "paper 0.30"


def test_a_cell_that_is_not_computable() -> None:
    assert beside({"mean": None, "std": None, "seeds": {}}, None, 3).plain == "n/a"
    assert beside(None, None, 3).plain == "n/a"


def test_words_about_the_paper_are_there_where_its_numbers_are() -> None:
    text = "Ours⟦, and the paper's⟧. ⟦Hollow: the|The⟧ line is chance."
    assert where_compared(text, compared=True) == (
        "Ours, and the paper's. Hollow: the line is chance."
    )
    assert where_compared(text, compared=False) == "Ours. The line is chance."
