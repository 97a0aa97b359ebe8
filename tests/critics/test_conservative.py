"""Conservative TD-Q: a loss that samples, checked with the numbers that it drew."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import Facts, Q, V, tdq
from toptail.lab.critics.conservative import Conservative
from toptail.lab.critics.losses import uniform_actions


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """TD-Q's loss, and the penalty row by row with the actions that the key gives."""
    td = slow.tdq(params, frozen, rows, set_)
    like = jnp.asarray(rows.actions, jnp.float32)
    drawn = np.asarray(uniform_actions(rows.key, Conservative.drawn, like), np.float64)
    assert np.abs(drawn).max() <= 1
    own = slow.joint(params, set_, rows.states, rows.actions, rows.value_goals)[..., 0]
    others = [
        slow.joint(params, set_, rows.states, actions, rows.value_goals)[..., 0]
        for actions in drawn
    ]
    gap = float(np.mean(np.log(np.sum(np.exp(others), axis=0)) - own))
    return {**td, "loss": td["loss"] + Conservative.penalty * gap, "penalty": gap}


FACTS = Facts(None, "q", 2 * Q + V, slow_loss, tdq, target=True, samples=True)
