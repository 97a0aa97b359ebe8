"""The report is what is made of stored files, and has no number of its own."""

from __future__ import annotations

import re
from typing import Any

import pytest

from toptail.errors import InputError
from toptail_paper.claims import report as module
from toptail_paper.claims.pages import REPORT
from toptail_paper.claims.report import printed, report, template

NAMES = r"c74733e|2532265|95 %|2-D|0/1|−1/0|K = 64|^\d\. |γ\^d"
"""What has a digit and is no result: commits, the level of intervals, names, a list's numbers."""


@pytest.fixture(scope="module")
def made() -> str:
    return report()


def test_the_report_is_what_is_made(made: str) -> None:
    assert REPORT.read_text(encoding="utf-8") == made, "run python -m toptail_paper.claims.pages"


def test_every_number_is_a_placeholder() -> None:
    text = re.sub(r"\{\{.+?\}\}|\]\(.+?\)|`.+?`", "", template(), flags=re.DOTALL)
    assert re.findall(r".*\d.*", re.sub(NAMES, "", text, flags=re.MULTILINE)) == []


def test_every_section_begins_with_its_result(made: str) -> None:
    sections = made.split("\n## ")[1:]
    assert len(sections) == 10
    for section in sections:
        assert re.match(r".+\n\n\*\*[^*]+\.", section), section[:60]


def test_the_sentence_about_central_claims_fits_their_statuses(made: str) -> None:
    """Where a status changes, the first sentence of the section has to be written anew."""
    table = made.split("## Scope and claims")[1].split("## Method")[0]
    rows = [row.split(" | ")[-1].split()[0] for row in re.findall(r"^\| (.+) \|$", table, re.M)]
    assert rows[1:] == ["seen", "seen", "depends", "depends", "seen", *["depends"] * 3]


@pytest.mark.parametrize(
    ("found", "form", "text"),
    [
        (1234, "n", "1,234"),
        ({"mean": -0.016, "low": -0.03, "high": 0.004}, "2ci", "−0.02 [−0.03, 0.00]"),
        ({"mean": 0.0125, "low": 0.008, "high": 0.0174}, "+4ci", "+0.0125 [0.0080, 0.0174]"),
        ({"mean": 0.978, "low": 0.972, "high": 0.983}, "%ci", "98 % [97, 98]"),
        ({"mean": 0.00537}, "2m", "5.37"),
        ({"mean": 0.6, "seeds": {"0": 0.85, "1": 0.5}}, "seeds%", "85 % and 50 %"),
        (0.056793, "3", "0.057"),
    ],
)
def test_a_number_is_written_in_its_form(found: Any, form: str, text: str) -> None:
    assert module._written(found, form) == text


def test_a_printed_table_is_read_by_row_column_and_line() -> None:
    table, column = "Selection at K = 64", "Rollouts: Δ against random"
    assert printed(table, "Hybrid", column) == "+0.0105"
    assert printed(table, "Hybrid", column, "1") == "[0.0063, 0.0148]"
    assert printed(table, "Hybrid", column, "2") == "−0.018"
    assert printed(table, "TD-Q", "Reference ensemble: τ_b") == "0.70 ± 0.00"
    assert printed("Ordering", "Cosine", "AntMaze") == "0.321 ± 0.001"


@pytest.mark.parametrize(
    "placeholder",
    ["cell semantics main PointMaze tdq nothing 2", "printed Ordering Nobody AntMaze", "what 2"],
)
def test_a_placeholder_that_names_nothing_is_refused(
    placeholder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "template", lambda: f"{{{{{placeholder}}}}}")
    with pytest.raises(InputError, match="names nothing stored"):
        report()


def test_every_link_leads_to_a_heading_that_is_there(made: str) -> None:
    for name, place in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", made):
        page = REPORT.parent / name if name else REPORT
        assert page.exists(), name
        if place:
            headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
            known = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
            assert place in known, f"{name}#{place}"
