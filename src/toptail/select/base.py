"""What a selector is: scores of a pool in, weights on its candidates out.

`Pool` is what it sees, `ScoreRule` makes one score of several columns, and `Selector` is the
contract, with `RankSelector` for exact closed forms and `SetSelector` for drawn subsets.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from itertools import combinations
from math import comb
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, get_args

import numpy as np
from scipy.special import gammaln

from toptail.errors import InputError, refusing
from toptail.io.files import atomic
from toptail.io.json_files import read_json
from toptail.stats.best_of_k import Floats, Ints, average_ties, selection_weights, tie_starts

if TYPE_CHECKING:
    from toptail.select.candidates import Candidates

FORMAT: Final = "toptail-selector-1"
DRAWS: Final = 256
"""Subsets of K that stand for all, where a pool is larger than K and no closed form is known."""


@dataclass(frozen=True, eq=False)
class Order:
    """Candidates of each pool from the lowest to the highest, ties known."""

    order: Ints
    """``[m, n]``: positions in ascending order."""
    starts: Ints | None
    """Where groups of ties start, as :func:`toptail.stats.best_of_k.tie_starts` has it."""

    def sorted(self, column: Floats) -> Floats:
        """A column in this order ``[m, n]``, each entry the mean of its tie group."""
        return average_ties(np.take_along_axis(column, self.order, axis=1), self.starts)

    def spread(self, by_rank: Floats) -> Floats:
        """Weights by rank ``[n]``, ascending, as weights of the candidates ``[m, n]``."""
        shared = average_ties(np.tile(by_rank, (self.order.shape[0], 1)), self.starts)
        result = np.empty(self.order.shape)
        np.put_along_axis(result, self.order, shared, axis=1)
        return result

    def places(self) -> Floats:
        """Rank of each candidate ``[m, n]``, ties at their middle: the rank scale."""
        return self.spread(np.arange(1.0, self.order.shape[1] + 1))


def ordered(scores: Floats) -> Order:
    order = np.argsort(scores, axis=1)
    return Order(order, tie_starts(np.take_along_axis(scores, order, axis=1)))


def place_weights(n: int, k: int, place: int) -> Floats:
    """Probability that the ``place``-th best of K out of n has rank j ``[n]``, ascending.

    >>> place_weights(4, 2, 2).round(3)
    array([0.5  , 0.333, 0.167, 0.   ])
    """
    if place == 1:
        return np.asarray(selection_weights(n, [k])[0])  # the audit's own, to the last bit
    better = np.arange(n - 1, -1, -1.0)  # candidates above each rank
    below = n - 1 - better
    possible = (better >= place - 1) & (below >= k - place)
    better, below = np.where(possible, better, place - 1.0), np.where(possible, below, k - place)
    log = _choose(better, place - 1) + _choose(below, k - place) - _choose(np.array(float(n)), k)
    weights = np.where(possible, np.exp(log), 0.0)
    return np.asarray(weights / weights.sum())


def _choose(n: Floats, k: int) -> Floats:
    return np.asarray(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


How = Literal["member", "mean", "min", "pessimistic"]
Scale = Literal["raw", "standardized", "rank"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)


@dataclass(frozen=True, eq=False)
class Pool:
    """Pools of one size: m queries with n candidates each."""

    columns: Mapping[str, Floats]
    """Column -> its numbers ``[m, n]``: scores, filters, and ``support`` as 0 and 1."""
    answer: Ints | None = None
    """Which candidates give the same answer ``[m, n]``, numbered from 0."""
    _orders: dict[str, Order] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, int]:
        """How many pools, and how many candidates in each."""
        first: Any = next(iter(self.columns.values()), self.answer)
        return int(first.shape[0]), int(first.shape[1])

    def order(self, name: str) -> Order:
        if name not in self._orders:
            self._orders[name] = ordered(self.columns[name])
        return self._orders[name]

    def at(self, index: Ints) -> Pool:
        """The candidates at ``index [m, k]`` of each pool."""
        take = partial(np.take_along_axis, indices=index, axis=1)
        answer = None if self.answer is None else take(self.answer)
        return Pool({name: take(column) for name, column in self.columns.items()}, answer)


@dataclass(frozen=True)
class ScoreRule:
    """One number for each candidate, from one score column or several."""

    name: str
    """The scorer, or a few words for several."""
    members: tuple[str, ...]
    """Its columns."""
    how: How = "member"
    """``member``: each column decides with the same chance. The others join them: their mean,
    their minimum, or their mean less ``penalty`` times their standard deviation."""
    penalty: float = 0.0
    """How much disagreement costs, where it does."""
    scale: Scale = "raw"
    """On which scale they are joined: as they are, in units of ``centers`` and ``spreads``, or as
    ranks among the candidates at hand."""
    centers: tuple[float, ...] = ()
    """What is subtracted from each member."""
    spreads: tuple[float, ...] = ()
    """What each member is divided by."""

    def keys(self, pool: Pool) -> list[Floats]:
        """Scores to maximize ``[m, n]``, of which one, drawn at random, decides."""
        if self.how == "member":
            return [pool.columns[name] for name in self.members]
        stack = np.stack([self._scaled(pool, at) for at in range(len(self.members))])
        stack.sort(axis=0)  # which member says what must not decide a tie by rounding
        if self.how == "min":
            return [stack.min(axis=0)]
        mean = stack.mean(axis=0)
        if self.how == "mean":
            return [mean]
        known = np.isfinite(stack).all(axis=0)
        spread = np.where(known, stack, 0.0).std(axis=0)
        return [np.where(known, mean - self.penalty * spread, -np.inf)]

    def orders(self, pool: Pool) -> list[Order]:
        if self.how == "member":
            return [pool.order(name) for name in self.members]
        return [ordered(key) for key in self.keys(pool)]

    def _scaled(self, pool: Pool, at: int) -> Floats:
        name = self.members[at]
        if self.scale == "rank":
            return pool.order(name).places()
        column = pool.columns[name]
        if self.scale == "standardized":
            return (column - self.centers[at]) / self.spreads[at]
        return column

    def parameters(self) -> Any:
        """As JSON: the column where there is one, else everything that is not the default."""
        if self.how == "member" and self.members == (self.name,):
            return self.name
        entry: dict[str, Any] = {"name": self.name, "members": list(self.members), "how": self.how}
        if self.how != "member":
            entry["scale"] = self.scale
        if self.how == "pessimistic":
            entry["penalty"] = self.penalty
        if self.scale == "standardized":
            entry |= {"centers": list(self.centers), "spreads": list(self.spreads)}
        return entry

    @classmethod
    def of(cls, entry: Any) -> ScoreRule:
        """The rule whose :meth:`parameters` this is."""
        if isinstance(entry, str):
            return cls(entry, (entry,))
        lists = {key: tuple(x) for key, x in entry.items() if isinstance(x, list)}
        return cls(**{**entry, **lists})


def title_of(family: str, parameters: Mapping[str, Any]) -> str:
    """The title of a selector: its family with its parameters, as in ``trim(rm; share 0.1)``."""
    words = [
        f"{name} {x:.4g}"
        for name, x in parameters.items()
        if isinstance(x, float | int) and name != "seed"
    ]
    score = parameters.get("score")
    if isinstance(score, Mapping) and score["how"] != "member":
        words += [f"penalty {score['penalty']:g}"] if "penalty" in score else []
        words += [str(score["scale"])] if score["scale"] != "rank" else []
    if not words:
        return family
    start, reads = (family[:-1], "; ") if family.endswith(")") else (f"{family}(", "")
    return f"{start}{reads}{', '.join(words)})"


@dataclass(frozen=True, kw_only=True)
class Selector(ABC):
    """Turns the scores of a pool into weights on its candidates; needs no values.

    :meth:`load` reads what ``toptail choose`` stored. Of a pool with more than :attr:`k`
    candidates a random k are looked at, and weights are those of doing so.

    Examples
    --------
    >>> from toptail.select.selectors import Best
    >>> from toptail.select.base import ScoreRule
    >>> Best(score=ScoreRule.of("rm"), k=2).weights({"rm": [0.1, 0.7, 0.4]}).round(3)
    array([0.   , 0.667, 0.333])
    """

    kind: ClassVar[str]
    """The name of the kind in files and on the command line."""
    complexity: ClassVar[int]
    """How complex the kind is: the simpler of two good selectors is chosen. ``total_complexity``
    adds 1 where scores are joined."""
    exact: ClassVar[bool] = False
    """Whether its value over random K-subsets has a closed form."""
    votes: ClassVar[bool] = False
    """Whether it reads answers."""
    abstains: ClassVar[bool] = False
    """Whether it may pick nothing."""

    def __init_subclass__(cls, **facts: Any) -> None:
        """Set what is common to a kind: ``class Trim(RankSelector, kind="trim", complexity=2)``."""
        super().__init_subclass__()
        for name, fact in facts.items():
            setattr(cls, name, fact)

    k: int = 1
    """How many candidates it looks at."""

    @property
    def called(self) -> str:
        """Its name in files and on the command line."""
        return self.kind

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads, apart from ``answer``."""
        score, by = self._reads
        return (*(() if score is None else score.members), *(() if by is None else (by,)))

    @property
    def family(self) -> str:
        """The selector with what it reads, without parameters and K."""
        score, by = self._reads
        words = ([] if score is None else [score.name]) + ([] if by is None else [by])
        return f"{self.called}({' | '.join(words)})" if words else self.called

    @property
    def title(self) -> str:
        """The family with the parameters: what reports call the selector."""
        return title_of(self.family, self.parameters)

    @property
    def _reads(self) -> tuple[ScoreRule | None, str | None]:
        """The score, and the other column that is read, where there are such."""
        return getattr(self, "score", None), getattr(self, "by", None)

    @property
    def total_complexity(self) -> int:
        """How complex it is, joining scores included: the simpler one wins a tie."""
        score, _ = self._reads
        return self.complexity + (score is not None and score.how != "member")

    def cost(self, k: int) -> float:
        """How many candidates it needs on average, where it may look at K."""
        return float(k)

    @abstractmethod
    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights ``[m, n]`` of looking at a random K of the n candidates of each pool.

        They sum to 1, or to less where the selector may abstain. A selector with a closed
        form does not use ``rng``.
        """

    def weights(self, candidates: Any, seed: int = 0) -> Floats:
        """How likely each candidate is to be picked.

        Parameters
        ----------
        candidates
            Column -> numbers of one pool ``[n]`` or of several of one size ``[m, n]``; the
            numbers alone where the selector reads one column; or any table with a column
            ``query``, or the path of one.
        seed
            Of the subsets drawn where a pool has more than :attr:`k` candidates and no closed
            form is known.

        Returns
        -------
        Weights of the shape of a column. They sum to 1 over a pool, or to less where the
        selector may abstain.
        """
        data = self._read(candidates)
        rng = np.random.default_rng(seed)
        return data.joined(self.at(pool, min(self.k, pool.shape[1]), rng) for pool in data.pools)

    def pick(self, candidates: Any, seed: int = 0) -> Ints:
        """Draw one candidate of each pool by its weight: positions in the pool; -1 abstains.

        The same pools in the same order with the same seed give the same picks. Where pools come
        one at a time, give each call another seed: a selector that draws would else take the same
        place in all pools of one size.
        """
        data = self._read(candidates)
        own = getattr(self, "seed", None)
        rng = np.random.default_rng(seed if own is None else [seed, own])
        places = []
        for pool in data.pools:
            m, n = pool.shape
            subset = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, : self.k]
            weights = self.at(pool.at(subset), subset.shape[1], rng)
            places.append(drawn_place(weights, subset, rng))
        return data.per_pool(places)

    def _read(self, candidates: Any) -> Candidates:
        from toptail.select.candidates import Candidates  # which needs Pool

        return Candidates.of(candidates, self.columns, votes=self.votes)

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters but K, as JSON."""
        entries = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "k"}
        return {
            name: x.parameters() if isinstance(x, ScoreRule) else x for name, x in entries.items()
        }

    def with_k(self, k: int) -> Self:
        """The same selector with another K."""
        return replace(self, k=k)

    def to_dict(self) -> dict[str, Any]:
        """The content of the file that :meth:`save` writes."""
        named = {"format": FORMAT, "selector": self.called, "k": self.k}
        return {**named, "parameters": self.parameters}

    def save(self, path: str | PathLike[str]) -> None:
        """Store the selector as a small JSON file, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"
        atomic(Path(path), lambda target: target.write_text(text, encoding="utf-8"))

    @staticmethod
    def load(path: str | PathLike[str], function: Any = None) -> Selector:
        """The selector that :meth:`save` or ``toptail choose`` stored.

        ``function`` is the user's own where the stored selector is one.
        """
        from toptail.select.catalog import selector_of

        file = Path(path)
        file = file / "selector.json" if file.is_dir() else file
        if not file.is_file():
            raise InputError(f"{file}: not readable as a stored selector (there is no such file).")
        again = "store it again with 'toptail choose'"
        content = read_json(file, again, "is not readable as a stored selector")
        with refusing(file, "is no stored selector", again):
            return selector_of(content, str(file), function)


@dataclass(frozen=True, kw_only=True)
class RankSelector(Selector):
    """Selects by rank in an order of the candidates, which is exact for every K.

    This class itself takes the best of K; subclasses override :meth:`by_rank`.
    """

    exact: ClassVar[bool] = True
    score: ScoreRule
    """What candidates are ordered by."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Probability that rank j of n is picked ``[n]``, ascending."""
        return place_weights(n, k, 1)

    def orders(self, pool: Pool) -> list[Order]:
        return self.score.orders(pool)

    @property
    def sorting(self) -> tuple[Any, ...]:
        """Selectors with the same sorting share their orders."""
        return (self.score,)

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        del rng
        orders = self.orders(pool)
        weights = rank_weights(self, pool.shape[1], k)
        return np.asarray(sum(order.spread(weights) for order in orders) / len(orders))


@lru_cache(maxsize=1 << 14)
def rank_weights(selector: RankSelector, n: int, k: int) -> Floats:
    """:meth:`RankSelector.by_rank`, once for each pool size."""
    return selector.by_rank(n, k)


@dataclass(frozen=True, kw_only=True)
class SetSelector(Selector):
    """A selector whose weights depend on all K candidates: subsets are drawn, not exact."""

    @abstractmethod
    def of_all(self, pool: Pool) -> Floats:
        """Weights ``[m, n]`` of looking at all candidates of the pool."""

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights ``[m, n]``; of a larger pool the mean over drawn subsets."""
        m, n = pool.shape
        if k >= n:
            return self.of_all(pool)
        result, count = np.zeros((m, n)), 0
        for subset in subsets(m, n, k, rng):
            drawn = self.of_all(pool.at(subset))
            sums = np.take_along_axis(result, subset, axis=1) + drawn
            np.put_along_axis(result, subset, sums, axis=1)
            count += 1
        return result / count


def subsets(m: int, n: int, k: int, rng: np.random.Generator) -> Iterator[Ints]:
    """K-subsets of n candidates for m pools ``[m, k]``: all where they are few, else drawn ones."""
    if comb(n, k) <= DRAWS:
        return (np.tile(each, (m, 1)) for each in combinations(range(n), k))
    every = np.tile(np.arange(n), (m, 1))
    return (rng.permuted(every, axis=1)[:, :k] for _ in range(DRAWS))


def drawn_place(weights: Floats, candidates: Ints, rng: np.random.Generator) -> Ints:
    """One of the ``candidates [m, k]`` of each pool, drawn by its weight.

    Weights that sum to less than 1 abstain with the rest of the chance, which is -1.
    """
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1:]
    whole = np.where(np.abs(total - 1.0) < 1e-9, total, 1.0)  # rounding is no abstention
    place = (sums <= rng.random(total.shape) * whole).sum(axis=1)
    padded = np.concatenate([candidates, np.full((len(candidates), 1), -1)], axis=1)
    return np.asarray(padded[np.arange(len(place)), place])
