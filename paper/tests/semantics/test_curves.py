"""Curves of hand-solvable critics, and agreement with the tables at the largest K."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from paper.tests.semantics.scored import CONFIG, manipulation, navigation
from paper.tests.triples import world
from toptail_paper.semantics.measure import distance_edges, measure_all
from toptail_paper.semantics.tables import all_tables
from toptail_paper.semantics.write import all_curves

MEASURED = measure_all([navigation(), manipulation()], CONFIG)
CURVES = all_curves(MEASURED, CONFIG)
TASK = CURVES["tasks"]["PointMaze"]
VALUES = [world.GAMMA**d for d in (1, 2, 3, 4)]


def test_deciles_of_an_exact_and_of_an_inverted_critic() -> None:
    near, second, third, far = VALUES
    rising = [far, far, (far + third) / 2, third, third, second, second, (second + near) / 2]
    expected = [*rising, near, near]
    assert TASK["tdq"]["deciles"]["mean"] == pytest.approx(expected)
    assert TASK["cosine"]["deciles"]["mean"] == pytest.approx(expected[::-1])


def test_profile_of_an_exact_critic_and_of_a_separator() -> None:
    edges = TASK["tdq"]["profile_edges"]
    assert edges == [1, 2, 3, 4, 5]
    assert TASK["tdq"]["profile"]["mean"] == pytest.approx([v / VALUES[0] for v in VALUES])
    assert TASK["mine"]["profile"]["mean"] == pytest.approx([1.0] * 4)
    # An inverted critic's nearest goals do not score above random ones: there is no profile.
    assert TASK["cosine"]["profile"]["mean"] == [None] * 4


def test_best_of_k_between_random_and_oracle() -> None:
    exact, constant = TASK["tdq"], TASK["raw"]
    assert exact["value"]["mean"] == pytest.approx(exact["oracle"])
    assert constant["value"]["mean"] == pytest.approx([constant["random"]] * 3)
    assert exact["random"] == pytest.approx(sum(VALUES) / 4)
    assert exact["oracle"][0] == pytest.approx(exact["random"])


def test_excess_off_support_over_k() -> None:
    # Two of four candidates are on support; best of two is off it only if both are: 1 in 6.
    assert CURVES["n_near"] == 200
    assert TASK["tdq"]["excess_off_support"]["mean"] == pytest.approx([0.0, 1 / 6 - 0.5, -0.5])
    assert TASK["cosine"]["excess_off_support"]["mean"] == pytest.approx([0.0, 0.5 - 1 / 6, 0.5])


def test_curves_end_where_the_tables_stand() -> None:
    tables = all_tables(MEASURED, CONFIG)
    stored = tables["ogbench-curse"]["rows"]["PointMaze"]["noise"]["value"]
    curve = TASK["noise"]["value"]
    assert curve["mean"][-1] == pytest.approx(stored["mean"])
    assert curve["std"][-1] == pytest.approx(stored["std"])
    assert curve["low"][-1] == pytest.approx(stored["low"])
    assert curve["high"][-1] == pytest.approx(stored["high"])
    assert {s: values[-1] for s, values in curve["seeds"].items()} == pytest.approx(stored["seeds"])


def test_one_seed_has_no_spread_and_play_data_no_curves() -> None:
    assert TASK["mine"]["value"]["std"] is None
    assert list(CURVES["tasks"]) == ["PointMaze"]
    assert json.loads(json.dumps(CURVES, allow_nan=False)) == CURVES


@pytest.mark.parametrize("longest", [4, 12, 60, 61])
def test_distance_edges_hold_every_distance(longest: int) -> None:
    edges = distance_edges(replace(CONFIG, max_offset=longest))
    assert edges[0] == 1
    assert edges[-1] == longest + 1
    assert list(edges) == sorted(set(edges))
    assert longest != 60 or edges == (1, 6, 11, 16, 21, 26, 31, 36, 41, 46, 51, 56, 61)
