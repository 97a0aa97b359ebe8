"""What a choice is made of: its settings, and a table with all that selectors may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from toptail.audit.run import population
from toptail.audit.settings import Settings
from toptail.errors import InputError, check_not_negative, check_share, check_whole, option
from toptail.judging.values import Judgement, judged_pools
from toptail.pools import Block, ScoredPools
from toptail.pools.columns import did_you_mean, numbers
from toptail.select.base import Pool
from toptail.select.candidates import ANSWER, answer_codes
from toptail.stats.best_of_k import Floats, Ints


@dataclass(frozen=True)
class ChoiceSettings:
    """The arguments of :func:`toptail.choose` and :class:`toptail.CrossFit`, checked."""

    k_max: int | None = None
    cost: float = 0.0
    margin: float = 0.02
    abstain: float | None = None
    folds: int = 5
    repeats: int = 10
    resamples: int = 400
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k_max is not None:
            check_whole("k_max", self.k_max, 2)
        check_not_negative("cost", self.cost)
        check_not_negative("margin", self.margin)
        check_whole("folds", self.folds, 2)
        check_whole("repeats", self.repeats, 1)
        check_whole("resamples", self.resamples, 100)
        check_share("level", self.level)
        check_whole("seed", self.seed, 0)
        if self.abstain is not None and not np.isfinite(self.abstain):
            raise InputError(f"{option('abstain', self.abstain)} must be a finite number.")


@dataclass(frozen=True, eq=False)
class SelectorInputs:
    """Pools with all columns that a selector may read."""

    pools: ScoredPools
    """The pools; their scores are the score columns."""
    extra: dict[str, Floats]
    """Filters and ``support`` ``[rows]``."""
    answer: Ints | None
    """Numbered answers ``[rows]``."""

    def pool(self, block: Block) -> Pool:
        """A block as a selector sees it."""
        columns = {**self.pools.scores, **self.extra}
        answer = None if self.answer is None else _renumbered(block.take(self.answer))
        return Pool({name: block.take(column) for name, column in columns.items()}, answer)


@dataclass(frozen=True, eq=False)
class ChoiceData(SelectorInputs):
    """The pools to choose from, with the values of their candidates."""

    judged: Judgement
    """The value of each candidate."""
    value: str
    k_max: int
    """The largest K that every pool allows."""
    warnings: list[str]
    """What was left out."""
    value_range: tuple[float, float] | None
    """The lowest and the highest possible value, where that is known."""


def further_columns(filters: Sequence[str], answer: str | None) -> list[str]:
    """The columns that a choice reads beside scores and values."""
    return [*filters, answer or ANSWER]


def choice_data(
    pools: ScoredPools,
    settings: Settings = Settings(),
    *,
    scores: Sequence[str] = (),
    filters: Sequence[str] = (),
    answer: str | None = None,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
) -> ChoiceData:
    """The values that candidates have, and the columns that selectors may read.

    Pools that are too small are left out, as the audit does; ``cheap`` and ``unjudged`` say how
    missing values count. ``scores`` are those that were named: they stay scores if they are
    filters, too.
    """
    if unjudged == "bounds":
        raise InputError(
            f"{option('unjudged', 'bounds')} leaves every selector two values, and a choice needs "
            "one; say what an unjudged candidate counts as, or with which chance each was chosen "
            f"for judging ({option('p_judged')})."
        )
    if pools.support is not None:
        filters = [name for name in filters if name != "support"]  # it is one anyway
    for name in filters:
        _filter(pools, name)  # raises where there is no such column of numbers
    votes = _answers(pools, answer) is not None
    named = {*filters, *([answer or ANSWER] if votes else [])}
    read = [name for name in pools.scores if name not in named or name in scores]
    if not read:
        raise InputError(
            f"{pools.source}: no score column is left beside {', '.join(sorted(named))}; name one "
            f"with {option('scores')}."
        )
    every = judged_pools(
        *(pools, values, replicates),
        cheap=cheap,
        unjudged=unjudged,
        value_range=settings.value_range,
        seed=settings.seed,
    )
    settings.check_values(pools.source, every.values)
    found = population(every, settings)
    pools, judged = found.judged.pools, found.judged.values
    extra = {name: _filter(pools, name) for name in filters}
    if pools.support is not None:
        extra["support"] = pools.support.astype(np.float64)
    answers = _answers(pools, answer)
    known = settings.value_range or (
        (0.0, 1.0) if np.isin(judged.labels, (0.0, 1.0)).all() else None
    )
    return ChoiceData(
        replace(pools, scores={name: pools.scores[name] for name in read}),
        extra,
        answers,
        judged,
        every.name,
        found.k_max,
        [*every.notes, *found.warnings],
        known,
    )


def _filter(pools: ScoredPools, name: str) -> Floats:
    if name in pools.scores:
        return pools.scores[name]
    if name in pools.values:
        raise InputError(f"{pools.source}: '{name}' is the value, which no selector may read.")
    if name not in pools.further:
        known = list(dict.fromkeys([*pools.scores, *pools.further, *pools.skipped]))
        raise InputError(
            f"{pools.source}: there is no column '{name}' to filter by; columns of numbers are "
            f"{', '.join(known)}{did_you_mean(name, known)}."
        )
    return numbers(pools.source, name, pools.further[name], score=True)


def _answers(pools: ScoredPools, answer: str | None) -> Ints | None:
    """Answers numbered ``[rows]``; None where the table has none."""
    name = answer or ANSWER
    if name in pools.further:
        return answer_codes(pools.further[name].to_pylist())
    if answer is not None:
        raise InputError(f"{pools.source}: there is no column '{answer}' to take answers from.")
    return None


def _renumbered(answer: Ints) -> Ints:
    """Answers of each pool numbered from 0 by their order, so that few numbers are needed."""
    order = np.argsort(answer, axis=1, kind="stable")
    ranked = np.take_along_axis(answer, order, axis=1)
    code = np.zeros_like(answer)
    code[:, 1:] = np.cumsum(ranked[:, 1:] != ranked[:, :-1], axis=1)
    result = np.empty_like(answer)
    np.put_along_axis(result, order, code, axis=1)
    return result
