"""The counterfactuals on pools small enough to work out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from paper.tests.controlled.tiny import TINY
from toptail_paper.controlled.cells import CriticCell, Trained
from toptail_paper.controlled.evaluate import Pools, Scores
from toptail_paper.controlled.measure import counterfactual_scores, decompose, noise_cells, picks_of
from toptail_paper.controlled.world import ControlledWorld
from toptail_paper.study.tables import cell

CONFIG = replace(TINY, queries=2, pool=4)


class Stored(Trained):
    """A unit whose scores are given instead of read."""

    given: dict[str, Scores]

    def scores(self) -> dict[str, Scores]:
        return self.given


def pools() -> Pools:
    drawn = Pools.draw(CONFIG, ControlledWorld())
    value = np.array([[0.0, -0.1, -1.0, -0.5], [-0.2, -0.4, -0.8, -0.3]])
    support = np.array([[True, True, False, False], [True, True, False, False]])
    return replace(drawn, value=value, support=support)


def unit(seed: int, name: str = "raw", **scores: list[list[float]]) -> Trained:
    critic = CONFIG.critics.make(name)
    made = Stored(None, CriticCell(critic, ControlledWorld(), (seed,), (1,)), seed)  # type: ignore[arg-type]
    object.__setattr__(made, "given", {k: np.array(v, np.float32) for k, v in scores.items()})
    return made


def raw_unit(seed: int) -> Trained:
    return unit(
        seed,
        f_raw=[[1, 2, 9, 3], [5, 1, 2, 3]],  # picks candidate 2 (off) and 0 (on)
        f_cos=[[1, 2, 0, 0], [1, 0, 0, 2]],  # picks 1 (on) and 3 (off)
        phi_norm=[[1, 1, 5, 1], [1, 1, 5, 1]],  # picks 2 twice
        capped=[[3, 2, 1, 0], [3, 2, 1, 0]],  # picks 0 twice
        capped_data=[[1, 2, 9, 3], [5, 1, 2, 3]],  # never binds
    )


def test_regret_splits_and_counterfactuals_by_hand() -> None:
    cells = decompose([raw_unit(1), raw_unit(2)], CONFIG, pools())
    expected = {
        "regret": (1.0 + 0.0) / 2,
        "off_support": 0.5,
        "regret_off": 0.5,
        "regret_on": 0.0,
        "mean_regret_off": 1.0,
        "mean_regret_on": 0.0,
        "regret/support_only": (0.1 + 0.0) / 2,
        "share/support_only": 1 - 0.05 / 0.5,
        "same_pick/support_only": 0.5,
        "regret/cosine_readout": (0.1 + 0.1) / 2,
        "off_support/cosine_readout": 0.5,
        "share/cosine_readout": 1 - 0.1 / 0.5,
        "regret/norm_cap": 0.0,
        "share/norm_cap": 1.0,
        "share/norm_cap_data": 0.0,
        "same_pick/norm_cap_data": 1.0,
        "regret/norm_only": (1.0 + 0.6) / 2,
        "share/norm_only": 1 - 0.8 / 0.5,
    }
    for name, value in expected.items():
        assert cells[name]["mean"] == pytest.approx(value, abs=1e-12), name
    share = cells["share/support_only"]
    assert share["pooled"] == pytest.approx(0.9)
    # Resampling two queries gives their regrets (1, 0): a draw without regret has no share.
    assert share["std"] == pytest.approx(0.0)


def test_shares_are_pooled_over_seeds_before_the_ratio() -> None:
    other = unit(
        2,
        f_raw=[[1, 2, 3, 9], [1, 9, 2, 3]],  # picks 3 (regret 0.5) and 1 (regret 0.2)
        f_cos=[[9, 2, 0, 0], [9, 0, 0, 2]],  # no regret at all
        phi_norm=[[1, 1, 5, 1], [1, 1, 5, 1]],
        capped=[[3, 2, 1, 0], [3, 2, 1, 0]],
        capped_data=[[3, 2, 1, 0], [3, 2, 1, 0]],
    )
    share: Any = decompose([raw_unit(1), other], CONFIG, pools())["share/cosine_readout"]
    assert share["seeds"] == {"1": pytest.approx(0.8), "2": pytest.approx(1.0)}
    assert share["mean"] == pytest.approx(0.9)
    assert share["pooled"] == pytest.approx(1 - (0.1 + 0.0) / (0.5 + 0.35))
    assert share["low"] <= share["pooled"] <= share["high"]


def test_a_cap_changes_nothing_for_a_cosine() -> None:
    scores = {
        name: np.random.default_rng(i).normal(size=(2, 4)).astype(np.float32)
        for i, name in enumerate(("f_cos", "phi_norm", "capped", "capped_data"))
    }
    changed = counterfactual_scores(scores, "f_cos", pools().support)
    for name in ("deployed", "cosine_readout", "norm_cap", "norm_cap_data"):
        np.testing.assert_array_equal(changed[name], scores["f_cos"])


def test_ties_are_averaged_not_broken_by_order() -> None:
    regret, off = picks_of(np.array([[1, 0, 1, 0], [2, 2, 2, 2]], np.float32), pools())
    np.testing.assert_allclose(regret, [(0.0 + 1.0) / 2, (0.0 + 0.2 + 0.6 + 0.1) / 4])
    np.testing.assert_allclose(off, [0.5, 0.5])


def test_noise_cells_by_hand() -> None:
    world = pools()
    noisy = replace(world, value_noisy=world.value - np.array([[0.06, 0.05, 0.0, 0.0]] * 2))
    cells = noise_cells({1: np.array([2, 0])}, {1: np.array([2, 1])}, noisy)
    # Query 0: regret 1.0 exact, -0.06 - (-1.0) = 0.94 noisy. Query 1: pick 0 stays the best.
    assert cells["regret"]["mean"] == pytest.approx(0.5)
    assert cells["regret_noisy"]["mean"] == pytest.approx(0.47)
    assert cells["largest_shift"]["mean"] == pytest.approx(0.06)
    assert cells["picks_changed"]["mean"] == 0.5


def test_cells_leave_out_what_is_not_computable() -> None:
    assert cell({1: 1.0, 2: float("nan"), 3: 3.0}) == {
        "mean": 2.0,
        "std": pytest.approx(np.sqrt(2)),
        "seeds": {"1": 1.0, "2": None, "3": 3.0},
    }
    assert cell({1: float("nan")})["mean"] is None
