"""Selectors, and the honest choice among them; trains nothing."""

from toptail.select.base import Selector
from toptail.select.drawn import (
    BestInMajority,
    Chi2,
    Majority,
    Own,
    RankEnsemble,
    Soft,
    TopBy,
    WeightedVote,
)
from toptail.select.exact import (
    Best,
    Filtered,
    PoissonBest,
    RandomPick,
    RankPick,
    Threshold,
    Trim,
)
from toptail.select.pool import Pool, ScoreRule

__all__ = [
    "Best",
    "BestInMajority",
    "Chi2",
    "Filtered",
    "Majority",
    "Own",
    "PoissonBest",
    "Pool",
    "RandomPick",
    "RankEnsemble",
    "RankPick",
    "ScoreRule",
    "Selector",
    "Soft",
    "Threshold",
    "TopBy",
    "Trim",
    "WeightedVote",
]
