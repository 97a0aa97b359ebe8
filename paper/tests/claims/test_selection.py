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
NOT_SEEN = {"actors-comparable": "other task", "needs-value": "not seen"}
"""What a PointMaze like the paper's does not decide, or decides against it: its own closed loop."""
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
    assert list(judges(tables, P)) == ["reference", "euclidean"]
    changed = deepcopy(tables)
    for row in changed["fixed-query"]["rows"][P].values():
        known = {name: cell for name, cell in row.items() if name.startswith("euclidean/")}
        row |= {name.replace("euclidean", "exact"): deepcopy(known[name]) for name in known}
    assert judges(changed, P) == {"reference": "", "exact": "exact/"}
    expected = status(changed)
    put(MAIN, "tdq", f"euclidean/{TAU}", 0.1)(changed)
    assert status(changed) == expected
    put(MAIN, "tdq", f"exact/{TAU}", 0.1)(changed)
    assert status(changed) != expected


def test_without_tables_everything_is_left_open() -> None:
    entries, left_open = decide(SELECTION, {}, "test")
    assert (entries, len(left_open)) == ([], len(SELECTION))


def put(table: str, row: str, metric: str, mean: float, half: float = 0.001) -> Callable[..., None]:
    """Change one cell, and its seeds with it."""

    def change(tables: Tables) -> None:
        cell = tables[table]["rows"][P][row][metric]
        seeds = {seed: mean + i * half / 10 for i, seed in enumerate(cell["seeds"])}
        cell |= {"mean": mean, "low": mean - half, "high": mean + half, "seeds": seeds}

    return change


MAIN, TAU, REGRET, DELTA = "fixed-query", "tau_b_64", "nregret_64", "rollout_delta"


@pytest.mark.parametrize(
    ("claim", "changes", "expected"),
    [
        ("contrastive-fail-to-order", [put(MAIN, "raw", TAU, 0.9)], "depends"),
        ("tdq-orders", [put(MAIN, "tdq", TAU, 0.3)], "depends"),
        (
            "tdq-orders",
            [put(MAIN, "tdq", TAU, 0.3), put(MAIN, "tdq", f"euclidean/{TAU}", 0.3)],
            "not seen",
        ),
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
        ("architecture-changes-little", [put("function-class", "nce_mlp", TAU, 0.5)], "depends"),
        ("bottleneck", [put("function-class", "td_bilinear", TAU, 0.99)], "depends"),
        (
            "bottleneck",
            [put("function-class", c, TAU, x) for c, x in (("tdq", 0.90), ("td_bilinear", 0.88))],
            "depends",
        ),
        ("worst-bellman", [put("function-class", "raw", TAU, 0.99)], "depends"),
        ("negative-medians", [put(MAIN, "cosine", "median_selected", 0.8)], "depends"),
        ("none-above", [put(MAIN, "hybrid", "share_above_0.9", 0.1)], "depends"),
        ("pointmaze-admitted", [put("judges", "reference", "spearman", 0.5)], "depends"),
        (
            "support-uncorrelated",
            [put("judges", "reference", "support_value_correlation", -0.4)],
            "not seen",
        ),
        ("near-base-rate", [put(MAIN, "raw", "off_over_base", 2.5)], "depends"),
        (
            "reference-agrees",
            [put("judges", "rollouts", "spearman_within/reference", -0.2, 0.1)],
            "not seen",
        ),
        ("norms-grow", [put("pick-norm", "raw", "pick_norm_64", 0.98)], "not seen"),
        ("norms-grow", [put("pick-norm", "raw", "pick_norm_64", 1.0)], "inconclusive"),
        ("hybrid-gains", [put(MAIN, "hybrid", DELTA, -0.02, 0.01)], "not seen"),
        ("seed-spread", [put(MAIN, "tdq", TAU, 0.3)], "not seen"),
        ("tdq-worsens", [put("deployment", "tdq", "closed_loop/K=64", 0.99)], "not seen"),
        ("flat-one-step", [put("deployment", "tdq", "score_spread", 0.3)], "depends"),
    ],
)
def test_a_claim_fails_where_its_numbers_do(
    tables: Tables, claim: str, changes: list[Callable[..., None]], expected: str
) -> None:
    changed = deepcopy(tables)
    for change in changes:
        change(changed)
    assert status(changed)[claim] == expected


def test_every_claim_about_this_task_is_shown_to_fail(tables: Tables) -> None:
    """The list above leaves no claim out."""
    marks = test_a_claim_fails_where_its_numbers_do.pytestmark
    tried = {case[0] for case in marks[0].args[1]}
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


@pytest.mark.parametrize(
    ("task", "claim"), [("AntMaze", "antmaze-null"), ("HumanoidMaze", "humanoidmaze-null")]
)
def test_nulls_need_power_and_no_gain(tables: Tables, task: str, claim: str) -> None:
    other = json.loads(json.dumps(tables).replace(f'"{P}"', f'"{task}"'))
    assert status(other)[claim] == "depends"  # TD-Q gains there
    for row in other[MAIN]["rows"][task].values():
        if DELTA in row:
            row[DELTA] |= {"mean": 0.0, "low": -0.001, "high": 0.001}
    assert status(other)[claim] == "seen"
    other["judges"]["rows"][task]["rollouts"]["largest_half_width"]["mean"] = 0.02
    assert status(other)[claim] == "depends"


def on(task: str, tables: Tables) -> Tables:
    """The same numbers as if they were another task's."""
    other: Tables = json.loads(json.dumps(tables).replace(f'"{P}"', f'"{task}"'))
    return other


def known(mean: float, half: float = 0.01) -> dict[str, float]:
    return {"mean": mean, "low": mean - half, "high": mean + half}


def test_antmaze_has_its_own_claims(tables: Tables) -> None:
    other = on("AntMaze", tables)
    assert status(other)["twice-base-rate"] == "not seen"
    assert status(other)["ant-reference-invalid"] == "not seen"
    rows = other["judges"]["rows"]["AntMaze"]["rollouts"]
    rows["spearman_within/reference"] |= known(0.07)
    rows["spearman_across/reference"] |= known(0.4)
    for critic in ("raw", "cosine", "hybrid"):
        other[MAIN]["rows"]["AntMaze"][critic]["off_over_base"] |= known(2.2)
    assert status(other)["twice-base-rate"] == "seen"
    assert status(other)["ant-reference-invalid"] == "seen"
    rows["spearman_within/reference"] |= known(0.1, 0.2)
    assert status(other)["ant-reference-invalid"] == "inconclusive"


@pytest.mark.parametrize(
    ("task", "claim"),
    [
        ("AntMaze", "antmaze-judges"),
        ("HumanoidMaze", "humanoidmaze-judges"),
        ("AntSoccer", "antsoccer-excluded"),
    ],
)
def test_who_may_judge_is_decided_by_the_declared_criteria(
    tables: Tables, task: str, claim: str
) -> None:
    other = on(task, tables)
    rows = other["judges"]["rows"][task]
    rows["reference"]["spearman"] |= known(0.9)
    rows["reference"]["resolvability"] |= known(0.9)
    rows["rollouts"]["largest_half_width"]["mean"] = 0.011
    excluded = task == "AntSoccer"
    assert status(other)[claim] == ("not seen" if excluded else "depends")  # the reference passes
    rows["reference"]["spearman"] |= known(0.69, 0.03)
    assert status(other)[claim] == ("not seen" if excluded else "inconclusive")
    rows["reference"]["spearman"] |= known(0.5)
    assert status(other)[claim] == ("depends" if excluded else "seen")
    rows["rollouts"]["largest_half_width"]["mean"] = 0.013
    assert status(other)[claim] == ("seen" if excluded else "depends")
    rows["reference"]["spearman"] |= known(0.9)
    rows["reference"]["resolvability"] |= known(0.4)
    assert status(other)[claim] == ("seen" if excluded else "depends")


def test_a_task_that_is_excluded_decides_nothing_about_the_included_ones(tables: Tables) -> None:
    found = status(on("AntSoccer", tables))
    for claim in ("contrastive-fail-to-order", "tdq-orders", "two-head-gap", "none-above"):
        assert found[claim] == "other task"
    assert "pointmaze-admitted" not in found


@pytest.mark.parametrize("task", DECLARED)
def test_every_claim_that_a_declared_task_decides_is_declared(tables: Tables, task: str) -> None:
    declared = {claim.id for study, claim in declared_claims() if study == "selection"}
    assert set(status(on(task, tables))) <= declared


def test_the_value_trained_policy_of_antsoccer(tables: Tables) -> None:
    other = on("AntSoccer", tables)
    rate = other["deployment"]["rows"]["AntSoccer"]["tdq"]["actor_success"]
    for mean, expected in ((0.05, "seen"), (0.3, "not seen"), (0.095, "inconclusive")):
        rate |= known(mean)
        assert status(other)["antsoccer-policy"] == expected


def test_two_heads_of_antmaze(tables: Tables) -> None:
    other = on("AntMaze", tables)
    value, cosine = (other[MAIN]["rows"]["AntMaze"][head][TAU] for head in HEADS)
    value["seeds"] = {"42": 0.73, "43": 0.74, "44": 0.72}
    cosine["seeds"] = dict.fromkeys(value["seeds"], 0.11)
    assert status(other)["two-head-antmaze"] == "seen"
    cosine["seeds"] = dict.fromkeys(value["seeds"], 0.42)
    assert status(other)["two-head-antmaze"] == "inconclusive"
    cosine["seeds"] = dict.fromkeys(value["seeds"], 0.6)
    assert status(other)["two-head-antmaze"] == "not seen"


def test_actors_are_antmazes(tables: Tables) -> None:
    assert status(tables)["actors-comparable"] == "other task"
    other = on("AntMaze", tables)
    rates = [row["actor_success"] for row in other["deployment"]["rows"]["AntMaze"].values()]
    for rate in rates:
        rate |= known(0.25)
    names = ("actors-level", "actors-comparable")
    assert {status(other)[name] for name in names} == {"seen"}
    rates[0] |= known(0.36, 0.05)
    assert {status(other)[name] for name in names} == {"inconclusive"}
    rates[0] |= known(0.6, 0.05)
    assert {status(other)[name] for name in names} == {"depends"}


@pytest.mark.parametrize(
    ("claim", "row"),
    [
        ("tdq-orders", "tdq"),
        ("contrastive-flat", "raw"),
        ("contrastive-fail-to-order", "raw"),
    ],
)
def test_on_antmaze_an_interval_leaves_the_order_open(tables: Tables, claim: str, row: str) -> None:
    other = on("AntMaze", tables)
    assert status(other)[claim] == "seen"
    other[MAIN]["rows"]["AntMaze"][row][TAU] |= {"low": 0.0, "high": 1.0}
    assert status(other)[claim] == "inconclusive"


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
    tables: Tables, claim: str, change: Callable[..., None]
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


def test_search_that_only_a_value_survives_needs_one(tables: Tables) -> None:
    changed = deepcopy(tables)
    put("deployment", "tdq", "closed_loop/K=64", 0.4)(changed)
    put("deployment", "raw", "closed_loop/K=64", 0.5)(changed)
    assert status(changed)["needs-value"] == "depends"
    put("deployment", "raw", "closed_loop/K=64", 0.1)(changed)
    assert status(changed)["needs-value"] == "seen"


def test_an_unreliable_judge_is_named_in_what_it_decides(tables: Tables) -> None:
    def comments(tables: Tables) -> list[str]:
        entries, _ = decide(SELECTION, tables, "test")
        return [e["comment"] for e in entries if "did not pass" in e["comment"]]

    assert comments(tables) == []
    changed = deepcopy(tables)
    changed[MAIN]["rows"][P]["raw"][TAU]["unreliable"] = True
    assert len(comments(changed)) == 5


def test_the_ledger_is_stored(finished: Path) -> None:
    entries = read_json(finished / "claims.json")
    assert {e["id"]: e["status"] for e in entries if e["status"] != "seen"} == NOT_SEEN | LEFT_OPEN
    assert "AntMaze" in (finished / "claims.md").read_text(encoding="utf-8")
