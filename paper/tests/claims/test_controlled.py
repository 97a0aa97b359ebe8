"""Every claim is seen in results made for it, and stops being seen when its number changes."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from paper.tests.controlled.synthetic import cell, results, share
from toptail_paper.claims import CLAIMS, decide, render_markdown, tally
from toptail_paper.claims.claims_controlled import training_length
from toptail_paper.claims.findings import STATUSES
from toptail_paper.claims.numbers import NotMeasuredError, from_seeds, number, seed_interval

CONTROLLED = CLAIMS["controlled"]
RESULTS = results()
BY_ID = {claim.id: claim for claim in CONTROLLED}
CERTAIN = {
    *("mixed-pools", "score-rises", "radius-reproduces", "noise-selections", "noise-shift"),
    *("nonidentifiability", "finite-inflation", "good-ranker", "bounded-corollary", "two-epsilon"),
}
NOT_SEEN = dict.fromkeys(CERTAIN, "true by construction") | {
    "other-norms-fall": "inconclusive",  # TD-Q has no norm that could
    "positives-unordered": "depends",  # on how often each positive is drawn
}


def test_every_claim_is_seen_in_results_made_for_it() -> None:
    entries, left_open = decide(CONTROLLED, RESULTS, "a run")
    assert left_open == []
    assert {e["id"]: e["status"] for e in entries if e["status"] != "seen"} == NOT_SEEN
    assert len({e["id"] for e in entries}) == len(CONTROLLED)


def test_entries_are_plain_json_with_the_agreed_keys() -> None:
    entries, _ = decide(CONTROLLED, RESULTS, "a run")
    keys = [
        *("id", "sentence", "where", "status", "depends_on", "number", "interval"),
        *("interval_over", "run", "comment", "also", "changed", "settled"),
    ]
    for entry in json.loads(json.dumps(entries, allow_nan=False)):
        assert list(entry) == keys
        assert entry["status"] in STATUSES
        assert (entry["depends_on"] is not None) == (entry["status"] == "depends")
        assert (entry["interval_over"] is None) == (entry["interval"] is None)
        assert entry["run"] == "a run"
        assert entry["comment"].endswith(".")


Change = Callable[[Any], None]


def put(*path: Any) -> Change:
    """Replace what lies at a path by its last element."""

    def change(content: Any) -> None:
        *keys, last, value = path
        node = content[keys[0]]
        if "rows" in node:
            node = node["rows"]
        for key in keys[1:]:
            node = node[key]
        node[last] = value

    return change


def main(critic: str, metric: str, mean: float, spread: float = 1.0) -> Change:
    return put("toy-support", "controlled", critic, metric, cell(mean, spread))


def within(critic: str) -> Change:
    return put("toy-within", "controlled", critic, "regret", cell(0.5))


def radius(r: str, metric: str, mean: float, spread: float = 1.0) -> Change:
    return put("r-sweep", f"controlled@R={r}", "raw", metric, cell(mean, spread))


def noisy(metric: str, mean: float) -> Change:
    return put("noise", "controlled@sigma=0.05", "tdq", metric, cell(mean, 0.0))


def swept(name: str, at: str, critic: str, metric: str, mean: float) -> Change:
    return put(f"sweep-{name}", f"controlled@{name}={at}", critic, metric, cell(mean))


def curve(critic: str, metric: str, shape: list[float]) -> Change:
    seeds = {s: [x + 0.001 * i for x in shape] for i, s in enumerate(("42", "43", "44"))}
    return put("curves", "critics", critic, metric, {"seeds": seeds, "mean": shape})


def check(name: str) -> Change:
    def change(content: Any) -> None:
        for entry in content["theory"]["checks"]:
            if entry["claim"] == name:
                entry["holds"] = False

    return change


UP, DOWN = [-0.6, -0.5, -0.4, -0.3, -0.2], [0.5, 0.4, 0.3, 0.2, 0.1]
CAP = put("support-decomposition", "controlled", "raw", "share/norm_cap", share(0.2))
PICKS = put("landscape", "pick_norm", {"tdq": 0.9, "raw": 0.1, "cosine": 0.1, "hybrid": 0.1})
BROKEN: list[tuple[str, Change, str]] = [
    ("norm-drift", CAP, "depends"),
    ("bounded-off-support", main("cosine", "off_support", 0.4), "depends"),
    ("bounded-off-support", swept("steps", "1000", "cosine", "off_support", 0.1), "depends"),
    ("bounded-comparable-regret", main("hybrid", "regret", 0.2), "depends"),
    ("selection-costs", main("cosine", "regret", 0.01), "depends"),
    ("selection-costs", main("cosine", "regret", 0.06, 20.0), "inconclusive"),
    ("below-cap", main("cosine", "selected_score", 0.97), "depends"),
    ("mixed-pools", curve("raw", "off_support", [0.99] * 5), "not seen"),
    ("landscape", PICKS, "not seen"),
    ("only-tdq", main("tdq", "regret", 0.3), "depends"),
    ("only-tdq", swept("temperature", "1", "raw", "regret", 0.05), "depends"),
    ("cosine-less-severe", main("cosine", "regret", 1.2, 0.01), "depends"),
    ("cosine-less-severe", main("cosine", "regret", 0.98, 0.1), "inconclusive"),
    ("hybrid-as-often-as-raw", main("hybrid", "off_support", 0.3), "depends"),
    ("mean-norms", main("raw", "mean_norm", 0.5), "depends"),
    ("readout-control", within("q_td"), "depends"),
    ("sum-readout", within("q_hybrid"), "depends"),
    ("score-rises", curve("raw", "selected_score", DOWN), "depends"),
    ("value-falls", curve("hybrid", "value", UP), "depends"),
    ("tdq-near-oracle", curve("tdq", "regret", [0.0, 0.1, 0.3, 0.1, 0.0]), "depends"),
    ("raw-norm-high", curve("raw", "phi_norm", [5.0, 4.0, 3.0, 2.0, 1.0]), "not seen"),
    ("raw-norm-high", curve("raw", "phi_norm", [5.0, 4.9, 4.9, 4.9, 4.9]), "depends"),
    ("other-norms-fall", curve("cosine", "phi_norm", [1.0, 2.0, 3.0, 4.0, 5.0]), "depends"),
    ("search-finds-more", curve("cosine", "off_support", [0.7, 0.5, 0.3, 0.2, 0.1]), "depends"),
    ("radius-order", radius("0.25", "regret", 0.1), "depends"),
    ("radius-order", radius("0.25", "regret", 0.87, 5.0), "inconclusive"),
    ("radius-80", radius("0.55", "off_support", 0.5), "depends"),
    ("radius-80", radius("0.55", "off_support", 0.81, 2.0), "inconclusive"),
    ("radius-far-more", radius("0.55", "regret", 0.0), "depends"),
    ("radius-far-more", radius("0.55", "regret", 0.2, 3.0), "inconclusive"),
    ("radius-reproduces", radius("0.40", "regret", 0.5), "depends"),
    ("noise-selections", noisy("picks_changed", 0.1), "depends"),
    ("noise-shift", noisy("largest_shift", 0.08), "depends"),
    ("nonidentifiability", check("off-support nonidentifiability"), "not seen"),
    ("finite-inflation", check("finite off-support inflation"), "not seen"),
    ("good-ranker", check("good ranker, bad objective"), "not seen"),
    ("bounded-corollary", check("boundedness is not calibration"), "not seen"),
    ("two-epsilon", check("two-epsilon bound"), "not seen"),
    ("positives-unordered", check("compatibility is not graded value"), "not seen"),
]


def test_every_claim_can_fail() -> None:
    assert {name for name, _, _ in BROKEN} == set(BY_ID)


@pytest.mark.parametrize(("name", "change", "expected"), BROKEN, ids=[b[0] for b in BROKEN])
def test_a_changed_number_changes_the_status(name: str, change: Change, expected: str) -> None:
    content = copy.deepcopy(RESULTS)
    change(content)
    assert BY_ID[name].decide(content).status == expected


def test_claims_without_their_tables_stay_open() -> None:
    only_main = {"toy-support": RESULTS["toy-support"]}
    entries, left_open = decide(CONTROLLED, only_main, "a run")
    assert {e["id"] for e in entries} == {
        *("bounded-off-support", "bounded-comparable-regret", "selection-costs", "below-cap"),
        *("only-tdq", "cosine-less-severe", "hybrid-as-often-as-raw", "mean-norms"),
    }
    assert len(entries) + len(left_open) == len(CONTROLLED)
    assert decide(CONTROLLED, {}, "a run")[0] == []


def test_a_cell_without_a_number_leaves_its_claim_open() -> None:
    content = copy.deepcopy(RESULTS)
    content["toy-support"]["rows"]["controlled"]["raw"]["regret"]["mean"] = None
    with pytest.raises(NotMeasuredError):
        BY_ID["selection-costs"].decide(content)


def test_a_network_that_was_trained_again_says_nothing_about_those_that_were_not() -> None:
    content = copy.deepcopy(RESULTS)
    row = content["noise"]["rows"]["controlled@sigma=0.05"]
    row["tdq_noisy_reward"] = row["tdq"] | {"picks_changed": cell(0.18, 0.1)}
    finding = BY_ID["noise-selections"].decide(content)
    assert finding.status == "true by construction"
    assert "It changes: 18 %." in finding.comment


def test_positives_that_are_drawn_by_geometric_offsets_are_ordered() -> None:
    finding = BY_ID["positives-unordered"].decide(RESULTS)
    assert (finding.status, finding.on) == ("depends", "how often each positive is drawn")
    (check,) = (c for c in RESULTS["theory"]["checks"] if "graded" in c["claim"])
    near, far = check["details"]["distances"]
    assert finding.number == pytest.approx((far - near) * -math.log(0.99))


def test_norms_that_cannot_fall_leave_half_of_the_statement_open() -> None:
    finding = BY_ID["other-norms-fall"].decide(RESULTS)
    assert finding.status == "inconclusive"
    assert "output of a LayerNorm" in finding.comment


def test_the_choice_of_the_training_length_is_said() -> None:
    said = training_length(RESULTS)
    assert "fitted to the paper" in said
    assert "at 30000 steps raw picks off support in 95.0 %" in said  # the highest AUC made up
    assert "at 1000 steps" not in said
    assert said in BY_ID["only-tdq"].decide(RESULTS).comment
    assert training_length({}).endswith("nearest to the reported one.")


def test_a_failing_case_is_named() -> None:
    content = copy.deepcopy(RESULTS)
    main("cosine", "off_support", 0.4)(content)
    comment = BY_ID["bounded-off-support"].decide(content).comment
    assert "It does not hold for: cosine." in comment
    assert "Off support: of random candidates 70 %." in comment


def test_seed_interval_against_the_table_of_students_t() -> None:
    # t(0.975, 2) = 4.302653; the seeds 1, 2, 3 have mean 2 and standard deviation 1.
    low, high = seed_interval([1.0, 2.0, 3.0]) or (0.0, 0.0)
    half = 4.302653 / math.sqrt(3)
    assert low == pytest.approx(2 - half, rel=1e-6)
    assert high == pytest.approx(2 + half, rel=1e-6)
    assert seed_interval([1.0]) is None


def test_paired_differences_use_the_seeds_that_both_have() -> None:
    first, second = from_seeds({"1": 5.0, "2": 7.0, "3": 100.0}), from_seeds({"2": 6.0, "1": 1.0})
    assert first.minus(second).seeds == {"1": 4.0, "2": 1.0}
    assert number(RESULTS, "toy-support", "controlled", "raw", "regret").mean == pytest.approx(0.98)


def test_markdown_has_a_row_for_each_entry_and_escapes_bars() -> None:
    entries, _ = decide(CONTROLLED, RESULTS, "a run")
    entries[0]["comment"] = "a | b"
    lines = render_markdown(entries).splitlines()
    assert len(lines) == 2 + len(entries)
    assert "a \\| b" in lines[2]
    assert tally(entries)["true by construction"] == len(CERTAIN)
    assert "over training seeds" in lines[3]
