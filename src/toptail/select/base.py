"""What every selector is: scores of a pool in, weights on its candidates out."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np

from toptail.errors import InputError, refusing
from toptail.io.files import atomic
from toptail.io.json_files import read_json
from toptail.select.candidates import Candidates
from toptail.select.pool import Order, Pool, ScoreRule, place_weights
from toptail.stats.best_of_k import Floats, Ints

FORMAT: Final = "toptail-selector-1"
DRAWS: Final = 256
"""Subsets of K that stand for all, where a pool is larger than K and no closed form is known."""


def titled(family: str, parameters: Mapping[str, Any]) -> str:
    """A family's name with a selector's parameters, as in ``trim(rm; share 0.1)``."""
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
    >>> from toptail.select import Best, ScoreRule
    >>> Best(score=ScoreRule.of("rm"), k=2).weights({"rm": [0.1, 0.7, 0.4]}).round(3)
    array([0.   , 0.667, 0.333])
    """

    kind: ClassVar[str]
    """The name of the kind in files and on the command line."""
    complexity: ClassVar[int]
    """How complex the kind is, joining scores apart."""
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
        return titled(self.family, self.parameters)

    @property
    def _reads(self) -> tuple[ScoreRule | None, str | None]:
        """The score, and the other column that is read, where there are such."""
        return getattr(self, "score", None), getattr(self, "by", None)

    @property
    def involved(self) -> int:
        """How complex it is: the simpler one wins a tie."""
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
        data = Candidates.of(candidates, self.columns, votes=self.votes)
        rng = np.random.default_rng(seed)
        return data.joined(self.at(pool, min(self.k, pool.shape[1]), rng) for pool in data.pools)

    def pick(self, candidates: Any, seed: int = 0) -> Ints:
        """Draw one candidate of each pool by its weight: positions in the pool; -1 abstains.

        The same pools in the same order with the same seed give the same picks. Where pools come
        one at a time, give each call another seed: a selector that draws would else take the same
        place in all pools of one size.
        """
        data = Candidates.of(candidates, self.columns, votes=self.votes)
        own = getattr(self, "seed", None)
        rng = np.random.default_rng(seed if own is None else [seed, own])
        places = []
        for pool in data.pools:
            m, n = pool.shape
            subset = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, : self.k]
            weights = self.at(pool.at(subset), subset.shape[1], rng)
            places.append(drawn_place(weights, subset, rng))
        return data.per_pool(places)

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
    """A selector by places in an order of the candidates, exact for every K; as such, the best."""

    exact: ClassVar[bool] = True
    score: ScoreRule
    """What candidates are ordered by."""

    def by_rank(self, n: int, k: int) -> Floats:
        """Probability that rank j of n is picked ``[n]``, ascending."""
        return place_weights(n, k, 1)

    def orders(self, pool: Pool) -> list[Order]:
        """Orders of the candidates, of which one, drawn at random, decides."""
        return self.score.orders(pool)

    @property
    def sorting(self) -> tuple[Any, ...]:
        """Selectors with the same sorting share their orders."""
        return (self.score,)

    def at(self, pool: Pool, k: int, rng: np.random.Generator) -> Floats:
        """Weights ``[m, n]``, exact."""
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
    """One of the ``candidates [m, k]`` of each pool, drawn by its weight; -1 with what is left."""
    sums = np.cumsum(weights, axis=1)
    total = sums[:, -1:]
    whole = np.where(np.abs(total - 1.0) < 1e-9, total, 1.0)  # rounding is no abstention
    place = (sums <= rng.random(total.shape) * whole).sum(axis=1)
    padded = np.concatenate([candidates, np.full((len(candidates), 1), -1)], axis=1)
    return np.asarray(padded[np.arange(len(place)), place])
