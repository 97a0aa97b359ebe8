"""How finely judges tell candidates apart, and how often a pick is a best one."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from paper.tests.selection.stored_stages import Stages
from toptail.io.json_files import read_json
from toptail_paper.selection.judge_tables import judges_table
from toptail_paper.selection.load import read_selection
from toptail_paper.selection.measure import tau_b_ceiling, value_levels
from toptail_paper.selection.page import summary
from toptail_paper.selection.results import read_selection_results
from toptail_paper.selection.specs import TABLES
from toptail_paper.selection.tables import MeasuredPicks
from toptail_paper.study.show import shown_tables


@pytest.fixture(scope="module")
def coarse() -> Any:
    return np.random.default_rng(0).integers(0, 4, (200, 7)).astype(np.float64)


def test_the_ceiling_is_the_tau_b_of_a_perfect_score_without_ties(coarse: Any) -> None:
    coarse = np.concatenate([coarse, np.ones((1, 7)), np.arange(7.0)[None]])
    perfect = coarse + np.random.default_rng(1).uniform(0, 0.1, coarse.shape)
    wanted = [kendalltau(a, b).statistic for a, b in zip(perfect, coarse, strict=True)]
    found = tau_b_ceiling(coarse)
    np.testing.assert_allclose(found, wanted)
    assert np.isnan(found[-2])
    assert found[-1] == 1.0
    # By counting pairs, and no score without ties does better.
    apart = [np.mean([a != b for a, b in combinations(row, 2)]) for row in coarse]
    np.testing.assert_allclose(found[:-2], np.sqrt(apart)[:-2])
    other = np.random.default_rng(2).normal(size=coarse.shape)
    tau = [kendalltau(a, b).statistic for a, b in zip(other, coarse, strict=True)]
    assert (np.array(tau)[:-2] <= found[:-2] + 1e-12).all()


def test_levels_are_the_different_values(coarse: Any) -> None:
    assert value_levels(coarse).tolist() == [len({*row}) for row in coarse.tolist()]


@pytest.fixture
def three(tmp_path: Path) -> Stages:
    """Three queries, one pool of four candidates: 1, 2 and 4 levels."""
    stages = Stages(tmp_path, per_group=1, pools=1, size=4)
    values = np.array([[[5, 5, 5, 5, 9]], [[0, 1, 1, 1, 9]], [[0, 1, 2, 3, 9]]], dtype=float)
    stages.judge("exact", values[None])
    stages.judge("exact_continuous", stages.value[None])
    stages.judge("euclidean", stages.value[None])
    stages.score("tdq@42", np.array([[[1, 2, 3, 4, 0]]] * 3, dtype=float))
    stages.score("raw@42", np.array([[[1, 1, 0, 0, 0]]] * 3, dtype=float))
    return stages


def test_levels_and_best_picks_by_hand(three: Stages) -> None:
    measured = MeasuredPicks(read_selection(three.path), resamples=20)
    assert measured.data.judges == ["exact", "exact_continuous", "euclidean"]
    content = judges_table(measured.data, measured.means, {})
    row = content["rows"]["PointMaze"]["exact"]
    for name, share in {"1": 1 / 3, "2": 1 / 3, "3": 0.0, "more": 1 / 3}.items():
        assert row[f"levels_{name}"]["mean"] == pytest.approx(share)
    assert row["tau_b_ceiling"]["mean"] == pytest.approx((np.sqrt(3 / 6) + 1) / 2)
    found = {name: row["exact/best_pick_4"]["mean"] for name, row in measured.rows.items()}
    # TD-Q picks the last one, which is always best; raw one of the first two, with even chances.
    assert found == pytest.approx(
        {"tdq": 1.0, "raw": (1 + 1 / 2 + 0) / 3, "random": (1 + 3 / 4 + 1 / 4) / 3}
    )
    near = {name: row["exact/best_pick_4/near"]["mean"] for name, row in measured.rows.items()}
    assert near == {"tdq": 1.0, "raw": 1.0, "random": 1.0}


def test_best_picks_are_those_of_plain_loops(tmp_path: Path) -> None:
    stages = Stages(tmp_path, per_group=4, size=8)
    values, scores = np.round(stages.value), np.round(2 * stages.noisy(0.5))
    stages.judge("reference", values[None])
    stages.score("mine", scores)
    shares = []
    for pool, score in zip(values.reshape(-1, 9), scores.reshape(-1, 9), strict=True):
        top = [i for i in range(8) if score[i] == max(score[:8])]
        shares.append(np.mean([pool[i] == max(pool[:8]) for i in top]))
    cell = MeasuredPicks(read_selection(stages.path), resamples=20).rows["mine"]["best_pick_8"]
    assert cell["mean"] == pytest.approx(np.mean(shares))


def test_the_page_says_it_in_plain_words(finished: Path) -> None:
    results = read_selection_results(finished)
    (line,) = (line for line in summary(results) if "is a best one" in line)
    rows = read_json(finished / "tables" / "fixed-query.json")["rows"]["PointMaze"]
    for name, words in (("tdq", "TD-Q"), ("random", "Random pick")):
        assert f"{100 * rows[name]['best_pick_64']['mean']:.0f} % ({words})" in line
    (levels,) = shown_tables(TABLES["levels"], results)
    assert [row[0].text for row in levels.rows] == ["Reference ensemble", "Euclidean shortest way"]
    assert [cell.text for cell in levels.rows[1]][1:] == ["0.0 %"] * 3 + ["100.0 %", "1.00"]
    (picks,) = shown_tables(TABLES["best-picks"], results)
    assert picks.rows[-1][0].text == "Random pick"
    assert picks.rows[-1][2].text == "1.6 %"  # one of 64
