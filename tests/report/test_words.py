"""What a reader meets first: how far *safe* reaches, where it does not hold, in which unit."""

from __future__ import annotations

import copy
import re
from html import unescape
from typing import Any

import pytest

from toptail.audit.views import Interval
from toptail.report.html import render_html
from toptail.report.latex import render_latex
from toptail.report.markdown import render_markdown
from toptail.report.scorer_tables import numbers_table
from toptail.report.sentences import (
    basis_sentences,
    exception_sentences,
    exceptions,
    shared_unseen,
    unseen,
)
from toptail.report.summary import summary_lines
from toptail.report.tables import verdict_table
from toptail.report.text import NOT_MEANT
from toptail.results import AuditResult

Audit = dict[str, Any]

REACH = "up to best of 16 of pools like these"
GROUP = "inconclusive in distance = far (captured −0.03 [−0.11, 0.05])"
UNIT = "unsafe measured in each query's own headroom"


@pytest.fixture
def agreeing(alone: Audit) -> Audit:
    """The same scorer, alike in every group and in both units."""
    return alone | {"other_unit": {"noisy": "safe"}}


def texts_of(audit: Audit) -> dict[str, str]:
    """What each place shows before its first table ends."""
    page = unescape(re.sub(r"<[^>]+>", "", render_html(audit).split("<main>")[1]))
    return {
        "console": "\n".join(summary_lines(audit)),
        "print": repr(AuditResult.from_dict(audit)),
        "notebook": unescape(AuditResult.from_dict(audit)._repr_html_()),
        "page": page.split("How it was computed")[0],
        "markdown": render_markdown(audit).replace("\\", ""),
        "latex": render_latex(audit).replace(r"\ensuremath{-}", "−").replace(r"\allowbreak{}", ""),
    }


PLACES = ["console", "print", "notebook", "page", "markdown", "latex"]


@pytest.mark.parametrize("place", PLACES)
def test_a_group_and_a_unit_that_differ_are_said_first(divided: Audit, place: str) -> None:
    text = texts_of(divided)[place]
    verdict = text.index(REACH)
    assert text.index(GROUP) < verdict + 400
    assert text.index(UNIT) < verdict + 400
    if place == "page":
        assert text.index(GROUP) < text.index("Verdict")  # above the table
    if place == "console":  # in the very line that says safe
        (line,) = [line for line in summary_lines(divided) if line.startswith("safe")]
        assert line.endswith(f"; but {GROUP} and {UNIT}")


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_said_where_nothing_differs(agreeing: Audit, place: str) -> None:
    assert "; but" not in texts_of(agreeing)[place]
    assert exception_sentences(agreeing) == []


def test_the_row_of_a_scorer_says_that_there_are_exceptions(
    divided: Audit, agreeing: Audit
) -> None:
    assert verdict_table(divided).rows[0][1].plain == "safe *"
    assert "*: a group of queries or the other unit has" in verdict_table(divided).caption
    assert verdict_table(agreeing).rows[0][1].plain == "safe"
    assert "*" not in verdict_table(agreeing).caption


def test_of_many_groups_the_first_are_named_the_worst_status_first(divided: Audit) -> None:
    near, far = divided["groups"]["near"], divided["groups"]["far"]
    bad = copy.deepcopy(far)
    bad["scorers"]["noisy"]["verdict"] |= {"status": "unsafe", "k_harm": 4}
    divided["groups"] = {"near": near, **{f"far {i}": far for i in range(5)}, "bad": bad}
    said = exceptions(divided, "noisy")
    assert said.startswith("unsafe from best of 4 in distance = bad (captured ")
    assert "in distance = far 0 (captured" in said
    assert "far 3" not in said
    assert "and 2 more" in said


def test_of_many_scorers_the_first_is_named_and_the_others_counted(thirty: Audit) -> None:
    first, more = exception_sentences(thirty)
    assert first.startswith("“reward_model_v0_llama-3.1-70b-instruct_checkpoint_0” is safe up to ")
    assert more == "25 more verdicts have exceptions by group or unit."


# ------------------------------------------------------------------------------- the unit


def test_gain_is_in_units_of_the_value_and_a_share_is_called_captured(audit: Audit) -> None:
    labels = [column.label for column in verdict_table(audit).columns]
    assert labels[2:4] == ["Captured share", "Gain (value units)"]
    row = {label: c.plain for label, c in zip(labels, verdict_table(audit).rows[1], strict=True)}
    assert row["Gain (value units)"] == "+0.128"
    assert row["Captured share"] == "0.45 [0.37, 0.53]"
    assert "worth more than a random candidate" in " ".join(verdict_table(audit).caption.split())
    assert "top score of 16" in verdict_table(audit).caption
    numbers = [column.label for column in numbers_table(audit, "noisy").columns]
    assert numbers[1] == "Gain / headroom at K = 16"


# ------------------------------------------------------------------------------- the peak


# ---------------------------------------------------------------------------- how far safe reaches


@pytest.mark.parametrize("place", PLACES)
def test_safe_says_up_to_which_k_and_of_which_candidates(audit: Audit, place: str) -> None:
    assert REACH in texts_of(audit)[place]


def test_every_line_of_the_console_that_says_safe_names_k(audit: Audit) -> None:
    lines = [line for line in summary_lines(audit) if re.search(r"\bsafe\b", line)]
    assert len(lines) >= 2
    assert all("up to best of" in line for line in lines)
    lines = repr(AuditResult.from_dict(audit)).splitlines()
    assert [line for line in lines if re.search(r"\bsafe\b(?! up to best of 16)", line)] == []


# ------------------------------------------------------------------------- what safe does not mean


def test_the_page_says_so_once_at_its_top(audit: Audit, picks: Audit) -> None:
    html = unescape(render_html(audit))
    assert html.count(NOT_MEANT) == 1
    assert html.index(NOT_MEANT) < html.index("<table")
    assert NOT_MEANT in render_markdown(audit)
    assert NOT_MEANT not in unescape(render_html(picks))  # where nothing is called safe


# ------------------------------------------------------------------------------- small things


def test_no_negative_zero() -> None:
    assert str(Interval(-0.001, -0.004, 0.003)) == "0.00 [0.00, 0.00]"


# ---------------------------------------------------------------- what verdicts rest on


def test_everything_the_verdicts_rest_on_is_said(audit: Audit) -> None:
    audit["other_unit"] |= {"perfect": "safe", "uncertain": "inconclusive"}  # as they are
    assert basis_sentences(audit) == [
        "Captured shares, δ and ρ are shares of the headroom pooled over queries; values are "
        "declared to lie between 0 and 1.",
        "Headroom differs 23-fold between queries: measuring in each query's own headroom "
        "changes 3 of 5 verdicts.",
        "Left out: 2 pools with a single candidate and 3 pools with fewer than 16 candidates.",
        "Left out, as not looking like scores: “tokens” (a count); name one as a score to audit "
        "it.",
        "“constant” gives all candidates of a query the same score and cannot choose.",
        "Harm in fewer than 9 % of the queries and beyond any candidate seen is not excluded by "
        "40 clusters.",
    ]


def test_the_other_unit(audit: Audit) -> None:
    audit["unit"] = "query"
    audit["other_unit"] = {n: s["verdict"]["status"] for n, s in audit["scorers"].items()}
    unit, other = basis_sentences(audit)[:2]
    assert unit.startswith("Captured shares, δ and ρ are shares of each query's own headroom;")
    assert other.endswith("measuring in the headroom pooled over queries gives the same verdicts.")


def test_what_differs_between_scorers_is_said_in_their_cards(audit: Audit) -> None:
    audit["scorers"]["noisy"]["verdict"]["unseen"] = "Noisy cannot exclude this."
    assert shared_unseen(audit) == ""
    assert unseen(audit, "noisy") == "Noisy cannot exclude this."
    assert not any("excluded" in sentence for sentence in basis_sentences(audit))
    assert render_html(audit).count("Noisy cannot exclude this.") == 1
    assert render_markdown(audit).count("Noisy cannot exclude this.") == 1
