"""The raw critic with other actions as negatives: its loss, with the actions that it drew."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import ENCODERS, OF_RAW, Facts, raw
from toptail.lab.critics.action_negatives import ActionNegatives
from toptail.lab.critics.losses import uniform_actions


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """The raw critic's loss, and each drawn action's cross-entropy with the label 0."""
    own = slow.raw(params, frozen, rows, set_)
    like = jnp.asarray(rows.actions, jnp.float32)
    logits = []
    for actions in np.asarray(uniform_actions(rows.key, ActionNegatives.drawn, like), np.float64):
        phi, psi = slow.embed(params, set_, rows.states, actions, rows.goals)
        logits.append((phi * psi).sum(axis=-1) / np.sqrt(set_.embed_dim))
    entropy = np.mean([slow.cross_entropy(x, False) for x in np.ravel(logits)])
    loss = own["loss"] + ActionNegatives.weight * entropy / len(rows.states)
    return {**own, "loss": float(loss), "other_actions": float(np.mean(logits))}


FACTS = Facts(None, "f_raw", ENCODERS, slow_loss, raw, OF_RAW, embeds=True, samples=True)
