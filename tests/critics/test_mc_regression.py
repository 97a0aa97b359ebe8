"""Monte-Carlo regression: its loss, slowly and by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import Facts, Q, of_members
from tests.critics.full_cases import SLOW


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """Squared errors, goal by goal: gamma^d where the goal followed, 0 where it is any."""
    del frozen
    own = slow.joint(params, set_, rows.states, rows.actions, rows.goals)[..., 0]
    other = slow.joint(params, set_, rows.states, rows.actions, rows.random_goals)[..., 0]
    squares = [
        (member[i] - set_.gamma**offset) ** 2
        for member in own
        for i, offset in enumerate(rows.offsets)
    ] + [q**2 for q in other.ravel()]
    loss = float(np.mean(squares))
    mean = float((own.mean() + other.mean()) / 2)
    return {"loss": loss, "rmse": float(np.sqrt(loss)), "q_mean": mean}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    return of_members("q", slow.joint(params, SLOW, s, a, g)[..., 0])


# Where nothing is told, gamma^0 = 1 is asked for of one goal of each row, and 0 of the other.
FACTS = Facts(0.5, "q", 2 * Q, slow_loss, slow_reads)
