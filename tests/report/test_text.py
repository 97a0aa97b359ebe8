"""Words and numbers of the report."""

from __future__ import annotations

from typing import Any

import pytest

from toptail.report import text
from toptail.report.summary import summary_lines


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
        "unsafe        cursed     from best of 8 of pools like these: gain −0.085 in value, "
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
