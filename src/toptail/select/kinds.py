"""The selectors: one small object each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final

import numpy as np

from toptail.errors import InputError
from toptail.select.base import FORMAT, RankSelector, Selector, SetSelector
from toptail.select.pool import Pool, ScoreRule
from toptail.select.ranks import Order, passed_first, place_weights, poisson_counts
from toptail.select.sets import (
    chi2_weights,
    of_groups,
    soft_weights,
    top_weights,
    votes_for,
    winners,
)
from toptail.stats.best_of_k import Floats, selection_weights

WeightFunction = Callable[[Mapping[str, Floats]], Any]
"""A user's selector: column -> numbers of one pool ``[K]`` in, weights ``[K]`` out."""


@dataclass(frozen=True, kw_only=True)
class RandomPick(Selector):
    """Any candidate: what every selector is at K = 1."""

    kind: ClassVar[str] = "random"
    complexity: ClassVar[int] = 0
    exact: ClassVar[bool] = True

    def cost(self, k: int) -> float:
        """One."""
        del k
        return 1.0

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """The same weight for all."""
        del k, rng
        return np.full(pool.shape, 1.0 / pool.shape[1])


@dataclass(frozen=True, kw_only=True)
class Best(RankSelector):
    """The best of K by a score, or by several joined to one."""

    kind: ClassVar[str] = "best"
    complexity: ClassVar[int] = 1

    @property
    def called(self) -> str:
        """``best``, or how the scores are joined."""
        return self.kind if self.score.how == "member" else self.score.how

    def by_rank(self, n: int, k: int) -> Floats:
        """The audit's weights."""
        return place_weights(n, k, 1)


@dataclass(frozen=True, kw_only=True)
class RankPick(RankSelector):
    """The r-th best of K; the last of fewer than r."""

    kind: ClassVar[str] = "rank"
    complexity: ClassVar[int] = 2
    rank: int = 2
    """1 is the best."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the place."""
        return place_weights(n, k, min(self.rank, k))


@dataclass(frozen=True, kw_only=True)
class Trim(RankSelector):
    """The best of what is left without the top share of K: scores too good to be true."""

    kind: ClassVar[str] = "trim"
    complexity: ClassVar[int] = 2
    share: float = 0.1
    """How much of the top is dropped, rounded down to whole candidates."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Weights of the place below those dropped."""
        return place_weights(n, k, 1 + int(self.share * k + 1e-9))


@dataclass(frozen=True, kw_only=True)
class PoissonBest(RankSelector):
    """The best of 1 + Poisson(mean - 1) candidates, at most K (Khalaf et al., 2025)."""

    kind: ClassVar[str] = "poisson"
    complexity: ClassVar[int] = 2
    mean: float = 4.0
    """How many candidates are looked at on average, where K is no limit."""

    def cost(self, k: int) -> float:
        """The expected number."""
        return float(poisson_counts(self.mean, k) @ np.arange(1, k + 1))

    def by_rank(self, n: int, k: int) -> Floats:
        """A mixture of the best of each number."""
        counts = poisson_counts(self.mean, k)
        used = np.flatnonzero(counts > 1e-18)
        return np.asarray(counts[used] @ selection_weights(n, (used + 1).tolist()))


@dataclass(frozen=True, kw_only=True)
class Filtered(RankSelector):
    """The best of those whose filter is high enough; where there is none, the highest filter."""

    kind: ClassVar[str] = "filter"
    complexity: ClassVar[int] = 3
    by: str
    """The column that must be high enough."""
    least: float
    """How high."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The score's, and the filter's."""
        return (*self.score.members, self.by)

    @property
    def family(self) -> str:
        """With the filter's name."""
        return f"{self.called}({self.score.name} | {self.by})"

    @property
    def sorting(self) -> tuple[Any, ...]:
        """Each threshold orders otherwise."""
        return (self.score, self.by, self.least)

    def orders(self, pool: Pool) -> list[Order]:
        """Those that passed above the others."""
        column = pool.columns[self.by]
        passed = column >= self.least
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        by = pool.order(self.by)
        return [passed_first(by, order, passed, [column, key]) for order, key in pairs]

    def by_rank(self, n: int, k: int) -> Floats:
        """The best in that order."""
        return place_weights(n, k, 1)


@dataclass(frozen=True, kw_only=True)
class Threshold(RankSelector):
    """The best of K if its score is high enough, else nothing: value against coverage."""

    kind: ClassVar[str] = "threshold"
    complexity: ClassVar[int] = 3
    least: float
    """The lowest score that is taken."""

    @property
    def abstains(self) -> bool:
        """It may."""
        return True

    def by_rank(self, n: int, k: int) -> Floats:
        """The best, whether it is taken or not."""
        return place_weights(n, k, 1)

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights without those of scores that are too low."""
        del rng
        weights = place_weights(pool.shape[1], k, 1)
        pairs = zip(self.score.orders(pool), self.score.keys(pool), strict=True)
        found = [np.where(key >= self.least, order.spread(weights), 0.0) for order, key in pairs]
        return np.asarray(sum(found) / len(found))


@dataclass(frozen=True, kw_only=True)
class Soft(SetSelector):
    """One of K with chances that grow as exp(beta score) (Verdun et al., 2025)."""

    kind: ClassVar[str] = "soft"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What the chances grow with."""
    beta: float
    """Inverse temperature, over units of the score: 0 is random, infinity the best of K."""

    def of_all(self, pool: Pool) -> Floats:
        """The chances."""
        return mean_of([soft_weights(key, self.beta) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Chi2(SetSelector):
    r"""Inference-time pessimism: chances that grow as :math:`[score - \lambda]_+ / \beta`.

    The policy of chi-squared regularization with regard to the candidates at hand (Huang et
    al., 2025, "Is best-of-N the best of them?"), by its weights in place of rejection.
    """

    kind: ClassVar[str] = "chi2"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What the chances grow with."""
    beta: float
    """Strength, in units of the score: 0 is the best of K, infinity random."""

    def of_all(self, pool: Pool) -> Floats:
        """The chances."""
        return mean_of([chi2_weights(key, self.beta) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class RankEnsemble(SetSelector):
    """The best of K by several scores, joined as ranks among the K."""

    kind: ClassVar[str] = "ranks"
    complexity: ClassVar[int] = 1
    score: ScoreRule
    """How they are joined."""

    @property
    def called(self) -> str:
        """How the scores are joined."""
        return self.score.how

    @property
    def family(self) -> str:
        """With the scale."""
        return f"{self.called}({self.score.name}, ranks)"

    def of_all(self, pool: Pool) -> Floats:
        """All on the highest, ties shared."""
        return of_groups(self.score.keys(pool)[0])


@dataclass(frozen=True, kw_only=True)
class TopBy(SetSelector):
    """The best by one score within the top m of K by another column."""

    kind: ClassVar[str] = "top"
    complexity: ClassVar[int] = 4
    score: ScoreRule
    """What decides in the end."""
    by: str
    """What decides who is in the top."""
    top: int
    """How many there are in it."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The score's, and the other one."""
        return (*self.score.members, self.by)

    @property
    def family(self) -> str:
        """With the other column's name."""
        return f"{self.called}({self.score.name} | {self.by})"

    def of_all(self, pool: Pool) -> Floats:
        """All on the best of the top, which a tie at its end makes larger."""
        by = pool.columns[self.by]
        return mean_of([top_weights(key, by, self.top) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Majority(SetSelector):
    """Any candidate with the most frequent answer of K."""

    kind: ClassVar[str] = "majority"
    complexity: ClassVar[int] = 2

    @property
    def votes(self) -> bool:
        """It does."""
        return True

    def of_all(self, pool: Pool) -> Floats:
        """Shared by all that give a winning answer."""
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return winners(pool.answer, counts)


@dataclass(frozen=True, kw_only=True)
class WeightedVote(SetSelector):
    """Any candidate with the answer whose candidates' scores add up to most."""

    kind: ClassVar[str] = "weighted_vote"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What votes count."""
    beta: float | None = None
    """A vote counts exp(beta score); None: the score itself, which must not be negative."""

    @property
    def votes(self) -> bool:
        """It does."""
        return True

    def of_all(self, pool: Pool) -> Floats:
        """Shared by all that give the winning answer."""
        assert pool.answer is not None
        answer = pool.answer
        return mean_of(
            [winners(answer, votes_for(answer, self._counted(k))) for k in self.score.keys(pool)]
        )

    def _counted(self, key: Floats) -> Floats:
        if self.beta is None:
            if (key < 0).any():
                raise InputError(
                    f"A weighted vote adds up scores, and '{self.score.name}' has negative ones; "
                    "give beta, by which votes count exp(beta score)."
                )
            return key
        return soft_weights(key, self.beta)


@dataclass(frozen=True, kw_only=True)
class BestInMajority(SetSelector):
    """The best by a score among those with the most frequent answer of K."""

    kind: ClassVar[str] = "best_in_majority"
    complexity: ClassVar[int] = 3
    score: ScoreRule
    """What decides among them."""

    @property
    def votes(self) -> bool:
        """It does."""
        return True

    def of_all(self, pool: Pool) -> Floats:
        """The best of each winning answer, each with the same chance."""
        assert pool.answer is not None
        counts = votes_for(pool.answer, np.ones(pool.shape))
        return mean_of([winners(pool.answer, counts, by=key) for key in self.score.keys(pool)])


@dataclass(frozen=True, kw_only=True)
class Own(SetSelector):
    """A user's selector: a function of the columns of one pool."""

    kind: ClassVar[str] = "function"
    complexity: ClassVar[int] = 4
    name: str
    """What it is called."""
    reads: tuple[str, ...]
    """The columns that it is given."""
    function: WeightFunction
    """Column -> numbers ``[K]`` in, weights ``[K]`` out."""

    @property
    def called(self) -> str:
        """The function's name."""
        return self.name

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it is given."""
        return self.reads

    @property
    def parameters(self) -> dict[str, Any]:
        """What is needed to find it again; the function itself is the user's."""
        return {"function": self.name, "reads": list(self.reads)}

    def of_all(self, pool: Pool) -> Floats:
        """What the function says, pool by pool, checked."""
        m, n = pool.shape
        result = np.empty((m, n))
        for at in range(m):
            seen = {name: column[at] for name, column in pool.columns.items()}
            weights = np.asarray(self.function(seen), dtype=np.float64)
            if weights.shape != (n,) or not (weights >= 0).all() or weights.sum() > 1 + 1e-9:
                raise InputError(
                    f"The selector '{self.name}' must return {n} weights of at least 0 that sum "
                    "to 1 (or to less, where it abstains) for a pool of that size."
                )
            result[at] = weights
        return result


def mean_of(parts: list[Floats]) -> Floats:
    """Each decides with the same chance."""
    return np.asarray(sum(parts) / len(parts))


KINDS: Final[Mapping[str, type[Selector]]] = {
    each.kind: each
    for each in (
        *(RandomPick, Best, RankPick, Trim, PoissonBest, Filtered, Threshold, Soft, Chi2, TopBy),
        *(Majority, WeightedVote, BestInMajority),
    )
}
"""Selectors by the names of their kinds; ensembles are called by how they join scores."""
JOINED: Final = ("mean", "min", "pessimistic")


def selector_of(content: Any, where: str, function: Any = None) -> Selector:
    """The selector whose :meth:`Selector.to_dict` this is."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{where}: not a selector that 'toptail choose' stored.")
    name, k = content.get("selector"), content.get("k")
    given = dict(content.get("parameters") or {})
    try:
        if "function" in given:
            return _own(where, given, int(k), function)  # type: ignore[arg-type]
        if "score" in given:
            given["score"] = ScoreRule.of(given["score"])
        ranks = name in JOINED and given["score"].scale == "rank"
        kind: Any = RankEnsemble if ranks else Best if name in JOINED else KINDS[str(name)]
        known = {field.name for field in fields(kind)}
        if set(given) - known:
            raise KeyError(sorted(set(given) - known)[0])
        found: Selector = kind(k=int(k), **given)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: the stored selector is broken ({error}).") from None
    return found


def _own(where: str, given: dict[str, Any], k: int, function: Any) -> Own:
    if not callable(function):
        raise InputError(
            f"{where}: the stored selector is the function '{given['function']}', which files do "
            "not hold; give it, as in Selector.load(path, function=...)."
        )
    return Own(k=k, name=given["function"], reads=tuple(given["reads"]), function=function)
