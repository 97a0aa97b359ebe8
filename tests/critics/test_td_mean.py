"""TD-Q of the behaviour: its loss, and the goals that it is fitted for."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import TD, Facts, Q, V, tdq
from toptail.lab.critics.base import Batch
from toptail.lab.critics.registry import full_size
from toptail.lab.critics.td_mean import TDMean


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """TD-Q's, row by row at the own goal where it is reached, else at any goal."""
    goals = [
        own if mask == 0 else other
        for own, other, mask in zip(rows.value_goals, rows.random_goals, rows.masks, strict=True)
    ]
    return slow.tdq(params, frozen, rows._replace(value_goals=np.array(goals)), set_)


FACTS = Facts(TD, "q", 2 * Q + V, slow_loss, tdq, target=True)


def test_the_mean_unless_another_expectile_is_given() -> None:
    critic, other = full_size("td_mean", gamma=0.9), full_size("td_mean", expectile=0.7)
    assert isinstance(critic, TDMean)
    assert isinstance(other, TDMean)
    assert (critic.bellman.gamma, critic.bellman.expectile) == (0.9, 0.5)
    assert (other.bellman.gamma, other.bellman.expectile) == (0.99, 0.7)


def test_goals_by_hand() -> None:
    """The first row is at its goal; the second's goal followed, and is replaced."""
    one, column = jnp.ones((2, 1)), jnp.array([[1.0], [2.0]])
    batch = Batch(one, one, one, jnp.zeros(2), column, one, jnp.array([0.0, 1.0]))
    batch = batch._replace(random_goals=jnp.array([[7.0], [8.0]]))
    np.testing.assert_array_equal(TDMean().value_goals(batch), [[1.0], [8.0]])
