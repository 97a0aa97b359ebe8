"""The critics of the controlled world against slow NumPy arithmetic."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.critics.facts import WITH_HEADS
from tests.critics.test_factors import factors_make_the_readouts
from tests.critics.test_losses import (
    CHECKS,
    KEY,
    ROWS,
    TINY,
    batch,
    loss_of,
    member,
    params_of,
    readouts_of,
    slow_embeddings,
    slow_network,
)
from toptail.lab.critics.base import Critic
from toptail_paper.controlled.config import HERE
from toptail_paper.controlled.critics import (
    ONE_STEP,
    OneStepHybrid,
    OneStepTDQ,
    OneStepTwoHead,
)

CRITICS = [
    OneStepTDQ((5, 4), ensemble=3),
    OneStepHybrid(TINY, alpha=0.7),
    OneStepTwoHead(TINY, td_weight=0.3),
]


def test_each_is_a_small_version_of_a_critic_of_the_library() -> None:
    assert list(ONE_STEP) == list(HERE)
    for name, kind in ONE_STEP.items():
        assert kind.deployed == HERE[name].deployed
        assert {*kind().readouts()} <= {each.name for each in HERE[name].readouts}


@pytest.mark.parametrize("critic", CRITICS, ids=lambda critic: critic.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_losses_and_readouts_of(critic: Critic, check: Callable[[Critic], None]) -> None:
    check(critic)


@pytest.mark.parametrize("kind", [OneStepHybrid, OneStepTwoHead])
def test_every_readout_is_what_its_factors_make(kind: type[Critic]) -> None:
    factors_make_the_readouts(kind(), WITH_HEADS)


@pytest.mark.parametrize("family", [OneStepHybrid, OneStepTwoHead])
def test_td_heads_by_slow_arithmetic(family: type[OneStepHybrid | OneStepTwoHead]) -> None:
    critic = family(TINY, temperature=0.2, alpha=0.7, td_weight=0.3)
    data, params = batch(), params_of(critic)
    q_td, f_cos, contrast = [], [], []
    for e, (phi, psi) in enumerate(slow_embeddings(params, data)):
        unit_phi = phi / np.linalg.norm(phi, axis=1, keepdims=True)
        unit_psi = psi / np.linalg.norm(psi, axis=1, keepdims=True)
        head = member(params["head"], e)
        both = np.hstack([unit_phi, unit_psi])
        q_td.append(slow_network(head, both, True)[:, 0])
        f_cos.append((unit_phi * unit_psi).sum(1))
        logits = unit_phi @ unit_psi.T / 0.2
        contrast.append(np.mean(np.log1p(np.exp(logits)) - np.eye(ROWS) * logits))
    fitted = np.array(q_td) + (0.7 * np.array(f_cos) if family is OneStepHybrid else 0.0)
    td = np.mean((fitted - np.asarray(data.rewards)) ** 2)
    loss, info = loss_of(critic)(params, data, KEY)
    assert float(loss) == pytest.approx(np.mean(contrast) + 0.3 * td, rel=1e-4)
    assert float(info["contrast"]) == pytest.approx(np.mean(contrast), rel=1e-4)
    reads = readouts_of(critic)(params, *data[:3])
    sums = np.array(q_td) + 0.7 * np.array(f_cos)
    expected = {"q_td": np.array(q_td), "q_hybrid": sums, "f_cos": np.array(f_cos)}
    for name, values in expected.items():
        np.testing.assert_allclose(reads[name], np.mean(values, axis=0), rtol=2e-4, atol=1e-5)


def test_tdq_is_the_mean_of_members_fitted_to_the_reward() -> None:
    critic, data = OneStepTDQ((5, 4), ensemble=3), batch()
    params = params_of(critic)
    s, a, g = (np.asarray(x, np.float64) for x in data[:3])
    q = np.stack(
        [slow_network(member(params["q"], e), np.hstack([s, g, a]), False)[:, 0] for e in range(3)]
    )
    reads = readouts_of(critic)(params, *data[:3])
    np.testing.assert_allclose(reads["q"], q.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(reads["q_min"], q.min(0), rtol=1e-4, atol=1e-5)
    expected = np.mean((q - np.asarray(data.rewards)) ** 2)
    assert float(loss_of(critic)(params, data, KEY)[0]) == pytest.approx(expected, rel=1e-4)


def test_value_goals_replace_the_positives_in_the_td_loss_only() -> None:
    data = batch()
    other = data._replace(value_goals=data.goals[::-1])
    key = KEY
    for critic in (OneStepTDQ((5, 4), ensemble=3), OneStepHybrid(TINY)):
        params = params_of(critic)
        same = loss_of(critic)(params, data._replace(value_goals=data.goals), key)[0]
        assert float(same) == pytest.approx(float(loss_of(critic)(params, data, key)[0]), rel=1e-6)
        loss, info = loss_of(critic)(params, other, key)
        assert float(loss) != pytest.approx(float(same))
        if "contrast" in info:
            assert float(info["contrast"]) == float(
                loss_of(critic)(params, data, key)[1]["contrast"]
            )
