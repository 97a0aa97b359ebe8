"""Which selectors are tried: those asked for, or a sensible set for the columns that are there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, option
from toptail.select.base import Selector
from toptail.select.candidates import ANSWER, need
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
from toptail.select.kinds import (
    JOINED,
)
from toptail.select.measure import Options
from toptail.select.pool import SCALES, How, Scale, ScoreRule
from toptail.stats.best_of_k import Floats

FEW: Final = 4
"""With more scorers, selectors without a closed form are tried where they are asked for."""
RANKS: Final = (2, 3)
SHARES: Final = (0.05, 0.1, 0.25)
MEANS: Final = (2.0, 4.0, 8.0, 16.0)
TEMPERATURES: Final = (1.0, 2.0, 4.0)
"""Of soft best-of-K, over the score's spread inside a query."""
STRENGTHS: Final = (0.05, 0.2, 0.5)
"""Of chi-squared regularization, in units of that spread."""
PENALTIES: Final = (0.5, 1.0, 2.0)
TOPS: Final = (2, 4, 8)
QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of a column: thresholds of filters and of abstention."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Makes selectors with their parameters out of the words that name them."""

    options: Options
    """The pools with their columns."""
    filters: Sequence[str]
    """Columns that may serve as filters."""
    k_max: int
    """The largest K, which bounds what is worth trying."""

    @cached_property
    def scorers(self) -> list[ScoreRule]:
        """Each scorer; of one with several seeds any decides with the same chance."""
        found = self.options.pools.scorers.items()
        return [ScoreRule(name, tuple(members.values())) for name, members in found]

    @cached_property
    def ensembles(self) -> list[ScoreRule]:
        """Scorers with several seeds; where there are none, all score columns together."""
        seeded = [rule for rule in self.scorers if len(rule.members) > 1]
        columns = tuple(self.options.pools.scores)
        return seeded or ([ScoreRule("all scores", columns)] if len(columns) > 1 else [])

    @cached_property
    def graded(self) -> list[str]:
        """Filters that hold more than true and false."""
        columns = {**self.options.pools.scores, **self.options.extra}
        return [by for by in self.filters if not _is_flag(columns[by])]

    def made(self, wanted: Sequence[Any] | None, *, abstain: bool) -> list[Selector]:
        """The random pick, then all that was asked for (words, functions, selectors)."""
        words = self._usual(abstain) if wanted is None else list(wanted)
        found: dict[Selector, None] = {RandomPick(): None}
        for word in ["best", *words]:  # what every other one is compared with comes first
            for selector in self._of(word):
                found[selector.with_k(1)] = None
        return list(found)

    def _usual(self, abstain: bool) -> list[str]:
        words = ["rank", "trim", "poisson"]
        if abstain:
            words.append("threshold")
        if self.filters:
            words.append("filter")
        few = len(self.scorers) <= FEW
        if self.ensembles:
            words += [f"{how}:{scale}" for how in JOINED for scale in self._scales(few)]
        if few:
            words += ["soft", "chi2"]
            if self.graded:
                words.append("top")
        if self.options.answer is not None:
            words.append("majority")
            words += ["weighted_vote", "best_in_majority"] if few else []
        return words

    def _scales(self, few: bool) -> list[str]:
        """Different scorers have no common scale of their own."""
        seeded = self.ensembles[0] in self.scorers
        scales = [*(["raw"] if seeded else []), "standardized"]
        return [*scales, "rank"] if few else scales

    def _of(self, word: Any) -> list[Selector]:
        if isinstance(word, Selector):
            present = [*self.options.pools.scores, *self.options.extra]
            answers = [] if self.options.answer is None else [ANSWER]
            source = self.options.pools.source
            need(source, [*present, *answers], word.columns, votes=word.votes)
            return [word]
        if callable(word):
            name = str(getattr(word, "__name__", "function"))
            reads = (*self.options.pools.scores, *self.options.extra)
            return [Own(name=name, reads=reads, function=word)]
        kind, *given = str(word).strip().split(":")
        if kind == RandomPick.kind:
            return []
        if kind not in _MAKERS:
            raise InputError(
                f"{option('selectors', word)}: there is no selector '{kind}'; there are "
                f"{', '.join(_MAKERS)}."
            )
        return list(_MAKERS[kind](self, str(word), given))

    def spread(self, rule: ScoreRule) -> float:
        """How far the score spreads inside a query: the unit of temperatures."""
        return float(np.mean([self._units[name][1] for name in rule.members]))

    def joined(self, how: How, scale: Scale, penalty: float = 0.0) -> list[ScoreRule]:
        """Each ensemble joined to one score."""
        return [self._joined(rule, how, scale, penalty) for rule in self.ensembles]

    def _joined(self, rule: ScoreRule, how: How, scale: Scale, penalty: float) -> ScoreRule:
        units = [self._units[name] for name in rule.members] if scale == "standardized" else []
        centers, spreads = tuple(x[0] for x in units), tuple(x[1] for x in units)
        return ScoreRule(rule.name, rule.members, how, penalty, scale, centers, spreads)

    @cached_property
    def _units(self) -> Mapping[str, tuple[float, float]]:
        """Score column -> its mean, and its standard deviation inside a query."""
        pools = self.options.pools
        return {name: _units(c, pools.offsets, pools.sizes) for name, c in pools.scores.items()}


def _units(column: Floats, offsets: Any, sizes: Any) -> tuple[float, float]:
    known = np.isfinite(column)
    if not known.any():
        return 0.0, 1.0
    center = float(column[known].mean())
    inside = np.where(known, column - center, 0.0)
    count = np.maximum(np.add.reduceat(known.astype(np.float64), offsets[:-1]), 1.0)
    mean = np.add.reduceat(inside, offsets[:-1]) / count
    apart = np.where(known, inside - np.repeat(mean, sizes), 0.0)
    spread = float(np.sqrt((apart**2).sum() / known.sum()))
    return center, spread if spread > 0 else 1.0


Maker = Callable[[Grid, str, list[str]], Iterator[Selector]]


def _numbers(word: str, given: Sequence[str], usual: Sequence[float]) -> list[float]:
    """The parameter that a word gives, or those usually tried."""
    if not given:
        return list(usual)
    try:
        (only,) = given
        return [float(only)]
    except ValueError:
        raise InputError(
            f"{option('selectors', word)}: after the selector's name stands at most one number, as "
            "in trim:0.1."
        ) from None


def _best(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    _numbers(word, [*given, *(["x"] if given else [])], ())
    return (Best(score=rule) for rule in grid.scorers)


def _rank(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for rank in _numbers(word, given, RANKS):
        _check(word, rank >= 1 and rank == int(rank), "a rank is a whole number of at least 1")
        yield from (RankPick(score=rule, rank=int(rank)) for rule in grid.scorers)


def _trim(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for share in _numbers(word, given, SHARES):
        _check(word, 0 <= share < 1, "the share to drop lies between 0 and 1")
        yield from (Trim(score=rule, share=share) for rule in grid.scorers)


def _poisson(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for mean in _numbers(word, given, [m for m in MEANS if m < grid.k_max]):
        _check(word, 1 <= mean < np.inf, "the mean number of candidates is at least 1")
        yield from (PoissonBest(score=rule, mean=mean) for rule in grid.scorers)


def _soft(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for rule in grid.scorers:
        for beta in _numbers(word, given, [t / grid.spread(rule) for t in TEMPERATURES]):
            _check(word, 0 <= beta < np.inf, "an inverse temperature is at least 0")
            yield Soft(score=rule, beta=beta)


def _chi2(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for rule in grid.scorers:
        for beta in _numbers(word, given, [t * grid.spread(rule) for t in STRENGTHS]):
            _check(word, 0 <= beta < np.inf, "the strength is at least 0")
            yield Chi2(score=rule, beta=beta)


def _threshold(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    for rule in grid.scorers:
        pooled = np.concatenate([grid.options.pools.scores[name] for name in rule.members])
        for least in _numbers(word, given, _quantiles(pooled)):
            yield Threshold(score=rule, least=least)


def _filter(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    if not grid.filters:
        raise InputError(
            f"{option('selectors', word)} needs a column to filter by, and there is no 'support'; "
            f"name a number column with {option('filter')}."
        )
    for by in grid.filters:
        column = {**grid.options.pools.scores, **grid.options.extra}[by]
        usual = [1.0] if _is_flag(column) else _quantiles(column)
        for least in _numbers(word, given, usual):
            for rule in [*grid.scorers, *_seeded(grid)]:
                if by not in rule.members:
                    yield Filtered(score=rule, by=by, least=least)


def _seeded(grid: Grid) -> list[ScoreRule]:
    """The mean of each scorer's seeds, where it has several."""
    seeded = [rule for rule in grid.scorers if len(rule.members) > 1]
    return [ScoreRule(f"mean {r.name}", r.members, "mean") for r in seeded]


def _top(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    single = [rule.members[0] for rule in grid.scorers if len(rule.members) == 1]
    others = grid.graded or single
    pairs = [(rule, by) for rule in grid.scorers for by in others if by not in rule.members]
    if not pairs:
        raise InputError(
            f"{option('selectors', word)} needs a second column, by which the top is formed; name "
            f"a number column with {option('filter')}."
        )
    for top in _numbers(word, given, [t for t in TOPS if t < grid.k_max]):
        _check(word, top >= 1 and top == int(top), "the top is a whole number of at least 1")
        yield from (TopBy(score=rule, by=by, top=int(top)) for rule, by in pairs)


def _ensemble(how: How) -> Maker:
    def make(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
        if not grid.ensembles:
            raise InputError(
                f"{option('selectors', word)} joins several scores, and there is one, "
                f"'{grid.scorers[0].name}'; name more with {option('scores')}."
            )
        penalties: Sequence[float] = (0.0,)
        if how == "pessimistic":
            penalties = _numbers(word, [x for x in given if x not in SCALES], PENALTIES)
            given = [x for x in given if x in SCALES]
        usual = ["raw", "standardized"] if grid.ensembles[0] in grid.scorers else ["standardized"]
        _check(word, set(given) <= {*SCALES}, f"the scale is {', '.join(SCALES)}")
        scales: list[Any] = given or usual
        for scale in scales:
            for penalty in penalties:
                for rule in grid.joined(how, scale, penalty):
                    yield RankEnsemble(score=rule) if scale == "rank" else Best(score=rule)

    return make


def _majority(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    _answers(grid, word)
    _numbers(word, [*given, *(["x"] if given else [])], ())
    yield Majority()


def _weighted(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    _answers(grid, word)
    for rule in grid.scorers:
        positive = all((grid.options.pools.scores[name] >= 0).all() for name in rule.members)
        if positive and not given:
            yield WeightedVote(score=rule)
            continue
        for beta in _numbers(word, given, [t / grid.spread(rule) for t in TEMPERATURES]):
            yield WeightedVote(score=rule, beta=beta)


def _best_in_majority(grid: Grid, word: str, given: list[str]) -> Iterator[Selector]:
    _answers(grid, word)
    _numbers(word, [*given, *(["x"] if given else [])], ())
    yield from (BestInMajority(score=rule) for rule in grid.scorers)


def _answers(grid: Grid, word: str) -> None:
    if grid.options.answer is None:
        raise InputError(
            f"{grid.options.pools.source}: {option('selectors', word)} votes over answers, and "
            f"there is no column 'answer'; name one with {option('answer')}."
        )


def _is_flag(column: Floats) -> bool:
    """Whether a column is 0 and 1 alone."""
    return bool(np.isin(column, (0.0, 1.0)).all())


def _quantiles(column: Floats) -> list[float]:
    """Where shares of a column lie below; each number once."""
    known = column[np.isfinite(column)]
    if not known.size:
        return []
    at = np.quantile(known, QUANTILES, method="higher")
    return list(dict.fromkeys(at.tolist()))


def _check(word: str, good: bool, what: str) -> None:
    if not good:
        raise InputError(f"{option('selectors', word)}: {what}.")


_MAKERS: Final[Mapping[str, Maker]] = {
    "best": _best,
    "rank": _rank,
    "trim": _trim,
    "soft": _soft,
    "poisson": _poisson,
    "threshold": _threshold,
    "mean": _ensemble("mean"),
    "min": _ensemble("min"),
    "pessimistic": _ensemble("pessimistic"),
    "filter": _filter,
    "top": _top,
    "majority": _majority,
    "weighted_vote": _weighted,
    "best_in_majority": _best_in_majority,
    "chi2": _chi2,
}
"""Word -> the selectors that it stands for, with the parameters that are tried."""
