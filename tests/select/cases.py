"""Every kind of selector with its slow version, and what is promised of it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import numpy as np

from tests.select import slow
from toptail.select.base import ScoreRule, Selector
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

A = ScoreRule.of("a")
MEMBERS = ("a", "b", "c")
CENTERS, SPREADS = (0.5, -0.25, 0.25), (1.0, 2.0, 0.5)


def rule(how: str, scale: str = "raw", penalty: float = 0.0) -> ScoreRule:
    units = (CENTERS, SPREADS) if scale == "standardized" else ((), ())
    return ScoreRule("abc", MEMBERS, how, penalty, scale, *units)  # type: ignore[arg-type]


def scaled(x: list[float]) -> list[float]:
    return [(v - c) / s for v, c, s in zip(x, CENTERS, SPREADS, strict=True)]


def pessimistic(x: list[float]) -> float:
    if -np.inf in x:
        return -np.inf
    return round(statistics.fmean(x) - 0.5 * statistics.pstdev(x), 12)


@dataclass(frozen=True)
class Kind:
    """A selector, its slow version, and whether only the order of scores counts."""

    selector: Selector
    slow: slow.Slow
    monotone: bool = True
    """Whether an increasing map of its scores changes nothing."""


KINDS = {
    "random": Kind(RandomPick(), lambda p: [1 / len(p["a"])] * len(p["a"])),
    "best": Kind(Best(score=A), slow.best("a")),
    "best of any member": Kind(Best(score=rule("member")), slow.any_member(MEMBERS, slow.best)),
    "mean": Kind(
        Best(score=rule("mean")),
        slow.joined(MEMBERS, lambda x: sum(x) / 3),
        monotone=False,
    ),
    "mean, standardized": Kind(
        Best(score=rule("mean", "standardized")),
        slow.joined(MEMBERS, lambda x: sum(scaled(x)) / 3),
        monotone=False,
    ),
    "min": Kind(Best(score=rule("min")), slow.joined(MEMBERS, min)),
    "pessimistic": Kind(
        Best(score=rule("pessimistic", penalty=0.5)),
        slow.joined(MEMBERS, pessimistic),
        monotone=False,
    ),
    "mean of ranks": Kind(
        RankEnsemble(score=rule("mean", "rank")), slow.of_ranks(MEMBERS, statistics.fmean)
    ),
    "min of ranks": Kind(RankEnsemble(score=rule("min", "rank")), slow.of_ranks(MEMBERS, min)),
    "rrf": Kind(
        ReciprocalRanks(score=ScoreRule("abc", MEMBERS), constant=2.0),
        slow.reciprocal(MEMBERS, 2.0),
    ),
    "rank": Kind(RankPick(score=A, rank=3), slow.place("a", lambda _: 3)),
    "trim": Kind(Trim(score=A, share=0.4), slow.place("a", lambda k: 1 + int(0.4 * k + 1e-9))),
    "poisson": Kind(PoissonBest(score=A, mean=2.5), slow.poisson("a", 2.5)),
    "filter": Kind(Filtered(score=A, by="b", least=0.5), slow.filtered("a", "b", 0.5), False),
    "filter of any member": Kind(
        Filtered(score=rule("member"), by="b", least=0.5),
        slow.any_member(MEMBERS, lambda m: slow.filtered(m, "b", 0.5)),
        False,
    ),
    "threshold": Kind(Threshold(score=A, least=0.5), slow.threshold("a", 0.5), False),
    "soft": Kind(Soft(score=A, beta=2.0), slow.soft("a", 2.0), False),
    "chi2": Kind(Chi2(score=A, beta=0.4), slow.chi2("a", 0.4), False),
    "top": Kind(TopBy(score=A, by="b", top=2), slow.top_by("a", "b", 2)),
    "majority": Kind(Majority(), slow.vote(lambda p: [1.0] * len(p["answer"]))),
    "weighted_vote": Kind(
        WeightedVote(score=A, beta=1.5),
        slow.vote(lambda p: slow.soft("a", 1.5)(p)),
        False,
    ),
    "best_in_majority": Kind(
        BestInMajority(score=A), slow.vote(lambda p: [1.0] * len(p["answer"]), by="a")
    ),
    "function": Kind(
        FunctionSelector(
            name="mine",
            reads=("a",),
            function=lambda p: (p["a"] == p["a"].min()) / (p["a"] == p["a"].min()).sum(),
        ),
        slow.joined(["a"], lambda x: -x[0]),
    ),
}
