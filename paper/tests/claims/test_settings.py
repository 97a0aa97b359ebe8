"""The sweeps' rule: the whole criterion, in every setting that trains what a statement is about."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paper.tests.controlled.synthetic import cell, results
from toptail_paper.claims import CLAIMS
from toptail_paper.claims.claim import Sweeps, at_setting, swept_settings

BY_ID = {claim.id: claim for claim in CLAIMS["controlled"]}
LONG = "controlled@steps=30000"


def answers(claim: str, content: dict[str, Any]) -> dict[str, Any]:
    settings = BY_ID[claim].settings
    assert isinstance(settings, Sweeps)
    return settings.answers(BY_ID[claim].criterion, content)


def swept(critic: str, metric: str, mean: float, setting: str = LONG) -> dict[str, Any]:
    """Results in which one cell of one setting is another."""
    content = results()
    row = content["sweep-steps"]["rows"][setting]
    default = content["toy-support"]["rows"]["controlled"]
    row[critic] = (row.get(critic) or default[critic]) | {metric: cell(mean, 0.1)}
    return content


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("only-tdq", ("tdq", "regret", 0.3)),  # its own half, not only the others'
        ("only-tdq", ("tdq", "off_support", 0.4)),
        ("tdq-near-oracle", ("tdq", "regret", 0.3)),
        ("readout-control", ("q_td", "regret", 0.9)),  # the head's half, not only f_cos's
        ("readout-control", ("q_td", "off_support", 0.9)),
        ("readout-control", ("f_cos", "off_support", 0.1)),
        ("mean-norms", ("raw", "mean_norm", 0.3)),
        ("bounded-comparable-regret", ("raw", "regret", 0.1)),
        ("bounded-off-support", ("cosine", "off_support", 0.1)),
        ("selection-costs", ("raw", "regret", 0.01)),
        ("below-cap", ("cosine", "selected_score", 0.99)),
        ("cosine-less-severe", ("raw", "regret", 0.1)),
        ("hybrid-as-often-as-raw", ("hybrid", "off_support", 0.1)),
        ("sum-readout", ("q_hybrid", "regret", 0.6)),
        ("value-falls", ("raw", "value", -0.1)),
        ("search-finds-more", ("raw", "off_support", 0.1)),
    ],
)
def test_a_setting_that_fails_makes_a_statement_depend_on_the_setting(
    claim: str, change: tuple[str, str, float]
) -> None:
    assert BY_ID[claim].decide(results()).status == "seen"
    finding = BY_ID[claim].decide(swept(*change))
    assert (finding.status, finding.on) == ("depends", "the setting")
    assert "not at steps=30000" in finding.comment


def test_every_statement_about_a_trained_critic_of_the_default_setting_is_swept() -> None:
    """The others: one drawn run, the proposal, arithmetic, and norms that no sweep stored."""
    names = {claim.id for claim in CLAIMS["controlled"] if not isinstance(claim.settings, Sweeps)}
    aside = {"landscape", "mixed-pools", "score-rises", "raw-norm-high", "other-norms-fall"}
    robustness = {name for name in names if name.startswith(("radius-", "noise-"))}
    theory = {
        *("nonidentifiability", "finite-inflation", "good-ranker", "bounded-corollary"),
        *("two-epsilon", "positives-unordered"),
    }
    assert names == aside | robustness | theory


def test_a_setting_that_is_open_changes_nothing() -> None:
    content = swept("raw", "off_support", 0.9)
    content["sweep-steps"]["rows"][LONG]["raw"]["off_support"] = cell(0.75, 30.0)
    finding = BY_ID["search-finds-more"].decide(content)
    assert finding.status == "seen"
    assert "open at steps=30000" in finding.comment


def test_a_statement_that_fails_here_and_holds_elsewhere_depends() -> None:
    content = copy.deepcopy(results())
    content["toy-support"]["rows"]["controlled"]["hybrid"]["off_support"] = cell(0.1, 0.1)
    assert BY_ID["hybrid-as-often-as-raw"].decide(content).status == "depends"
    for name in ("sweep-steps", "sweep-temperature"):
        for row in content[name]["rows"].values():
            row["hybrid"] = {**row["hybrid"], "off_support": cell(0.1, 0.1)}
    assert BY_ID["hybrid-as-often-as-raw"].decide(content).status == "not seen"


def test_settings_without_the_default_and_each_one_once() -> None:
    content = copy.deepcopy(results())
    twice = content["sweep-steps"]["rows"]["controlled@steps=1000"]
    content["sweep-layer_norm"] = {"rows": {"controlled@layer_norm=on,steps=1000": twice}}
    names = [name for name, _ in swept_settings(content)]
    assert "controlled@temperature=0.1" not in names
    assert "controlled@steps=1000" in names
    assert "controlled@layer_norm=on,steps=1000" not in names
    assert len(names) == 4


def test_settings_that_train_none_of_the_critics_stay_out() -> None:
    content = {k: v for k, v in results().items() if not k.startswith("sweep-")}
    row = {"cosine": results()["toy-support"]["rows"]["controlled"]["cosine"]}
    content["sweep-temperature"] = {"rows": {"controlled@temperature=1": row}, "default": []}
    assert answers("cosine-less-severe", content) == {"temperature=1": True}
    assert answers("readout-control", content) == {}


def test_a_run_without_sweeps_says_so() -> None:
    content = {k: v for k, v in results().items() if not k.startswith("sweep-")}
    finding = BY_ID["only-tdq"].decide(content)
    assert finding.status == "seen"
    assert finding.comment.endswith("decided at the default setting alone.")
    assert "at the default setting alone" not in BY_ID["only-tdq"].decide(results()).comment


def test_a_critic_that_a_setting_did_not_train_is_the_defaults() -> None:
    content = results()
    row = {"raw": {"regret": cell(0.3), "off_support": cell(0.2), "value": cell(-0.34)}}
    view = at_setting(content, "controlled@steps=1", row)
    rows = view["toy-support"]["rows"]["controlled"]
    assert rows["raw"] is row["raw"]
    assert rows["tdq"] is content["toy-support"]["rows"]["controlled"]["tdq"]
    value = view["curves"]["critics"]["raw"]["value"]
    first = content["curves"]["critics"]["raw"]["value"]["seeds"]["42"][0]
    assert value["seeds"]["42"] == [first, pytest.approx(-0.35)]
    assert "phi_norm" not in view["curves"]["critics"]["raw"]  # no sweep stored it
    assert "support-decomposition" not in view


def test_a_decomposition_is_asked_in_the_settings_that_have_one() -> None:
    content = copy.deepcopy(results())
    shares = copy.deepcopy(content["support-decomposition"]["rows"]["controlled"])
    shares["raw"]["share/norm_cap"] |= {"pooled": 0.1, "low": 0.0, "high": 0.2}
    content["support-decomposition"]["rows"][LONG] = shares
    assert answers("norm-drift", content) == {"steps=30000": False}
    assert BY_ID["norm-drift"].decide(content).status == "depends"
