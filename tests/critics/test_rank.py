"""Pairwise ranking: its loss pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.critics import slow_full as slow
from tests.critics.facts import LN2, Facts, Q, of_members
from tests.critics.full_cases import SLOW


def slow_loss(
    params: slow.Tree, frozen: slow.Tree, rows: slow.Rows, set_: slow.Settings
) -> slow.Scalars:
    """Every pair of which the first is nearer to its goal; goals of any trajectory are farthest."""
    del frozen
    own, other = (
        slow.joint(params, set_, rows.states, rows.actions, goals)[..., 0]
        for goals in (rows.goals, rows.random_goals)
    )
    losses, right = [], []
    for member in range(set_.members):
        scored = [*zip(own[member], rows.offsets, strict=True)]
        far = [(x, np.inf) for x in other[member]]
        for x, steps in scored:
            for y, more in (*scored, *far):
                if steps < more:
                    losses.append(slow.cross_entropy(x - y, True))
                    right.append(x > y)
    return {"loss": float(np.mean(losses)), "accuracy": float(np.mean(right))}


def slow_reads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    return of_members("rank", slow.joint(params, SLOW, s, a, g)[..., 0])


FACTS = Facts(LN2, "rank", 2 * Q, slow_loss, slow_reads)
