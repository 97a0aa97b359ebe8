"""Optimistic C-learning is C-learning with TD-Q's expectile."""

from __future__ import annotations

from tests.critics.test_c_learning import FACTS as C_LEARNING
from toptail.lab.critics.c_learning import CLearning
from toptail.lab.critics.c_learning_max import CLearningMax
from toptail.lab.critics.registry import full_size

FACTS = C_LEARNING


def test_it_differs_by_the_expectile_alone() -> None:
    mean, best = full_size("c_learning", gamma=0.9), full_size("c_learning_max", gamma=0.9)
    assert isinstance(mean, CLearning)
    assert isinstance(best, CLearningMax)
    assert (mean.bellman.expectile, best.bellman.expectile) == (0.5, 0.9)
    assert mean.bellman.gamma == best.bellman.gamma == 0.9
