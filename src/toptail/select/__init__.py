"""Selectors, and the honest choice among them; trains nothing."""

from toptail.select.base import Pool, ScoreRule, Selector
from toptail.select.selectors import (
    Best,
    BestInMajority,
    Chi2,
    Filtered,
    FunctionSelector,
    Majority,
    PoissonBest,
    RandomPick,
    RankEnsemble,
    RankPick,
    ReciprocalRanks,
    Soft,
    Threshold,
    TopBy,
    Trim,
    WeightedVote,
)

__all__ = [
    "Best",
    "BestInMajority",
    "Chi2",
    "Filtered",
    "FunctionSelector",
    "Majority",
    "PoissonBest",
    "Pool",
    "RandomPick",
    "RankEnsemble",
    "RankPick",
    "ReciprocalRanks",
    "ScoreRule",
    "Selector",
    "Soft",
    "Threshold",
    "TopBy",
    "Trim",
    "WeightedVote",
]
