"""What scorers are called, and what the registry says of them."""

from __future__ import annotations

from tests.critics.examples import registered
from toptail.lab.critics.registry import CRITICS
from toptail_paper.study.naming import drawn, in_order, is_circular, is_control, scorer_name


def test_values_that_a_value_network_judges_are_marked() -> None:
    scorers = [scorer for entry in CRITICS.values() for scorer in entry.scorers]
    marked = {scorer for scorer in scorers if is_circular(scorer)}
    # The two heads' q_td are values whether or not their network is shared.
    assert marked == {"tdq", "td_mean", "td_bilinear", "two_head_separate", "two_head_joint"}
    assert not is_circular("mine")


def test_a_users_scorer_is_no_control() -> None:
    assert is_control("two_head_joint.f_cos")
    assert is_control("nce_mlp")
    assert not is_control("raw")
    assert not is_control("mine")
    with registered("quasimetric"):
        assert not is_control("quasimetric")


def test_figures_leave_out_what_has_a_table_of_its_own() -> None:
    apart = ["two_head_joint", "two_head_joint.f_cos", "c_learning", "td_mean"]
    assert drawn(["mine", *apart, "nce_mlp", "raw"]) == ["raw", "mine", "nce_mlp"]
    assert drawn(apart) == apart  # unless there is nothing else


def test_variants_stand_behind_their_critic_with_their_settings() -> None:
    warm = "cosine[temperature=0.1]"
    assert in_order([warm, "mine", "cosine", "raw"]) == ["raw", "cosine", warm, "mine"]
    assert scorer_name(warm) == "Cosine (temperature 0.1)"
    norm = f"{warm}_trained/phi_norm"
    assert scorer_name(norm) == "Cosine-trained (temperature 0.1), ‖φ‖ alone"
    assert is_circular("tdq[gamma=0.9]")
    assert drawn([warm, "two_head_joint[alpha=2]"]) == [warm]
