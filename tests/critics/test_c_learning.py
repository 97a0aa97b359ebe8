"""C-learning: its loss, slowly and by hand, and what its cross-entropies are minimal for."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.critics import slow_full as slow
from tests.critics.facts import LN2, Facts, Q, V, of_members
from tests.critics.full_cases import SLOW
from toptail.lab.critics.bellman import Bellman
from toptail.lab.critics.c_learning import CLearning, weighted_entropy


def entropy(weight: float, x: float) -> float:
    """Right so many times, wrong once."""
    return float(-weight * np.log(1 / (1 + np.exp(-x))) - np.log(1 / (1 + np.exp(x))))


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """Network by network and row by row."""
    s, a, g, gamma, cap = (
        rows.states,
        rows.actions,
        rows.random_goals,
        set_.gamma,
        1 / (1 - set_.gamma),
    )
    positive = slow.joint(params, set_, s, a, rows.next_goals)[..., 0]
    own = slow.joint(params, set_, s, a, g)[..., 0]
    u = slow.value(params, set_.members, s, g)
    target = slow.joint(frozen["target"], set_, s, a, g)[..., 0]
    next_u = slow.value(frozen["target"], set_.members, rows.next_states, g)
    of_q, of_u = [], []
    for i in range(len(s)):
        later = gamma * min(np.exp(next_u[i]), cap)
        for j in range(set_.members):
            here = np.log(1 + np.exp(-positive[j, i]))
            of_q.append((1 - gamma) * here + entropy(later, own[j, i]))
        ratio = min(np.exp(target[:, i].min()), cap)
        level = set_.expectile if np.log(ratio) > u[i] else 1 - set_.expectile
        of_u.append(level * (entropy(ratio, u[i]) - entropy(ratio, np.log(ratio))))
    q_loss, v_loss = float(np.mean(of_q)), float(np.mean(of_u))
    return {
        "loss": q_loss + v_loss,
        "q_loss": q_loss,
        "v_loss": v_loss,
        "positive_logit": float(positive.mean()),
        "logit_gap": float(positive.mean() - own.mean()),
    }


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    return of_members("logit", slow.joint(params, SLOW, s, a, g)[..., 0])


# Every logit is 0 and every ratio 1: right with weights 1 - gamma and gamma, wrong once.
FACTS = Facts(2 * LN2, "logit", 2 * Q + V, slow_loss, slow_reads, target=True)


def test_by_hand() -> None:
    """One row, gamma 1/2: a ratio of 1 to come, cut down to 2 of 5 in the target, 1 in u."""
    critic = CLearning(bellman=Bellman(gamma=0.5, expectile=0.9))
    zero, five = jnp.zeros(1), jnp.log(jnp.array([5.0]))
    loss, info = critic.losses(zero[None], zero[None], zero, five, zero)
    q_loss = 0.5 * LN2 + (0.5 + 1) * LN2
    v_loss = 0.9 * (3 * LN2 - (2 * np.log(1.5) + np.log(3)))  # at u = 0 less than at u = log 2
    assert float(info["q_loss"]) == pytest.approx(q_loss)
    assert float(info["v_loss"]) == pytest.approx(v_loss)
    assert float(loss) == pytest.approx(q_loss + v_loss)


@pytest.mark.parametrize("expectile", [0.5, 0.9])
def test_u_is_an_expectile_of_ratios(expectile: float) -> None:
    """The same number as the expectile of squared errors, in the ratios' own scale."""
    ratios = np.array([0.2, 1.0, 4.0])
    critic = CLearning(bellman=Bellman(gamma=0.99, expectile=expectile))
    nothing, target = jnp.zeros((1, 3)), jnp.log(jnp.asarray(ratios))

    def v_loss(u: float) -> float:
        found = critic.losses(nothing, nothing, jnp.full(3, u), target, nothing[0])[1]
        return float(found["v_loss"])

    def squared(x: float) -> float:
        return slow.expectile(ratios - x, expectile)

    found = np.exp(minimize_scalar(v_loss, bounds=(-3, 3)).x)
    expected = minimize_scalar(squared, bounds=(0, 5)).x
    assert found == pytest.approx(expected, rel=5e-3)
    assert (expected == pytest.approx(ratios.mean(), rel=1e-3)) == (expectile == 0.5)


def test_the_cross_entropy_is_minimal_at_the_logarithm_of_the_mean() -> None:
    weights = jnp.array([0.5, 2.0, 6.5])
    best = minimize_scalar(lambda x: float(weighted_entropy(weights, x).mean()), bounds=(-3, 3)).x
    assert np.exp(best) == pytest.approx(3.0, rel=1e-3)
