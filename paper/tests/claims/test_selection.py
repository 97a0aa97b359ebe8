"""Every claim about fixed-query selection, decided both ways from stored tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from toptail.io.json_files import read_json
from toptail_paper.claims import CLAIMS, decide
from toptail_paper.claims.claims_selection import HEADS, judges
from toptail_paper.claims.declare import declared_claims
from toptail_paper.claims.reported import DECLARED

SELECTION = CLAIMS["selection"]
Tables = dict[str, Any]
P = "PointMaze"
NOT_SEEN = {"actors-comparable": "other task"}
"""What a PointMaze like the paper's does not decide."""
LEFT_OPEN = dict.fromkeys(("contrastive-random-regret", "near-base-rate"), "inconclusive")
"""What so few queries leave open."""


@pytest.fixture(scope="module")
def tables(finished: Path) -> Tables:
    tables = {path.stem: read_json(path) for path in (finished / "tables").glob("*.json")}
    renamed: Tables = json.loads(json.dumps(tables).replace("geodesic", "euclidean"))
    return renamed


def status(tables: Tables) -> dict[str, str]:
    entries, _ = decide(SELECTION, tables, "test")
    return {entry["id"]: entry["status"] for entry in entries}


def test_ids_are_unique_and_every_claim_quotes_a_place() -> None:
    assert len({claim.id for claim in SELECTION}) == len(SELECTION)
    assert all(claim.label and claim.sentence for claim in SELECTION)


def test_a_world_like_the_papers_is_seen_and_other_tasks_are_left_open(tables: Tables) -> None:
    entries, left_open = decide(SELECTION, tables, "test")
    assert {e["id"]: e["status"] for e in entries if e["status"] != "seen"} == NOT_SEEN | LEFT_OPEN
    assert {claim.id for claim in left_open} == {
        *("antmaze-null", "humanoidmaze-null", "twice-base-rate", "ant-reference-invalid"),
        *("antmaze-judges", "humanoidmaze-judges", "antsoccer-excluded", "antsoccer-policy"),
        *("two-head-antmaze", "actors-level"),
    }
    assert all("riterion" in e["comment"] or "against" in e["comment"] for e in entries)


def test_the_exact_value_is_asked_before_the_euclidean_length(tables: Tables) -> None:
    assert judges(tables, P) == ["reference", "euclidean"]
    changed = deepcopy(tables)
    for row in changed["fixed-query"]["rows"][P].values():
        known = {name: cell for name, cell in row.items() if name.startswith("euclidean/")}
        row |= {name.replace("euclidean", "exact"): deepcopy(known[name]) for name in known}
    assert judges(changed, P) == ["reference", "exact"]
    expected = status(changed)
    put(MAIN, "tdq", f"euclidean/{TAU}", 0.1)(changed)
    assert status(changed) == expected
    put(MAIN, "tdq", f"exact/{TAU}", 0.1)(changed)
    assert status(changed) != expected


def test_without_tables_everything_is_left_open() -> None:
    entries, left_open = decide(SELECTION, {}, "test")
    assert (entries, len(left_open)) == ([], len(SELECTION))


Change = Callable[[Tables], None]


def put(table: str, row: str, metric: str, mean: float, half: float = 0.001) -> Change:
    """Change one cell of the folder's task, and its seeds with it."""

    def change(tables: Tables) -> None:
        (rows,) = tables[table]["rows"].values()
        cell = rows[row][metric]
        seeds = {seed: mean + i * half / 10 for i, seed in enumerate(cell["seeds"])}
        cell |= {"mean": mean, "low": mean - half, "high": mean + half, "seeds": seeds}

    return change


def width(mean: float) -> Change:
    """The largest half-width of the rollouts."""

    def change(tables: Tables) -> None:
        (rows,) = tables["judges"]["rows"].values()
        rows["rollouts"]["largest_half_width"]["mean"] = mean

    return change


def on(task: str, tables: Tables, *changes: Change) -> Tables:
    """The same numbers as if they were another task's, with changes."""
    other: Tables = json.loads(json.dumps(tables).replace(f'"{P}"', f'"{task}"'))
    for change in changes:
        change(other)
    return other


def each(table: str, metric: str, mean: float, half: float = 0.001) -> Change:
    """Change a metric of every row that has it."""

    def change(tables: Tables) -> None:
        (rows,) = tables[table]["rows"].values()
        for row, cells in rows.items():
            if metric in cells:
                put(table, row, metric, mean, half)(tables)

    return change


MAIN, TAU, REGRET, DELTA = "fixed-query", "tau_b_64", "nregret_64", "rollout_delta"
SQUARE, FINE = "function-class", "exact_continuous"


BROKEN: list[tuple[str, list[Change], str]] = [
    ("contrastive-fail-to-order", [put(MAIN, "raw", TAU, 0.9)], "depends"),
    ("tdq-orders", [put(MAIN, "tdq", TAU, 0.3)], "not seen"),
    ("contrastive-flat", [put(MAIN, "hybrid", TAU, 0.5)], "depends"),
    ("contrastive-random-regret", [put(MAIN, "cosine", REGRET, 0.2)], "depends"),
    ("two-head-gap", [put(MAIN, "two_head_joint.f_cos", TAU, 0.9)], "depends"),
    ("tdq-gains", [put(MAIN, "tdq", DELTA, -0.02, 0.01)], "not seen"),
    ("tdq-gains", [put(MAIN, "tdq", DELTA, 0.001, 0.01)], "inconclusive"),
    ("raw-half", [put(MAIN, "raw", DELTA, 0.0119)], "depends"),
    ("cosine-nothing", [put(MAIN, "cosine", DELTA, 0.01)], "not seen"),
    ("rollouts-reveal-costs", [put(MAIN, "raw", DELTA, 0.05)], "depends"),
    ("objective-explains-most", [put("function-class", "nce_mlp", TAU, 0.95)], "depends"),
    ("bellman-raises-tau", [put("function-class", "td_bilinear", TAU, 0.2)], "depends"),
    ("architecture-changes-little", [put("function-class", "nce_mlp", TAU, 0.7)], "not seen"),
    ("bottleneck", [put("function-class", "td_bilinear", TAU, 0.99)], "not seen"),
    ("bottleneck",
     [put("function-class", c, TAU, x) for c, x in (("tdq", 0.90), ("td_bilinear", 0.88))],
     "not seen"),
    ("worst-bellman", [put("function-class", "raw", TAU, 0.99)], "depends"),
    ("negative-medians", [put(MAIN, "cosine", "median_selected", 0.8)], "depends"),
    ("none-above", [put(MAIN, "hybrid", "share_above_0.9", 0.1)], "depends"),
    ("pointmaze-admitted", [put("judges", "reference", "spearman", 0.5)], "depends"),
    ("support-uncorrelated", [put("judges", "reference", "support_value_correlation", -0.4)],
     "not seen"),
    ("near-base-rate", [put(MAIN, "raw", "off_over_base", 2.5)], "depends"),
    ("reference-agrees", [put("judges", "rollouts", "spearman_within/reference", -0.2, 0.1)],
     "not seen"),
    ("norms-grow", [put("pick-norm", "raw", "pick_norm_64", 1.01)], "not seen"),
    ("norms-grow", [put("pick-norm", "raw", "pick_norm_64", 1.05)], "inconclusive"),
    ("needs-value", [put(MAIN, "tdq", REGRET, 0.9)], "depends"),
    ("needs-value", [put(MAIN, "raw", REGRET, 0.4)], "depends"),
    ("hybrid-gains", [put(MAIN, "hybrid", DELTA, -0.02, 0.01)], "not seen"),
    ("seed-spread", [put(MAIN, "tdq", TAU, 0.3)], "not seen"),
    ("tdq-worsens", [put("deployment", "tdq", "closed_loop/K=64", 0.99)], "not seen"),
    ("flat-one-step", [put("deployment", "tdq", "score_spread", 0.3)], "depends"),
]  # fmt: skip


@pytest.mark.parametrize(("claim", "changes", "expected"), BROKEN)
def test_a_claim_fails_where_its_numbers_do(
    tables: Tables, claim: str, changes: list[Change], expected: str
) -> None:
    changed = deepcopy(tables)
    for change in changes:
        change(changed)
    assert status(changed)[claim] == expected


def test_every_claim_about_this_task_is_shown_to_fail(tables: Tables) -> None:
    """The list above leaves no claim out."""
    tried = {claim for claim, _, _ in BROKEN}
    assert set(status(tables)) == tried | set(NOT_SEEN)  # those have tests of their own


def test_a_mean_without_an_interval_decides_nothing_about_intervals(tables: Tables) -> None:
    changed = deepcopy(tables)
    for row in changed[MAIN]["rows"][P].values():
        row.get(DELTA, {}).update(low=None, high=None)
    _, left_open = decide(SELECTION, changed, "test")
    rollouts = {"tdq-gains", "raw-half", "cosine-nothing", "rollouts-reveal-costs"}
    assert rollouts <= {claim.id for claim in left_open}


def test_no_gain_is_seen_only_where_a_gain_would_show(tables: Tables) -> None:
    changed = deepcopy(tables)
    assert status(changed)["cosine-nothing"] == "seen"
    changed["judges"]["rows"][P]["rollouts"]["largest_half_width"]["mean"] = 0.02
    assert status(changed)["cosine-nothing"] == "inconclusive"
    put(MAIN, "cosine", DELTA, 0.01)(changed)
    assert status(changed)["cosine-nothing"] == "not seen"


def test_a_gain_that_may_be_as_large_is_no_cost(tables: Tables) -> None:
    changed = deepcopy(tables)
    put(MAIN, "hybrid", DELTA, 0.005, 0.01)(changed)
    assert status(changed)["rollouts-reveal-costs"] == "inconclusive"


def test_statements_about_every_task_name_those_that_were_not_measured(tables: Tables) -> None:
    entries, _ = decide(SELECTION, tables, "test")
    comments = {entry["id"]: entry["comment"] for entry in entries}
    for claim in (
        *("contrastive-fail-to-order", "tdq-orders", "contrastive-flat", "two-head-gap"),
        *("contrastive-random-regret", "negative-medians", "none-above", "support-uncorrelated"),
    ):
        assert "not in this ledger: AntMaze, HumanoidMaze." in comments[claim]
    assert "not in this ledger" not in comments["tdq-gains"]  # the paper says it of PointMaze alone


ANT, HUMANOID, SOCCER = DECLARED
NULL = each(MAIN, DELTA, 0.0)
SPEARMAN, RESOLVED = ("judges", "reference", "spearman"), ("judges", "reference", "resolvability")
PASSES = (put(*SPEARMAN, 0.9, 0.01), put(*RESOLVED, 0.9, 0.01), width(0.011))
"""The reference and the rollouts meet their criteria."""
OPEN, FAILS, UNRESOLVED = put(*SPEARMAN, 0.69, 0.03), put(*SPEARMAN, 0.5), put(*RESOLVED, 0.4, 0.01)
WITHIN, ACROSS = (("judges", "rollouts", f"spearman_{w}/reference") for w in ("within", "across"))
TWICE = tuple(put(MAIN, critic, "off_over_base", 2.2) for critic in ("raw", "cosine", "hybrid"))
HEAD = tuple((MAIN, head, TAU) for head in HEADS)
RATES = each("deployment", "actor_success", 0.25, 0.01)
ONE_RATE = ("deployment", "tdq", "actor_success")
OTHER_TASKS: list[tuple[str, str, tuple[Change, ...], str]] = [
    *((task, f"{task.lower()}-null", (), "depends") for task in (ANT, HUMANOID)),  # TD-Q gains
    *((task, f"{task.lower()}-null", (NULL,), "seen") for task in (ANT, HUMANOID)),
    *((task, f"{task.lower()}-null", (NULL, width(0.02)), "depends") for task in (ANT, HUMANOID)),
    *(
        (task, f"{task.lower()}-judges", (*PASSES, *changes), status)
        for task in (ANT, HUMANOID)
        for changes, status in (
            ((), "depends"),
            ((OPEN,), "inconclusive"),
            ((FAILS,), "seen"),
            ((FAILS, width(0.013)), "depends"),
            ((UNRESOLVED, width(0.013)), "depends"),
            ((UNRESOLVED,), "seen"),
        )
    ),
    *(
        (SOCCER, "antsoccer-excluded", (*PASSES, *changes), status)
        for changes, status in (
            ((), "not seen"),
            ((OPEN,), "not seen"),
            ((FAILS,), "depends"),
            ((FAILS, width(0.013)), "seen"),
            ((UNRESOLVED, width(0.013)), "seen"),
        )
    ),
    (ANT, "twice-base-rate", (), "not seen"),
    (ANT, "twice-base-rate", TWICE, "seen"),
    (ANT, "ant-reference-invalid", (), "not seen"),
    (ANT, "ant-reference-invalid", (put(*WITHIN, 0.07), put(*ACROSS, 0.4)), "seen"),
    (ANT, "ant-reference-invalid", (put(*WITHIN, 0.1, 0.2), put(*ACROSS, 0.4)), "inconclusive"),
    (SOCCER, "antsoccer-policy", (put(*ONE_RATE, 0.05, 0.01),), "seen"),
    (SOCCER, "antsoccer-policy", (put(*ONE_RATE, 0.3, 0.01),), "not seen"),
    (SOCCER, "antsoccer-policy", (put(*ONE_RATE, 0.095, 0.01),), "inconclusive"),
    (ANT, "two-head-antmaze", (put(*HEAD[0], 0.73, 0.1), put(*HEAD[1], 0.11, 0.1)), "seen"),
    (ANT, "two-head-antmaze", (put(*HEAD[0], 0.73, 0.3), put(*HEAD[1], 0.42)), "inconclusive"),
    (ANT, "two-head-antmaze", (put(*HEAD[0], 0.73, 0.1), put(*HEAD[1], 0.6, 0.1)), "not seen"),
    (P, "actors-comparable", (), "other task"),
    *(
        (ANT, claim, (RATES, *changes), status)
        for claim in ("actors-level", "actors-comparable")
        for changes, status in (
            ((), "seen"),
            ((put(*ONE_RATE, 0.36, 0.05),), "inconclusive"),
            ((put(*ONE_RATE, 0.6, 0.05),), "depends"),
        )
    ),
    *(
        (ANT, claim, changes, status)
        for claim, row in (
            ("tdq-orders", "tdq"),
            ("contrastive-flat", "raw"),
            ("contrastive-fail-to-order", "raw"),
        )
        for changes, status in (((), "seen"), ((put(MAIN, row, TAU, 0.5, 0.5),), "inconclusive"))
    ),
]


@pytest.mark.parametrize(("task", "claim", "changes", "expected"), OTHER_TASKS)
def test_claims_about_other_tasks(
    tables: Tables, task: str, claim: str, changes: tuple[Change, ...], expected: str
) -> None:
    assert status(on(task, tables, *changes))[claim] == expected


def test_a_task_that_is_excluded_decides_nothing_about_the_included_ones(tables: Tables) -> None:
    found = status(on("AntSoccer", tables))
    for claim in ("contrastive-fail-to-order", "tdq-orders", "two-head-gap", "none-above"):
        assert found[claim] == "other task"
    assert "pointmaze-admitted" not in found


@pytest.mark.parametrize("task", DECLARED)
def test_every_claim_that_a_declared_task_decides_is_declared(tables: Tables, task: str) -> None:
    declared = {claim.id for study, claim in declared_claims() if study == "selection"}
    assert set(status(on(task, tables))) <= declared


def heads(tables: Tables, value: dict[str, float], cosine: float) -> Tables:
    """The tau_b of two heads by seed, under every judge; TD-Q's lead over cosine is 0.5."""
    changed = deepcopy(tables)
    rows = changed[MAIN]["rows"][P]
    for prefix in ("", "euclidean/"):
        flat = dict.fromkeys(value, cosine)
        tau = {
            HEADS[0]: value,
            HEADS[1]: flat,
            "tdq": dict.fromkeys(value, cosine + 0.5),
            "cosine": flat,
        }
        for row, seeds in tau.items():
            rows[row][prefix + TAU] |= {"seeds": seeds}
    return changed


def test_two_heads_show_a_gap_whatever_their_levels(tables: Tables) -> None:
    """A flat head may lie above another cell's bound; a gap of nothing is none."""
    apart = {"42": 0.74, "43": 0.75, "44": 0.73}
    assert status(heads(tables, apart, 0.42))["two-head-gap"] == "seen"
    assert status(heads(tables, apart, 0.49))["two-head-gap"] == "inconclusive"
    assert status(heads(tables, apart, 0.60))["two-head-gap"] == "depends"
    assert status(heads(tables, apart, 0.90))["two-head-gap"] == "not seen"


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("contrastive-flat", put(MAIN, "raw", TAU, 0.405, 0.02)),
        ("near-base-rate", put(MAIN, "cosine", "off_over_base", 1.45, 0.2)),
        ("bottleneck", put("function-class", "td_bilinear", TAU, 0.79, 1.0)),
        ("architecture-changes-little", put("function-class", "nce_mlp", TAU, 0.5, 2.0)),
        ("raw-half", put(MAIN, "raw", DELTA, 0.006, 0.01)),
        ("contrastive-fail-to-order", put(MAIN, "raw", TAU, 0.4, 0.1)),
        ("pointmaze-admitted", put("judges", "reference", "spearman", 0.72, 0.05)),
    ],
)
def test_on_pointmaze_an_interval_leaves_it_open(
    tables: Tables, claim: str, change: Change
) -> None:
    changed = deepcopy(tables)
    change(changed)
    assert status(changed)[claim] == "inconclusive"


def test_a_statement_that_one_judge_confirms_depends_on_the_judge(tables: Tables) -> None:
    changed = deepcopy(tables)
    put("function-class", "nce_mlp", TAU, 0.95)(changed)
    entries, _ = decide(SELECTION, changed, "test")
    found = {entry["id"]: entry["depends_on"] for entry in entries}
    assert found["objective-explains-most"] == "the judge"
    assert found["tdq-gains"] is None


def test_a_median_outside_the_papers_range_is_no_agreement(tables: Tables) -> None:
    changed = deepcopy(tables)
    for critic in ("cosine", "hybrid"):
        put(MAIN, critic, "median_selected", -0.064)(changed)
    assert status(changed)["negative-medians"] == "depends"


def test_a_null_needs_the_reference_and_the_logged_action(tables: Tables) -> None:
    other = on("AntMaze", tables)
    assert "antmaze-null" in status(other)
    del other[MAIN]["rows"]["AntMaze"]["logged"][DELTA]
    assert "antmaze-null" not in status(other)


def test_limits_on_tau_b_are_put_to_judges_with_continuous_values(tables: Tables) -> None:
    """A judge in whole steps changes nothing; one without rounding decides as the reference."""
    changed = deepcopy(tables)
    limited = {
        "tdq-orders": (MAIN, "tdq", 0.3),
        "contrastive-flat": (MAIN, "raw", 0.9),
        "bellman-raises-tau": (SQUARE, "td_bilinear", 0.1),
        "architecture-changes-little": (SQUARE, "nce_mlp", 0.8),
        "bottleneck": (SQUARE, "td_bilinear", 0.99),
    }
    for table in (MAIN, SQUARE):
        for row in changed[table]["rows"][P].values():
            own = {name: deepcopy(cell) for name, cell in row.items() if name in (TAU, REGRET)}
            row |= {f"{judge}/{n}": deepcopy(own[n]) for n in own for judge in ("exact", FINE)}
    for claim, (table, row, value) in limited.items():
        for judge, expected in (("exact", "seen"), (FINE, "depends")):
            broken = deepcopy(changed)
            put(table, row, f"{judge}/{TAU}", value)(broken)
            assert status(broken)[claim] == expected, (claim, judge)


def test_two_heads_depend_on_the_variant_that_shows_the_fall(tables: Tables) -> None:
    changed = on(ANT, tables, put(*HEAD[0], 0.73, 0.1), put(*HEAD[1], 0.6, 0.1))
    rows = changed[MAIN]["rows"][ANT]
    rows |= {"two_head_separate": deepcopy(rows[HEADS[0]])}
    rows |= {"two_head_separate.f_cos": deepcopy(rows[HEADS[1]])}
    assert status(changed)["two-head-antmaze"] == "not seen"
    put(MAIN, "two_head_separate.f_cos", TAU, 0.11, 0.1)(changed)
    (entry,) = (e for e in decide(SELECTION, changed, "")[0] if e["id"] == "two-head-antmaze")
    assert (entry["status"], entry["depends_on"]) == ("depends", "the variant")


def test_an_unreliable_judge_is_named_in_what_it_decides(tables: Tables) -> None:
    def comments(tables: Tables) -> list[str]:
        entries, _ = decide(SELECTION, tables, "test")
        return [e["comment"] for e in entries if "did not pass" in e["comment"]]

    assert comments(tables) == []
    changed = deepcopy(tables)
    changed[MAIN]["rows"][P]["raw"][TAU]["unreliable"] = True
    assert len(comments(changed)) == 6


def test_the_ledger_is_stored(finished: Path) -> None:
    entries = read_json(finished / "claims.json")
    assert {e["id"]: e["status"] for e in entries if e["status"] != "seen"} == NOT_SEEN | LEFT_OPEN
    assert "AntMaze" in (finished / "claims.md").read_text(encoding="utf-8")
