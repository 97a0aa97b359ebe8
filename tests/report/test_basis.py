"""What is said below the leaderboard."""

from __future__ import annotations

from typing import Any

from toptail.report.basis import basis_sentences, shared_unseen, unseen
from toptail.report.html import render_html
from toptail.report.markdown import render_markdown

Audit = dict[str, Any]


def test_everything_the_verdicts_rest_on_is_said(audit: Audit) -> None:
    audit["other_unit"] |= {"perfect": "safe", "uncertain": "inconclusive"}  # as they are
    assert basis_sentences(audit) == [
        "Captured shares, δ and ρ are shares of the headroom pooled over queries; values are "
        "declared to lie between 0 and 1.",
        "Headroom differs 23-fold between queries: measuring in each query's own headroom "
        "changes 3 of 5 verdicts.",
        "Left out: 2 pools with a single candidate and 3 pools with fewer than 16 candidates.",
        "Not audited, because they look like no scores: “tokens” (a count).",
        "“constant” gives every candidate the same score.",
        "Harm in fewer than 9 % of the queries and beyond any candidate seen is not excluded by "
        "40 clusters.",
    ]


def test_page_and_markdown_say_it(audit: Audit) -> None:
    page, markdown = render_html(audit), render_markdown(audit)
    for sentence in basis_sentences(audit)[2:]:
        assert f"<li>{sentence}</li>" in page
        assert f"- {sentence}" in markdown


def test_what_is_absent_is_not_said(first_format: Audit, picks: Audit) -> None:
    assert basis_sentences(first_format) == []
    assert basis_sentences(picks) == []


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
