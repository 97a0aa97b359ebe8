"""Every claim of the theory holds where its premise does, and fails where the premise is broken."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from toptail.io.json_files import write_json
from toptail.lab.critics.base import Params
from toptail.lab.critics.raw import Raw
from toptail.lab.training.checkpoints import save_params
from toptail_paper.controlled.cells import unit_of
from toptail_paper.controlled.config import CriticSettings, StudyConfig
from toptail_paper.controlled.theory.battery import check_theory, embeddings, write_theory
from toptail_paper.controlled.theory.selection import (
    TwoSetWorld,
    adversarial_within_epsilon,
    boundedness_is_not_calibration,
    good_ranker_bad_objective,
    pick_in_bad_probability,
    pick_regret,
    regret_lower_bound,
    two_epsilon_bound,
    two_epsilon_is_tight,
    within_epsilon,
)
from toptail_paper.controlled.theory.support import (
    BadRegion,
    StateActions,
    bilinear_scores,
    binary_nce,
    finite_inflation,
    off_support_nonidentifiability,
    positives_left_unordered,
    region_outside_disk,
)
from toptail_paper.controlled.trainings import cells_of
from toptail_paper.study.store import RunFolder

Floats = NDArray[np.float64]
RADIUS = 0.4
KS = (1, 4, 16, 64)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def disk(n: int, low: float, high: float, seed: int) -> StateActions:
    """States in the square, actions with a norm in [low, high]."""
    g = np.random.default_rng(seed)
    angle, length = g.uniform(0, 2 * math.pi, n), g.uniform(low, high, n)
    actions = length[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return StateActions(g.uniform(-2, 2, (n, 2)), actions)


SUPPORT = disk(48, 0.0, RADIUS, 1)
BAD = disk(40, RADIUS + 0.2, 1.0, 2)
GOALS: Floats = np.random.default_rng(3).uniform(-2, 2, (48, 2))
_WEIGHTS = np.random.default_rng(4).normal(size=(4, 7))
_GOAL_WEIGHTS = np.random.default_rng(5).normal(size=(2, 7))


def phi(states: Floats, actions: Floats) -> Floats:
    return np.tanh(np.concatenate([states, actions], axis=-1) @ _WEIGHTS)


def psi(goals: Floats) -> Floats:
    return 3.0 * np.tanh(goals @ _GOAL_WEIGHTS)


def score(states: Floats, actions: Floats, goals: Floats) -> Floats:
    return np.asarray((phi(states, actions) * psi(goals)).sum(-1))


class TestSums:
    def test_bilinear_scores_are_the_matrix_product(self) -> None:
        left, right = rng().normal(size=(5, 9)), rng().normal(size=(6, 9))
        np.testing.assert_allclose(bilinear_scores(left, right), left @ right.T, rtol=1e-12)

    def test_a_zero_coordinate_changes_no_bit(self) -> None:
        left, right = rng().normal(size=(50, 16)), rng().normal(size=(50, 16))
        more = np.concatenate([left, np.zeros((50, 1))], -1), np.c_[right, np.ones(50)]
        np.testing.assert_array_equal(bilinear_scores(left, right), bilinear_scores(*more))

    def test_binary_nce_against_its_definition(self) -> None:
        logits, labels = np.array([2.0, -1.0, 0.5]), np.array([1.0, 0.0, 1.0])
        probability = 1 / (1 + np.exp(-logits))
        terms = -(labels * np.log(probability) + (1 - labels) * np.log(1 - probability))
        assert binary_nce(logits, labels) == pytest.approx(terms.mean(), rel=1e-12)
        weights = np.array([3.0, 1.0, 2.0])
        expected = (weights * terms).sum() / weights.sum()
        assert binary_nce(logits, labels, weights) == pytest.approx(expected, rel=1e-12)

    def test_binary_nce_of_extreme_logits_is_finite(self) -> None:
        assert binary_nce([1e4, -1e4], [1, 0]) == 0.0
        assert binary_nce([-1e4], [1]) == 1e4


class TestOffSupportNonidentifiability:
    @staticmethod
    def perturbation(edge: float) -> object:
        def h(_s: Floats, actions: Floats, _g: Floats) -> Floats:
            return np.asarray(50.0 * np.maximum(0.0, np.linalg.norm(actions, axis=-1) - edge))

        return h

    def check(self, edge: float, off: StateActions = BAD) -> tuple[bool, dict[str, object]]:
        h = self.perturbation(edge)
        result = off_support_nonidentifiability(score, h, SUPPORT, GOALS, off)  # type: ignore[arg-type]
        return result.holds, result.as_json()

    def test_a_perturbation_that_vanishes_on_the_support_leaves_the_loss(self) -> None:
        holds, result = self.check(RADIUS)
        assert holds
        assert result["measured"] == 0.0
        assert result["details"]["largest_change_off_support"] > 5.0  # type: ignore[index]

    def test_a_perturbation_that_reaches_into_the_support_does_not(self) -> None:
        holds, result = self.check(RADIUS - 0.1)
        assert not holds
        assert result["measured"] != 0.0

    def test_a_perturbation_that_is_zero_everywhere_shows_nothing(self) -> None:
        assert not self.check(5.0)[0]


def region_of_samples(support: StateActions, bad: StateActions) -> BadRegion:
    """The finite set of the samples ``bad`` as B, apart from the samples ``support``."""

    def distance(states: Floats, actions: Floats) -> Floats:
        pairs = (states, actions), (bad.states, bad.actions)
        own, other = (np.concatenate(pair, axis=1) for pair in pairs)
        return np.asarray(np.linalg.norm(own[:, None] - other[None], axis=-1).min(axis=1))

    return BadRegion(distance, float(distance(support.states, support.actions).min()))


class TestFiniteInflation:
    def test_regions(self) -> None:
        region = region_outside_disk(RADIUS, 0.2)
        assert (region.bump(BAD.states, BAD.actions) == 1.0).all()
        assert (region.bump(SUPPORT.states, SUPPORT.actions) == 0.0).all()
        edge = np.array([[RADIUS, 0.0], [RADIUS + 0.15, 0.0]])
        bump = region.bump(np.zeros((2, 2)), edge)
        assert bump[0] == 0.0
        assert bump[1] == pytest.approx(0.5)

    @pytest.mark.parametrize(
        "region", [region_outside_disk(RADIUS, 0.2), region_of_samples(SUPPORT, BAD)]
    )
    @pytest.mark.parametrize("margin", [0.1, 100.0, 1e6, -50.0])
    def test_holds_for_any_margin(self, region: BadRegion, margin: float) -> None:
        result = finite_inflation(phi, psi, region, SUPPORT, BAD, GOALS, margin)
        assert result.holds, result
        assert result.measured >= margin
        assert result.details["largest_change_on_support"] == 0.0
        assert result.details["largest_phi_norm_after"] <= result.details["phi_norm_bound"]

    def test_fails_when_the_region_touches_the_support(self) -> None:
        overlapping = StateActions(
            np.r_[BAD.states, SUPPORT.states[:1]], np.r_[BAD.actions, SUPPORT.actions[:1]]
        )
        region = region_of_samples(SUPPORT, overlapping)
        assert region.separation == 0.0
        result = finite_inflation(phi, psi, region, SUPPORT, overlapping, GOALS, 100.0)
        assert not result.holds
        assert not result.details["scores_on_support_bit_equal"]

    def test_fails_when_the_separation_is_overstated(self) -> None:
        region = replace(region_outside_disk(RADIUS, 0.2), separation=2.0)
        assert not finite_inflation(phi, psi, region, SUPPORT, BAD, GOALS, 100.0).holds

    def test_fails_when_the_bad_samples_lie_outside_the_region(self) -> None:
        region = region_outside_disk(RADIUS, 0.5)
        assert not finite_inflation(phi, psi, region, SUPPORT, BAD, GOALS, 100.0).holds


class TestGoodRankerBadObjective:
    def test_formulas_by_enumeration(self) -> None:
        p, k, gap = 0.3, 4, 2.0
        in_bad = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
        mass = np.where(in_bad == 1, p, 1 - p).prod(-1)
        any_bad, any_good = in_bad.any(-1), (in_bad == 0).any(-1)
        assert pick_in_bad_probability(p, k) == pytest.approx(mass[any_bad].sum())
        assert regret_lower_bound(p, k, gap) == pytest.approx(gap * mass[any_bad & any_good].sum())

    def test_simulation_agrees(self) -> None:
        result = good_ranker_bad_objective(TwoSetWorld(), KS, 3000, rng())
        assert result.holds, result
        assert result.measured == pytest.approx(1 - 0.95**64, abs=0.03)

    def test_the_regret_bound_is_attained_without_spread(self) -> None:
        result = good_ranker_bad_objective(TwoSetWorld(spread=0.0), KS, 3000, rng())
        low, high = result.details["regret_low"], result.details["regret_high"]
        for a, bound, b in zip(low, result.details["regret_bound"], high, strict=True):
            assert a <= bound <= b
        assert result.holds

    def test_fails_when_the_support_outscores_the_bad_set(self) -> None:
        world = TwoSetWorld(bad_score=0.3)
        assert not good_ranker_bad_objective(world, KS, 3000, rng()).holds

    def test_fails_when_the_bad_set_is_better_than_stated(self) -> None:
        class Kinder(TwoSetWorld):
            def pools(
                self, n: int, k: int, rng: np.random.Generator
            ) -> tuple[NDArray[np.bool_], Floats, Floats]:
                in_bad, values, scores = super().pools(n, k, rng)
                return in_bad, np.where(in_bad, -0.5, values), scores

        assert not good_ranker_bad_objective(Kinder(spread=0.0), KS, 3000, rng()).holds

    def test_same_generator_same_result(self) -> None:
        first = good_ranker_bad_objective(TwoSetWorld(), KS, 200, rng())
        assert first == good_ranker_bad_objective(TwoSetWorld(), KS, 200, rng())


class TestBoundedness:
    def test_a_cap_of_one_does_not_help(self) -> None:
        result = boundedness_is_not_calibration(1.0, 0.01, 0.05, KS, 3000, rng())
        assert result.holds, result
        assert result.details["largest_score"] <= 1.0

    def test_fails_when_the_support_reaches_past_the_bad_set(self) -> None:
        assert not boundedness_is_not_calibration(1.0, -0.5, 0.05, KS, 3000, rng()).holds


class TestTwoEpsilon:
    values = rng().normal(size=(30, 40))

    def test_pick_regret_by_hand(self) -> None:
        values = np.array([[1.0, 4.0, 2.0]])
        assert pick_regret(values, np.array([[9.0, 1.0, 3.0]])).tolist() == [3.0]

    @pytest.mark.parametrize("epsilon", [1e-3, 0.1, 3.0])
    def test_never_violated(self, epsilon: float) -> None:
        scores = within_epsilon(self.values, epsilon, 40, rng())
        assert np.abs(scores - self.values).max() <= epsilon * (1 + 1e-9)
        result = two_epsilon_bound(self.values, scores, epsilon)
        assert result.holds
        assert result.measured <= 1.0 + 1e-9
        assert result.details["pools"] == 40 * 30

    def test_one_epsilon_per_pool(self) -> None:
        scores = self.values + rng().normal(size=self.values.shape)
        error = np.abs(scores - self.values).max(-1)
        assert two_epsilon_bound(self.values, scores, error).holds

    def test_fails_when_the_errors_are_larger_than_stated(self) -> None:
        scores = within_epsilon(self.values, 2.0, 40, rng())
        result = two_epsilon_bound(self.values, scores, 0.2)
        assert not result.holds
        assert not result.details["premise_holds"]

    def test_the_adversary_beats_a_slow_search(self) -> None:
        values, epsilon = rng().normal(size=(5, 6)), 0.4
        attained = pick_regret(values, adversarial_within_epsilon(values, epsilon))
        for row, got in zip(values, attained, strict=True):
            # Every candidate can be made to win exactly when raising it and lowering the rest does.
            wins = [
                row.max() - row[i]
                for i in range(len(row))
                if row[i] + epsilon > np.delete(row, i).max() - epsilon
            ]
            assert got == pytest.approx(max(wins))

    def test_tight(self) -> None:
        dense = rng().uniform(-1, 0, (20, 400))
        result = two_epsilon_is_tight(dense, 0.1)
        assert result.holds
        assert 0.95 <= result.measured <= 1.0

    def test_tightness_is_not_claimed_where_candidates_lie_far_apart(self) -> None:
        assert not two_epsilon_is_tight(np.array([[0.0, -10.0]]), 0.1).holds


class TestPositives:
    negatives = np.array([-1.0, 0.2, -3.0])

    def test_an_exchange_leaves_the_loss(self) -> None:
        result = positives_left_unordered((2.0, 1.0), self.negatives, (3.0, 30.0))
        assert result.holds
        assert result.measured == 0.0

    def test_fails_where_near_goals_are_drawn_more_often(self) -> None:
        weights = (0.99**3, 0.99**30)
        result = positives_left_unordered((2.0, 1.0), self.negatives, (3.0, 30.0), weights)
        assert not result.holds
        # The order that agrees with the distances has the lower loss.
        assert result.details["swapped_loss"] > result.details["loss"]

    def test_fails_where_a_positive_lies_below_a_negative(self) -> None:
        assert not positives_left_unordered((2.0, 0.1), self.negatives, (3.0, 30.0)).holds

    def test_fails_where_there_is_nothing_to_order(self) -> None:
        assert not positives_left_unordered((2.0, 2.0), self.negatives, (3.0, 30.0)).holds


def test_the_battery_runs_every_claim_and_is_plain_json() -> None:
    pools = rng().uniform(-1.0, 0.0, size=(50, 256))
    region = region_outside_disk(RADIUS, 0.2)
    checks = check_theory(phi, psi, region, SUPPORT, GOALS, BAD, pools, rng())
    assert [c.claim for c in checks if not c.holds] == []
    assert len({c.claim for c in checks}) == len(checks) == 7
    text = json.dumps([c.as_json() for c in checks], allow_nan=False)
    assert json.loads(text)[1]["where"] == "thm:finite-inflation"


class TestTrainedCritic:
    """The checks on a network of the study, stored as the study stores it."""

    config = StudyConfig(
        seeds=(5,),
        steps=1,
        queries=12,
        pool=64,
        heldout=8,
        data_size=300,
        critics=CriticSettings(hidden=(8,), embed_dim=4, ensemble=2),
    )

    def stored(self, folder: Path) -> tuple[Raw, Params]:
        """A fresh raw critic in the place of the trained one."""
        cell = cells_of(self.config, ("raw",))[0]
        assert isinstance(cell.critic, Raw)
        params = cell.critic.init(jax.random.key(0), 2, 2, 2)
        unit = unit_of(RunFolder(folder), self.config, cell, 5, 1).result
        with unit.writing() as stage:
            save_params(stage / "params.safetensors", params)
            write_json(stage / "unit.json", {})
        return cell.critic, params

    def test_embeddings_give_the_deployed_score(self, tmp_path: Path) -> None:
        critic, params = self.stored(tmp_path)
        left, right = embeddings(critic, params)
        states, actions = SUPPORT.states, SUPPORT.actions
        ours = np.einsum("nd,nd->n", left(states, actions), right(GOALS))
        rows = [jnp.asarray(x, jnp.float32) for x in (states, actions, GOALS)]
        theirs = np.asarray(critic.readouts()[critic.deployed](params, *rows))
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)

    def test_every_claim_holds_on_it_and_is_stored(self, tmp_path: Path) -> None:
        self.stored(tmp_path)
        checks = write_theory(self.config, tmp_path)
        assert [c.claim for c in checks if not c.holds] == []
        content = json.loads((tmp_path / "theory.json").read_text())
        assert content["seed"] == 5
        inflation = content["checks"][1]["details"]
        # Every pool holds a candidate well outside the disk, and the lifted critic picks it.
        assert inflation["pools_with_bad_candidate"] == 1.0
        assert inflation["picks_in_bad_region_after"] == 1.0
        assert inflation["regret_after"] > 0.0
