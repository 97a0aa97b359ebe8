"""Words and numbers of the report."""

from __future__ import annotations

import copy
import re
from html import unescape
from typing import Any

import pytest

from toptail.audit.verdict import Interval
from toptail.report import text
from toptail.report.documents import render_latex, render_markdown, summary_lines
from toptail.report.html import render_html
from toptail.report.tables import numbers_table, verdict_table
from toptail.report.text import (
    NOT_MEANT,
    basis_sentences,
    change_sentence,
    exception_sentences,
    exceptions,
    shared_unseen,
    unseen,
)
from toptail.results import AuditResult


@pytest.mark.parametrize(
    ("x", "decimals", "expected"),
    [
        (0.12345, 3, "0.123"),
        (-0.12345, 2, "−0.12"),
        (-0.0001, 2, "0.00"),
        (1234.5, 0, "1234"),
        (12_345_678.0, 2, "1.23e+07"),
        (2.5e-9, 11, "2.50e−09"),
        (None, 2, "not available"),
    ],
)
def test_number(x: float | None, decimals: int, expected: str) -> None:
    assert text.number(x, decimals) == expected


@pytest.mark.parametrize(
    ("x", "expected"), [(0.04, "+0.04"), (-0.04, "−0.04"), (0.001, "0.00"), (None, "n/a")]
)
def test_signed_marks_a_gain_only_where_digits_show_it(x: float | None, expected: str) -> None:
    assert text.signed(x, 2, "n/a") == expected


@pytest.mark.parametrize(
    ("p", "expected"),
    [(0.0002, "< 0.001"), (0.001, "0.001"), (0.0499, "0.050"), (1.0, "1.000"), (None, "n/a")],
)
def test_p_value(p: float | None, expected: str) -> None:
    assert text.p_value(p) == expected


@pytest.mark.parametrize(
    ("scale", "decimals"),
    [(0.285, 3), (0.05, 4), (1.0, 2), (30.0, 1), (5000.0, 0), (2e-9, 11), (0.0, 3), (None, 3)],
)
def test_decimals_show_three_digits_of_the_scale(scale: float | None, decimals: int) -> None:
    assert text.decimals_for(scale) == decimals


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a\nb\t c", "a b c"), ("\x1b[31mred", "[31mred"), ("", "(unnamed)"), (7, "7")],
)
def test_names_are_printed_on_one_line(name: object, expected: str) -> None:
    assert text.one_line(name) == expected


def test_short_keeps_both_ends() -> None:
    assert text.short("rouge_1_precision", 11) == "rouge…ision"
    assert text.short("rouge", 11) == "rouge"


def test_scorers_are_ranked_by_status_and_then_by_gain(audit: dict[str, Any]) -> None:
    assert text.ranked(audit) == ["perfect", "noisy", "uncertain", "constant", "cursed"]
    audit["scorers"]["perfect"]["gain"]["value"][-1] = None
    audit["scorers"]["uncertain"]["gain"]["value"][-1] = 5.0  # no gain makes up for a status
    assert text.ranked(audit) == ["noisy", "perfect", "uncertain", "constant", "cursed"]


def test_headlines_never_call_safe_what_is_not(audit: dict[str, Any]) -> None:
    for scorer in audit["scorers"].values():
        verdict = scorer["verdict"]
        says_safe = text.headline(verdict, 16).startswith("Safe")
        assert says_safe == (verdict["status"] == "safe")


def test_summary_has_one_line_for_each_scorer(audit: dict[str, Any]) -> None:
    audit["other_unit"] = None
    lines = summary_lines(audit)
    reach = "up to best of 16 of pools like these:"
    assert {line for line in lines if ", captured " in line} == {
        f"safe          perfect    {reach} gain +0.285 in value, captured 1.00 [0.92, 1.08], "
        "peak 0.695 at K = 16",
        f"safe          noisy      {reach} gain +0.128 in value, captured 0.45 [0.37, 0.53], "
        "peak 0.538 at K = 16",
        f"inconclusive  uncertain  {reach} gain +0.043 in value, captured 0.15 [0.07, 0.23], "
        "peak 0.463 at K = 8, about 340 queries would decide",
        f"no gain       constant   {reach} gain 0.000 in value, captured 0.00 [−0.08, 0.08], "
        "peak 0.410 at K = 16",
        "unsafe        cursed     from best of 8 of pools like these (safe up to best of 2): "
        "gain −0.085 in value, "
        "captured −0.30 [−0.38, −0.22], peak 0.473 at K = 4",
    }
    assert not any(line.startswith(" ") for line in lines)
    assert "Nothing is extrapolated past K = 16, the largest K measured." in lines
    assert f"warning: {audit['warnings'][0]}" in lines
    assert f"note: {audit['notes'][0]}" in lines


def test_verbose_summary_adds_the_reason_and_the_groups(audit: dict[str, Any]) -> None:
    audit["scorers"]["cursed"]["verdict"]["unseen"] = "Harm in fewer than 1 % is not excluded."
    lines = summary_lines(audit, verbose=True)
    at = next(at for at, line in enumerate(lines) if "cursed" in line)
    reason = audit["scorers"]["cursed"]["verdict"]["reason"]
    assert lines[at + 1 : at + 4] == [
        f"    {reason}",
        "    Harm in fewer than 1 % is not excluded.",
        "    −0.021 in value per doubling of K",
    ]
    assert lines[at + 4].startswith(f"    By {audit['group_column']}, up to best of 16: near ")


def test_summary_names_columns_that_were_left_out_and_scores_that_say_nothing(
    audit: dict[str, Any],
) -> None:
    audit["skipped_columns"] = [{"name": "id", "why": "named like an id"}]
    audit["constant_scores"] = ["constant"]
    lines = summary_lines(audit)
    assert (
        "Left out, as not looking like scores: “id” (named like an id); name one as a score to "
        "audit it."
    ) in lines
    assert ("“constant” gives all candidates of a query the same score and cannot choose.") in lines


def test_long_names_keep_their_ends_on_the_terminal(audit: dict[str, Any]) -> None:
    audit["scorers"] = {"a" * 40 + "_end": audit["scorers"]["noisy"]}
    (line,) = [line for line in summary_lines(audit) if ", captured " in line]
    assert f"{'a' * 15}…{'a' * 12}_end  up to best of 16 of pools" in line


def test_summary_of_picks(picks: dict[str, Any]) -> None:
    lines = summary_lines(picks)
    assert "td-q: 0.380 [0.360, 0.400]" in lines
    assert (
        "cosine − td-q: −0.060 [−0.080, −0.040], Holm p 0.012, smallest detectable effect 0.029"
        in lines
    )


def test_summary_of_hostile_names_has_no_control_characters(hostile: dict[str, Any]) -> None:
    assert all(line.isprintable() for line in summary_lines(hostile))


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
        "latex": render_latex(audit).replace(r"\ensuremath{-}", "−"),
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
    assert any("(safe up to best of 2)" in line for line in lines)
    lines = repr(AuditResult.from_dict(audit)).splitlines()
    assert [
        line for line in lines if re.search(r"\bsafe\b(?! up to best of (?:16|2\)))", line)
    ] == []


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


def test_of_many_scorers_the_highest_and_the_lowest_value_are_named(audit: Any) -> None:
    ends = {name: scorer["value"][-1] for name, scorer in audit["scorers"].items()}
    high, low = max(ends, key=lambda n: ends[n]), min(ends, key=lambda n: ends[n])
    said = change_sentence(audit)
    assert f"{ends[high]:.3f} of a possible" in said
    assert f"(“{high}”, the highest of 5 scorers)" in said
    assert f"(“{low}”, the lowest)" in said
    audit["scorers"] = {"cursed": audit["scorers"]["cursed"]}
    assert "(“cursed”)." in change_sentence(audit)
