"""A table with everything that selectors may read: scores, filters, support and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from toptail.audit.run import population
from toptail.audit.settings import Settings
from toptail.errors import InputError, option
from toptail.judging.values import Judgement, judged_pools
from toptail.pools import ScoredPools
from toptail.pools.columns import Columns, listed, meant, numbers
from toptail.pools.read import to_pools
from toptail.select.candidates import ANSWER, answer_codes
from toptail.select.measure import SelectorInputs
from toptail.stats.best_of_k import Floats, Ints


@dataclass(frozen=True, eq=False)
class ChoiceData:
    """The pools to choose from, with the values of their candidates."""

    inputs: SelectorInputs
    """The pools with all columns that selectors may read."""
    judged: Judgement
    """The value of each candidate."""
    value: str
    """The name of the value."""
    filters: list[str]
    """Columns that may serve as filters."""
    k_max: int
    """The largest K that every pool allows."""
    warnings: list[str]
    """What was left out."""
    value_range: tuple[float, float] | None = None
    """The lowest and the highest possible value, where that is known."""


def further_columns(filters: Sequence[str], answer: str | None) -> list[str]:
    """The columns that a choice reads beside scores and values."""
    return [*filters, answer or ANSWER]


def read_options(
    data: Any,
    columns: Columns,
    *,
    filters: Sequence[str] = (),
    answer: str | None = None,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
    settings: Settings | None = None,
    pools: ScoredPools | None = None,
) -> ChoiceData:
    """Read a table, and leave out pools that are too small, as the audit does.

    ``cheap`` and ``unjudged`` say how missing values count. ``pools``, where given, were read
    already, with :func:`further_columns`; ``data`` is then not used.
    """
    settings = settings or Settings()
    if unjudged == "bounds":
        raise InputError(
            f"{option('unjudged', 'bounds')} leaves every selector two values, and a choice needs "
            "one; say what an unjudged candidate counts as, or with which chance each was chosen "
            f"for judging ({option('p_judged')})."
        )
    if pools is None:
        wanted = further_columns(filters, answer)
        pools = to_pools(data, Columns(**{**columns, "further": wanted}))
    if pools.support is not None:
        filters = [name for name in filters if name != "support"]  # it is one anyway
    for name in filters:
        _filter(pools, name)  # raises where there is no such column of numbers
    votes = _answers(pools, answer) is not None
    named = {*filters, *([answer or ANSWER] if votes else [])}
    kept = listed(columns.get("scores")) or []
    scores = [name for name in pools.scores if name not in named or name in kept]
    if not scores:
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
        SelectorInputs(replace(pools, scores={n: pools.scores[n] for n in scores}), extra, answers),
        judged,
        every.name,
        list(extra),
        found.k_max,
        [*every.notes, *found.warnings],
        known,
    )


def _filter(pools: ScoredPools, name: str) -> Floats:
    """The numbers of a filter ``[rows]``."""
    if name in pools.scores:
        return pools.scores[name]
    if name in pools.values:
        raise InputError(f"{pools.source}: '{name}' is the value, which no selector may read.")
    if name not in pools.further:
        known = list(dict.fromkeys([*pools.scores, *pools.further, *pools.skipped]))
        raise InputError(
            f"{pools.source}: there is no column '{name}' to filter by; columns of numbers are "
            f"{', '.join(known)}{meant(name, known)}."
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
