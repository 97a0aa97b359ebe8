"""C-learning towards the best behaviour in the data: an optimistic expectile for the mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toptail.lab.critics.bellman import Bellman
from toptail.lab.critics.c_learning import CLearning
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="c_learning_max",
    title="C-learning, optimistic",
    place=12,
    group="factor",
    network="mlp",
    deployed="logit",
    readouts=Readout.ensemble("logit", "contrastive"),
    ideal="q_star",
    cell=("bootstrapped", "classification", "optimal"),
)


@dataclass(frozen=True)
class CLearningMax(CLearning):
    """C-learning whose u is TD-Q's expectile of the actions' ratios, not their mean.

    As the expectile goes to 1, exp(x) goes to the largest discounted probability of the goal that
    any policy on the behaviour's actions has, over its frequency. Where transitions are
    deterministic, that falls by the factor gamma with each step to the goal: at one state and goal
    it orders actions as the optimal value does.
    """

    name: ClassVar[str] = "c_learning_max"

    bellman: Bellman = Bellman()
    """Discount, expectile and speed of the target network."""
