"""``toptail.choose``: a table in, what to deploy and what that is worth out."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from toptail.audit import Settings
from toptail.audit.views import Interval
from toptail.errors import InputError
from toptail.io.files import staged_folder
from toptail.io.json_files import read_json
from toptail.judging.labels import Judges
from toptail.pools.columns import Columns, listed
from toptail.pools.read import to_pools
from toptail.progress import Tick, no_tick
from toptail.report.choice import choice_lines, render_choice
from toptail.results.schema import choice_problem
from toptail.select import Selector
from toptail.select.base import FORMAT as SELECTOR
from toptail.select.choose import choice_content
from toptail.select.kinds import selector_of
from toptail.select.read import further_columns, read_options
from toptail.select.trial import ChoiceSettings


class ChoiceResult:
    """What to deploy, and what it is worth: of :func:`toptail.choose`.

    Two results are equal if their content is.
    """

    def __init__(self, content: Mapping[str, Any], selector: Selector | None = None) -> None:
        """Make a result of the content of a ``choice.json``, which it keeps a copy of."""
        if found := choice_problem(dict(content)):
            raise InputError(f"This choice cannot be read: {found}.")
        self._content: dict[str, Any] = copy.deepcopy(dict(content))
        self._selector = selector

    @classmethod
    def read(cls, folder: str | PathLike[str]) -> ChoiceResult:
        """The result that :meth:`write` or ``toptail choose`` stored in a folder."""
        path = Path(folder) / "choice.json"
        if not path.is_file():
            raise InputError(f"{path} does not exist; give the folder that 'toptail choose' wrote.")
        content = read_json(path, "choose again", "is not readable as a stored choice")
        if found := choice_problem(content):
            raise InputError(f"{path}: {found}.")
        return cls(content)

    @cached_property
    def selector(self) -> Selector:
        """What to deploy: chosen on all queries."""
        if self._selector is not None:
            return self._selector
        return selector_of(self._stored(), "choice.json")

    def _stored(self) -> dict[str, Any]:
        """The content of ``selector.json``."""
        parts = {part: self._content[part] for part in ("selector", "k", "parameters")}
        return {"format": SELECTOR, **parts}

    @property
    def value(self) -> Interval:
        """What the selector to deploy is worth; its interval allows for the choice.

        Of results that an earlier version stored: what choosing this way is worth.
        """
        return _interval(self._content)

    @property
    def gain(self) -> Interval:
        """What the selector to deploy gains over the plain best of the largest K."""
        against = (d for d in self._content["differences"] if d["against"] == "best_of_k_max")
        entry = next(against)
        return Interval(entry["difference"], entry["low"], entry["high"])

    @property
    def baselines(self) -> Mapping[str, Interval]:
        """``random``, ``best_of_k_max``, ``best_of_k_best`` and ``oracle``."""
        return {name: _interval(each) for name, each in self._content["baselines"].items()}

    @property
    def answer(self) -> str:
        """What to do, in a sentence."""
        return str(self._content["answer"])

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to look at before trusting the result."""
        return tuple(self._content["warnings"])

    def to_dict(self) -> dict[str, Any]:
        """The content of ``choice.json``: plain lists, numbers and strings."""
        return copy.deepcopy(self._content)

    def summary(self) -> str:
        """The result in words, as the command line prints it."""
        return "\n".join(choice_lines(self._content))

    def write(self, folder: str | PathLike[str]) -> Path:
        """Write ``choice.json``, ``selector.json`` and the report; returns the page's path."""
        target = Path(folder)
        with staged_folder(target) as stage:
            for name, content in (("choice", self._content), ("selector", self._stored())):
                text = json.dumps(content, indent=1, allow_nan=False)
                (stage / f"{name}.json").write_text(text + "\n", encoding="utf-8")
            render_choice(self._content, stage)
        return target / "report.html"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChoiceResult) and self._content == other._content

    def __hash__(self) -> int:
        return hash(json.dumps(self._content["record"], sort_keys=True))

    def __repr__(self) -> str:
        return f"ChoiceResult: {self.answer} Value {self.value}."


def _interval(entry: Mapping[str, Any]) -> Interval:
    return Interval(entry["value"], entry["low"], entry["high"])


def choose(
    data: Any,
    *,
    selectors: str | Sequence[Any] | None = None,
    k_max: int | None = None,
    cost: float = ChoiceSettings.cost,
    filter: str | Sequence[str] | None = None,  # noqa: A002
    answer: str | None = None,
    query: str | None = None,
    candidate: str | None = None,
    group: str | None = None,
    cluster: str | None = None,
    support: str | None = None,
    scores: str | Sequence[str] | None = None,
    p_judged: str | None = None,
    values: str | None = None,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
    plan: Any = None,
    answers: Any = None,
    pairs: Any = None,
    replicates: Sequence[str] | None = None,
    min_pool: int | None = None,
    value_range: tuple[float, float] | None = None,
    margin: float = ChoiceSettings.margin,
    abstain: float | None = None,
    folds: int = ChoiceSettings.folds,
    repeats: int = ChoiceSettings.repeats,
    resamples: int = ChoiceSettings.resamples,
    level: float = ChoiceSettings.level,
    seed: int = ChoiceSettings.seed,
    command: str | None = None,
    tick: Tick = no_tick,
) -> ChoiceResult:
    """Choose what to deploy: selector, parameters and K, with its value and how stable that is.

    The choice is made on all queries, and again with queries weighed at random: intervals of the
    deployed selector's value and of its gain over plain best-of-K allow for the choice.

    Parameters
    ----------
    data
        A table as :func:`toptail.audit` takes it.
    selectors
        What to try: words such as ``"trim"`` or ``"trim:0.1"``, selectors, or functions from
        columns of a pool to weights. By default a sensible set for the columns that are there.
    k_max
        The largest number of candidates to look at; by default the smallest pool.
    cost
        Price of a candidate in units of the value, which is subtracted everywhere.
    filter
        Number columns that may serve as filters (a density, a likelihood). A true/false column
        ``support`` does without being named; one that holds other numbers must be named here.
    answer
        The column of answers to vote on; by default ``answer``.
    query, candidate, group, cluster, support, scores, values, replicates, min_pool
        As in :func:`toptail.audit`.
    p_judged, cheap, unjudged, plan, answers, pairs
        As there, where only some candidates were judged; ``unjudged`` must be a number.
    margin
        A simpler selector is chosen within this share of the headroom of the best.
    abstain
        What no answer is worth; without it selectors that abstain are shown and not chosen.
    folds, repeats
        For the cross-fitted value: into how many parts queries are parted, and how often.
    resamples, level
        How often the choice is made again for the intervals, and their confidence.
    value_range
        The smallest and the largest value there can be; intervals stay inside. Known without
        being said where every value is 0 or 1.
    seed
        Seed of all that is drawn; the same seed gives the same result to the last bit.
    command, tick
        As in :func:`toptail.audit`.

    Raises
    ------
    InputError
        If an argument cannot be used, or a selector needs a column that is not there.

    Examples
    --------
    >>> import toptail
    >>> pools = toptail.builtin_pools(queries=100, candidates=16)
    >>> result = choose(pools, scores="cursed", selectors=["trim", "filter"], resamples=100)
    >>> result.selector.called, result.selector.k
    ('filter', 16)
    """
    settings = ChoiceSettings(
        k_max=k_max,
        cost=cost,
        margin=margin,
        abstain=abstain,
        folds=folds,
        repeats=repeats,
        resamples=resamples,
        level=level,
        seed=seed,
    )
    filters = listed(filter) or []
    if pairs is not None:
        value_range = (0.0, 1.0)
    judges = Judges(values, replicates, cheap, unjudged, plan, answers, pairs)
    tick("reading the table", 0.0)
    columns = Columns(
        query=query,
        candidate=candidate,
        group=group,
        cluster=cluster,
        support=support,
        p_judged=p_judged,
        scores=scores,
        values=judges.columns,
        further=further_columns(filters, answer),
        partly=judges.partly,
    )
    pools, values = judges.joined(to_pools(data, columns))
    offered = read_options(
        data,
        columns,
        filters=filters,
        answer=answer,
        values=values,
        replicates=replicates,
        settings=Settings(
            min_pool=min_pool, unjudged=unjudged, cheap=cheap, seed=seed, value_range=value_range
        ),
        pools=pools,
    )
    wanted = [selectors] if isinstance(selectors, str) else selectors
    content, selector = choice_content(
        offered, settings, selectors=wanted, command=command, tick=tick
    )
    return ChoiceResult(content, selector)
