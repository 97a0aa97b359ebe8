"""Every claim about fixed-query selection, decided both ways from stored tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from toptail.lab.paper import CLAIMS, decide
from toptail.lab.studies.folder import read_json

SELECTION = CLAIMS["selection"]
Tables = dict[str, Any]
P = "PointMaze"


@pytest.fixture(scope="module")
def tables(finished: Path) -> Tables:
    return {path.stem: read_json(path) for path in (finished / "tables").glob("*.json")}


def status(tables: Tables) -> dict[str, str]:
    entries, _ = decide(SELECTION, tables, "test")
    return {entry["id"]: entry["status"] for entry in entries}


def test_ids_are_unique_and_every_claim_quotes_a_place() -> None:
    assert len({claim.id for claim in SELECTION}) == len(SELECTION)
    assert all(claim.label and claim.sentence for claim in SELECTION)


def test_a_world_like_the_papers_is_seen_and_other_tasks_are_left_open(tables: Tables) -> None:
    entries, left_open = decide(SELECTION, tables, "test")
    assert {entry["status"] for entry in entries} == {"seen"}
    assert {claim.id for claim in left_open} == {
        *("antmaze-null", "humanoidmaze-null", "twice-base-rate", "ant-reference-invalid"),
    }
    assert all("riterion" in e["comment"] or "against" in e["comment"] for e in entries)


def test_without_tables_everything_is_left_open() -> None:
    entries, left_open = decide(SELECTION, {}, "test")
    assert (entries, len(left_open)) == ([], len(SELECTION))


def put(table: str, row: str, metric: str, mean: float, half: float = 0.001) -> Callable[..., None]:
    """Change one cell."""

    def change(tables: Tables) -> None:
        tables[table]["rows"][P][row][metric] |= {
            "mean": mean,
            "low": mean - half,
            "high": mean + half,
        }

    return change


MAIN, TAU, REGRET, DELTA = "fixed-query", "tau_b_64", "nregret_64", "rollout_delta"


@pytest.mark.parametrize(
    ("claim", "changes", "expected"),
    [
        ("contrastive-fail-to-order", [put(MAIN, "raw", TAU, 0.9)], "depends"),
        ("tdq-orders", [put(MAIN, "tdq", TAU, 0.3)], "depends"),
        (
            "tdq-orders",
            [put(MAIN, "tdq", TAU, 0.3), put(MAIN, "tdq", f"geodesic/{TAU}", 0.3)],
            "not seen",
        ),
        ("contrastive-flat", [put(MAIN, "hybrid", TAU, 0.5)], "depends"),
        ("contrastive-random-regret", [put(MAIN, "cosine", REGRET, 0.2)], "depends"),
        ("two-head-gap", [put(MAIN, "two_head_joint.f_cos", TAU, 0.9)], "depends"),
        ("tdq-gains", [put(MAIN, "tdq", DELTA, 0.001, 0.01)], "not seen"),
        ("raw-half", [put(MAIN, "raw", DELTA, 0.0119)], "depends"),
        ("cosine-nothing", [put(MAIN, "cosine", DELTA, 0.01)], "not seen"),
        ("rollouts-reveal-costs", [put(MAIN, "raw", DELTA, 0.05)], "depends"),
        ("objective-explains-most", [put("function-class", "nce_mlp", TAU, 0.95)], "depends"),
        ("attributed-to-objective", [put("function-class", "nce_mlp", TAU, 0.95)], "depends"),
        ("bellman-raises-tau", [put("function-class", "td_bilinear", TAU, 0.2)], "depends"),
        ("architecture-changes-little", [put("function-class", "nce_mlp", TAU, 0.5)], "depends"),
        ("bottleneck", [put("function-class", "td_bilinear", TAU, 0.99)], "depends"),
        (
            "bottleneck",
            [put("function-class", c, TAU, x) for c, x in (("tdq", 0.90), ("td_bilinear", 0.88))],
            "depends",
        ),
        ("worst-bellman", [put("function-class", "raw", TAU, 0.99)], "depends"),
        ("bellman-succeeds-matched", [put("function-class", "raw", TAU, 0.99)], "depends"),
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
            [put("judges", "rollouts", "spearman_within/reference", 0.05, 0.1)],
            "not seen",
        ),
        ("actors-comparable", [put("deployment", "cosine", "actor_success", 0.9)], "depends"),
        ("tdq-worsens", [put("deployment", "tdq", "closed_loop/K=64", 0.4)], "not seen"),
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
    assert set(status(tables)) == tried


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
    assert status(changed)["cosine-nothing"] == "not seen"


def test_a_gain_that_may_be_as_large_is_no_cost(tables: Tables) -> None:
    changed = deepcopy(tables)
    put(MAIN, "hybrid", DELTA, 0.005, 0.01)(changed)
    assert status(changed)["rollouts-reveal-costs"] == "depends"


def test_statements_about_every_task_name_those_that_were_not_measured(tables: Tables) -> None:
    entries, _ = decide(SELECTION, tables, "test")
    comments = {entry["id"]: entry["comment"] for entry in entries}
    for claim in (
        *("contrastive-fail-to-order", "tdq-orders", "contrastive-flat", "two-head-gap"),
        *("contrastive-random-regret", "negative-medians", "none-above", "support-uncorrelated"),
    ):
        assert "not measured: AntMaze, HumanoidMaze." in comments[claim]
    assert "not measured" not in comments["tdq-gains"]  # the paper says it of PointMaze alone


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


def test_antmaze_has_its_own_claims(tables: Tables) -> None:
    other = json.loads(json.dumps(tables).replace(f'"{P}"', '"AntMaze"'))
    assert status(other)["twice-base-rate"] == "not seen"
    assert status(other)["ant-reference-invalid"] == "not seen"
    rows = other["judges"]["rows"]["AntMaze"]["rollouts"]
    rows["spearman_within/reference"]["mean"], rows["spearman_across/reference"]["mean"] = 0.07, 0.4
    for critic in ("raw", "cosine", "hybrid"):
        other[MAIN]["rows"]["AntMaze"][critic]["off_over_base"]["mean"] = 2.2
    assert status(other)["twice-base-rate"] == "seen"
    assert status(other)["ant-reference-invalid"] == "seen"


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
    assert {entry["status"] for entry in entries} == {"seen"}
    assert "AntMaze" in (finished / "claims.md").read_text(encoding="utf-8")
