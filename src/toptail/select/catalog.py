"""The kinds of selectors: stored ones read again, and words such as ``trim:0.1`` as selectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np

from toptail.errors import InputError, option
from toptail.select.base import FORMAT, SCALES, How, Scale, ScoreRule, Selector
from toptail.select.candidates import ANSWER, need
from toptail.select.inputs import SelectorInputs
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
from toptail.stats.best_of_k import Floats

KINDS: Final[Mapping[str, type[Selector]]] = {
    each.kind: each
    for each in (
        *(RandomPick, Best, RankPick, Trim, PoissonBest, Filtered, Threshold),
        *(ReciprocalRanks, Soft, Chi2, TopBy, Majority, WeightedVote, BestInMajority),
    )
}
"""Selectors by the names of their kinds; ensembles are named by how they join scores."""
JOINED: Final[tuple[How, ...]] = ("mean", "min", "pessimistic")


def selector_of(content: Any, where: str, function: Any = None) -> Selector:
    """The selector whose :meth:`Selector.to_dict` this is."""
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{where}: not a selector that 'toptail choose' stored.")
    name, k = content.get("selector"), content.get("k")
    parameters = dict(content.get("parameters") or {})
    try:
        if "function" in parameters:
            return _of_function(where, parameters, int(k), function)  # type: ignore[arg-type]
        if "score" in parameters:
            parameters["score"] = ScoreRule.of(parameters["score"])
        kind: Any = KINDS[str(name)] if name not in JOINED else _best_of(parameters["score"])
        unknown = sorted(set(parameters) - {field.name for field in fields(kind)})
        if unknown:
            raise KeyError(unknown[0])
        selector: Selector = kind(k=int(k), **parameters)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{where}: the stored selector is broken ({error}).") from None
    return selector


def _best_of(score: ScoreRule) -> Any:
    """The selector that takes the best by several scores joined to one."""
    return RankEnsemble if score.scale == "rank" else Best


def _of_function(where: str, parameters: dict[str, Any], k: int, function: Any) -> FunctionSelector:
    if not callable(function):
        raise InputError(
            f"{where}: the stored selector is the function '{parameters['function']}', which files "
            "do not hold; give it, as in Selector.load(path, function=...)."
        )
    reads = tuple(parameters["reads"])
    return FunctionSelector(k=k, name=parameters["function"], reads=reads, function=function)


# ------------------------------------------------------------------------------ what may be tried

FEW: Final = 4
"""With more scorers, selectors without a closed form are tried only where they are named."""
RANKS: Final = (2, 3)
SHARES: Final = (0.05, 0.1, 0.25)
MEANS: Final = (2.0, 4.0, 8.0, 16.0)
TEMPERATURES: Final = (1.0, 2.0, 4.0)
"""Of soft best-of-K, over the score's spread inside a query."""
STRENGTHS: Final = (0.05, 0.2, 0.5)
"""Strengths of chi-squared regularization, in units of that spread."""
PENALTIES: Final = (0.5, 1.0, 2.0)
TOPS: Final = (2, 4, 8)
QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Quantiles of a column that are tried as thresholds of filters and of abstention."""


@dataclass(frozen=True, eq=False)
class Catalog:
    """Makes selectors with their parameters out of the words that name them."""

    data: SelectorInputs
    """The pools with their columns."""
    k_max: int
    """The largest K: larger parameters are not worth trying."""

    @property
    def filters(self) -> list[str]:
        return list(self.data.extra)

    @cached_property
    def scorers(self) -> list[ScoreRule]:
        """One rule per scorer; where it has several seeds, one drawn at random decides."""
        scorers = self.data.pools.scorers.items()
        return [ScoreRule(name, tuple(members.values())) for name, members in scorers]

    @cached_property
    def seeded(self) -> list[ScoreRule]:
        return [rule for rule in self.scorers if len(rule.members) > 1]

    @cached_property
    def ensembles(self) -> list[ScoreRule]:
        """Scorers with several seeds; where there are none, all score columns together."""
        columns = tuple(self.data.pools.scores)
        return self.seeded or ([ScoreRule("all scores", columns)] if len(columns) > 1 else [])

    @cached_property
    def columns(self) -> Mapping[str, Floats]:
        """Scores and filters ``[rows]``."""
        return {**self.data.pools.scores, **self.data.extra}

    @cached_property
    def graded(self) -> list[str]:
        """Filters that hold more than 0 and 1."""
        return [by for by in self.filters if not _is_flag(self.columns[by])]

    def selectors(self, words: Sequence[Any] | None, *, abstain: bool) -> list[Selector]:
        """The random pick, plain best-of-K, and all that was named; None: what the columns allow.

        A word names a kind of selector, with its parameter or without; a function or a selector
        stands for itself. ``abstain`` says whether abstaining has a value.
        """
        wanted = self._usual(abstain) if words is None else list(words)
        selectors = (each.with_k(1) for word in ["best", *wanted] for each in self._of(word))
        return list(dict.fromkeys([RandomPick(), *selectors]))

    def _usual(self, abstain: bool) -> list[str]:
        few = len(self.scorers) <= FEW
        words = ["rank", "trim", "poisson"]
        words += ["threshold"] if abstain else []
        words += ["filter"] if self.filters else []
        if self.ensembles:
            scales = [*self.scales, *(["rank"] if few else [])]
            words += [f"{how}:{scale}" for how in JOINED for scale in scales]
        if few:
            words += ["soft", "chi2", *(["top"] if self.graded else [])]
        if self.data.answer is not None:
            words += ["majority", *(["weighted_vote", "best_in_majority"] if few else [])]
        return words

    @property
    def scales(self) -> list[Scale]:
        """Scales on which scores are joined; only seeds of one scorer have a common raw scale."""
        return ["raw", "standardized"] if self.seeded else ["standardized"]

    def _of(self, word: Any) -> Iterable[Selector]:
        if isinstance(word, Selector):
            answers = [] if self.data.answer is None else [ANSWER]
            need(self.data.pools.source, [*self.columns, *answers], word.columns, votes=word.votes)
            return [word]
        if callable(word):
            name = str(getattr(word, "__name__", "function"))
            return [FunctionSelector(name=name, reads=tuple(self.columns), function=word)]
        kind, *parameters = str(word).strip().split(":")
        if kind == RandomPick.kind:
            return []
        if kind not in _MAKERS:
            raise InputError(
                f"{option('selectors', word)}: there is no selector '{kind}'; there are "
                f"{', '.join(_MAKERS)}."
            )
        return _MAKERS[kind](self, str(word), parameters)

    def spread(self, rule: ScoreRule) -> float:
        """How far the score spreads inside a query: the unit of temperatures."""
        return float(np.mean([self._units[name][1] for name in rule.members]))

    def joined(self, rule: ScoreRule, how: How, scale: Scale, penalty: float) -> ScoreRule:
        units = [self._units[name] for name in rule.members] if scale == "standardized" else []
        centers, spreads = tuple(x[0] for x in units), tuple(x[1] for x in units)
        return ScoreRule(rule.name, rule.members, how, penalty, scale, centers, spreads)

    @cached_property
    def _units(self) -> Mapping[str, tuple[float, float]]:
        """Score column -> its mean, and its standard deviation inside a query."""
        pools = self.data.pools
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


# ------------------------------------------------------------------ from a word to its selectors

Maker = Callable[[Catalog, str, list[str]], Iterable[Selector]]
"""From the catalog, a word and the parameters inside it to selectors, in the order of trial."""


def _numbers(word: str, parameters: Sequence[str], usual: Sequence[float]) -> list[float]:
    """The parameter that a word gives, or those usually tried."""
    if not parameters:
        return list(usual)
    try:
        (only,) = parameters
        return [float(only)]
    except ValueError:
        raise InputError(
            f"{option('selectors', word)}: after the selector's name stands at most one number, as "
            "in trim:0.1."
        ) from None


def _check(word: str, good: bool, what: str) -> None:
    if not good:
        raise InputError(f"{option('selectors', word)}: {what}.")


def _no_parameter(word: str, parameters: list[str]) -> None:
    _numbers(word, [*parameters, *(["x"] if parameters else [])], ())


def _best(catalog: Catalog, word: str, parameters: list[str]) -> Iterable[Selector]:
    _no_parameter(word, parameters)
    return [Best(score=rule) for rule in catalog.scorers]


def _rank(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for rank in _numbers(word, parameters, RANKS):
        _check(word, rank >= 1 and rank == int(rank), "a rank is a whole number of at least 1")
        yield from (RankPick(score=rule, rank=int(rank)) for rule in catalog.scorers)


def _trim(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for share in _numbers(word, parameters, SHARES):
        _check(word, 0 <= share < 1, "the share to drop lies between 0 and 1")
        yield from (Trim(score=rule, share=share) for rule in catalog.scorers)


def _poisson(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for mean in _numbers(word, parameters, [m for m in MEANS if m < catalog.k_max]):
        _check(word, 1 <= mean < np.inf, "the mean number of candidates is at least 1")
        yield from (PoissonBest(score=rule, mean=mean) for rule in catalog.scorers)


def _soft(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for rule in catalog.scorers:
        for beta in _numbers(word, parameters, [t / catalog.spread(rule) for t in TEMPERATURES]):
            _check(word, 0 <= beta < np.inf, "an inverse temperature is at least 0")
            yield Soft(score=rule, beta=beta)


def _chi2(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for rule in catalog.scorers:
        for beta in _numbers(word, parameters, [t * catalog.spread(rule) for t in STRENGTHS]):
            _check(word, 0 <= beta < np.inf, "the strength is at least 0")
            yield Chi2(score=rule, beta=beta)


def _threshold(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    for rule in catalog.scorers:
        pooled = np.concatenate([catalog.columns[name] for name in rule.members])
        for least in _numbers(word, parameters, _quantiles(pooled)):
            yield Threshold(score=rule, least=least)


def _filter(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    if not catalog.filters:
        raise InputError(
            f"{option('selectors', word)} needs a column to filter by, and there is no 'support'; "
            f"name a number column with {option('filters')}."
        )
    means = [ScoreRule(f"mean {rule.name}", rule.members, "mean") for rule in catalog.seeded]
    for by in catalog.filters:
        column = catalog.columns[by]
        usual = [1.0] if _is_flag(column) else _quantiles(column)
        for least in _numbers(word, parameters, usual):
            for rule in [*catalog.scorers, *means]:
                if by not in rule.members:
                    yield Filtered(score=rule, by=by, least=least)


def _top(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    single = [rule.members[0] for rule in catalog.scorers if len(rule.members) == 1]
    others = catalog.graded or single
    pairs = [(rule, by) for rule in catalog.scorers for by in others if by not in rule.members]
    if not pairs:
        raise InputError(
            f"{option('selectors', word)} needs a second column, by which the top is formed; name "
            f"a number column with {option('filters')}."
        )
    for top in _numbers(word, parameters, [t for t in TOPS if t < catalog.k_max]):
        _check(word, top >= 1 and top == int(top), "the top is a whole number of at least 1")
        yield from (TopBy(score=rule, by=by, top=int(top)) for rule, by in pairs)


def _ensemble(how: How) -> Maker:
    def make(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
        _need_several(catalog, word)
        penalties: Sequence[float] = (0.0,)
        if how == "pessimistic":
            penalties = _numbers(word, [x for x in parameters if x not in SCALES], PENALTIES)
            parameters = [x for x in parameters if x in SCALES]
        _check(word, set(parameters) <= {*SCALES}, f"the scale is {', '.join(SCALES)}")
        scales: list[Any] = parameters or catalog.scales
        for scale in scales:
            for penalty in penalties:
                for rule in catalog.ensembles:
                    score = catalog.joined(rule, how, scale, penalty)
                    yield _best_of(score)(score=score)

    return make


def _rrf(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    _need_several(catalog, word)
    for constant in _numbers(word, parameters, [ReciprocalRanks.constant]):
        _check(word, 0 <= constant < np.inf, "the constant is at least 0")
        for rule in catalog.ensembles:
            yield ReciprocalRanks(score=rule, constant=constant)


def _need_several(catalog: Catalog, word: str) -> None:
    if not catalog.ensembles:
        raise InputError(
            f"{option('selectors', word)} joins several scores, and there is one, "
            f"'{catalog.scorers[0].name}'; name more with {option('scores')}."
        )


def _majority(catalog: Catalog, word: str, parameters: list[str]) -> Iterable[Selector]:
    _need_answers(catalog, word)
    _no_parameter(word, parameters)
    return [Majority()]


def _best_in_majority(catalog: Catalog, word: str, parameters: list[str]) -> Iterable[Selector]:
    _need_answers(catalog, word)
    _no_parameter(word, parameters)
    return [BestInMajority(score=rule) for rule in catalog.scorers]


def _weighted_vote(catalog: Catalog, word: str, parameters: list[str]) -> Iterator[Selector]:
    _need_answers(catalog, word)
    for rule in catalog.scorers:
        positive = all((catalog.columns[name] >= 0).all() for name in rule.members)
        if positive and not parameters:
            yield WeightedVote(score=rule)
            continue
        usual = [t / catalog.spread(rule) for t in TEMPERATURES]
        for beta in _numbers(word, parameters, usual):
            yield WeightedVote(score=rule, beta=beta)


def _need_answers(catalog: Catalog, word: str) -> None:
    if catalog.data.answer is None:
        raise InputError(
            f"{catalog.data.pools.source}: {option('selectors', word)} votes over answers, and "
            f"there is no column 'answer'; name one with {option('answer')}."
        )


def _is_flag(column: Floats) -> bool:
    return bool(np.isin(column, (0.0, 1.0)).all())


def _quantiles(column: Floats) -> list[float]:
    known = column[np.isfinite(column)]
    if not known.size:
        return []
    at = np.quantile(known, QUANTILES, method="higher")
    return list(dict.fromkeys(at.tolist()))


_MAKERS: Final[Mapping[str, Maker]] = {
    "best": _best,
    "rank": _rank,
    "trim": _trim,
    "soft": _soft,
    "poisson": _poisson,
    "threshold": _threshold,
    **{how: _ensemble(how) for how in JOINED},
    "rrf": _rrf,
    "filter": _filter,
    "top": _top,
    "majority": _majority,
    "weighted_vote": _weighted_vote,
    "best_in_majority": _best_in_majority,
    "chi2": _chi2,
}
"""Word -> the selectors that it stands for."""
