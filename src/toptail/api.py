"""The library's functions: ``read``, ``audit``, ``audit_picks``, ``choose`` and ``plan``.

Arguments that most calls need are plain keywords; the others come in small dataclasses. Modules
that a function needs are imported when it is called, so that ``import toptail`` is fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from toptail.audit.settings import Rule, Settings, Unit
from toptail.errors import InputError, check_whole, option
from toptail.progress import caller

if TYPE_CHECKING:
    from toptail.judging.plan import JudgingPlan
    from toptail.pools import ScoredPools
    from toptail.pools.columns import Columns, Missing
    from toptail.results import AuditResult, ChoiceResult, PicksResult

LEAST_RESAMPLES: Final = 100
"""With fewer, the ends of a 95 % interval are the extremes of what was drawn."""


@dataclass(frozen=True, kw_only=True)
class TableColumns:
    """Which columns of a table hold what."""

    scores: str | Sequence[str] | None = None
    """Score columns; a scorer ``raw`` stands for its seeds ``raw@42``, ``raw@43``. By default those
    named ``score...``, else every number column that is not a value and does not look like an
    index, a length, a count, a seed or an id."""
    values: str | None = None
    """The value column to judge by; by default ``value`` or ``correct``."""
    query: str | Sequence[str] | None = None
    """Which candidates form one pool; by default ``query``. Several columns may do so together:
    ``("policy", "prompt")``."""
    candidate: str | None = None
    """Labels of candidates, unique inside a query; by default ``candidate``, where there is one."""
    group: str | None = None
    """Labels of queries to report by; by default ``group``, where there is one."""
    cluster: str | None = None
    """Labels of queries to resample by; by default ``cluster``, where there is one."""
    support: str | None = None
    """True where a candidate is on the data support; by default ``support``."""
    filters: str | Sequence[str] | None = None
    """Number columns that :func:`toptail.choose` may filter by (a density, a likelihood). A
    true/false column ``support`` need not be named; one that holds other numbers must be."""
    answer: str | None = None
    """Answers that :func:`toptail.choose` may vote on; by default ``answer``."""
    missing: Missing | None = None
    """Candidates without a score: ``lowest`` takes them last, as what was not retrieved; ``drop``
    leaves them out; ``error`` refuses the table. By default an incomplete column is left out if
    others are complete, and refused if it was named."""


@dataclass(frozen=True, kw_only=True)
class HowJudged:
    """How candidates got their values, where not each has one exact value in the table."""

    replicates: Sequence[str] | None = None
    """Two or more value columns that are independent replicates of one noisy judge: their mean is
    the value, and the oracle is chosen on one half and valued on the other."""
    p_judged: str | None = None
    """The column of chances with which candidates were chosen for judging, by default ``p_judged``.
    With it values may be missing: curves are right on average."""
    cheap: str | None = None
    """The value column of a cheap judge of every candidate, where ``values`` has those of some."""
    unjudged: float | Literal["bounds"] | None = None
    """What a candidate without a value counts as, or ``bounds`` for the worst and the best case."""
    plan: Any = None
    """A plan of :func:`toptail.plan`, its table or its file."""
    answers: Any = None
    """The judged values of that plan: a table with ``query``, ``candidate`` and ``value``. By
    default the plan's own column ``value``."""
    pairs: Any = None
    """Instead of values: a table of judged pairs with ``query``, ``a``, ``b``, ``wins`` and
    ``p_judged``. A candidate's value is its chance to beat a random other one of its query."""
    value_range: tuple[float, float] | None = None
    """The lowest and the highest value that a candidate can have, if there are such. Then fewer
    than 40 queries can be enough, and harm beyond any candidate seen is counted."""

    def __post_init__(self) -> None:
        if self.pairs is not None:  # chances to win
            object.__setattr__(self, "value_range", (0.0, 1.0))

    @property
    def elsewhere(self) -> bool:
        """Whether values come from another table: answers to a plan, or judged pairs."""
        return self.plan is not None or self.pairs is not None

    @property
    def missing_values(self) -> bool:
        """Whether values may be missing in the table itself."""
        return self.elsewhere or self.unjudged is not None

    def columns(self, values: str | None) -> str | Sequence[str] | None:
        """The value columns that the table itself must have; None: those that are found by name.

        ``values`` is the value column that the caller names. Arguments that exclude each other
        raise an :class:`InputError`.
        """
        if self.plan is None and self.answers is not None:
            raise InputError(f"{option('answers')} are those to a plan; give {option('plan')} too.")
        if self.pairs is not None:
            for name, given in {
                "values": values,
                "plan": self.plan,
                "unjudged": self.unjudged,
            }.items():
                if given is not None:
                    raise InputError(f"{option(name)} says nothing beside {option('pairs')}.")
        if self.cheap is not None:
            return [self.cheap] if self.elsewhere else [values or "value", self.cheap]
        return None if self.plan is not None else self.replicates or values


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What the verdict of an audit calls harm, in shares of the headroom."""

    delta: float = 0.02
    """A fall of more than this is harm."""
    rho: float = 0.1
    """A harm above this must be ruled out before a scorer is called safe."""
    unit: Unit = "pooled"
    """Whose headroom: ``pooled``, that of all queries together; ``query``, each query's own, where
    queries without headroom are left out."""


@dataclass(frozen=True)
class BaselineTable:
    """An older table that an audit compares its scorers with, at the queries of both tables."""

    source: Any
    """The table, anything that an audit takes."""
    scores: Mapping[str, str] | None = None
    """Scorer of the older table -> its name in the new one, where the names differ."""
    margin: float = 0.02
    """A loss of at most this share of the older table's headroom counts as no loss."""


@dataclass(frozen=True, kw_only=True)
class CrossFit:
    """How :func:`toptail.choose` computes its cross-fitted value."""

    folds: int = 5
    """Parts of the queries: each is valued by what the others chose."""
    repeats: int = 10
    """How often queries are split into parts."""


def read(
    source: Any,
    *,
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    query: str | Sequence[str] | None = None,
    group: str | None = None,
    cluster: str | None = None,
    columns: TableColumns = TableColumns(),
    judged: HowJudged = HowJudged(),
) -> ScoredPools:
    """Read scored candidates into the container that all other functions take.

    Parameters
    ----------
    source
        The path of a file (Parquet, CSV, JSON, JSON Lines, Arrow, npz, a log of
        lm-evaluation-harness, Inspect or RewardBench), a folder or an address of partitioned
        Parquet, any data frame (whatever speaks Arrow, a lazy frame, a Hugging Face data set), a
        mapping of columns, a list of rows, a mapping of arrays ``[queries, candidates]``, or a
        :class:`toptail.ScoredPools`. A list of paths or frames is several tables: each is a
        group with pools of its own. ``"-"`` is standard input.
    scores
        Score columns; by default those named ``score...``, else every number column that may be
        one.
    values
        The value column to judge by; by default ``value`` or ``correct``.
    query
        The column, or the columns together, that say which candidates form one pool; by default
        ``query``.
    group
        Labels of queries to report by; by default ``group``, where there is one.
    cluster
        Labels of queries to resample together; by default ``cluster``, where there is one.
    columns
        Every column that can be named, those above included, :class:`toptail.TableColumns`.
    judged
        How candidates got their values, :class:`toptail.HowJudged`; needed where not every
        candidate has one.

    Returns
    -------
    ScoredPools
        The pools, with scores, values and labels by candidate; ``write`` stores them.

    Raises
    ------
    InputError
        If the table cannot be read or used: the message names the file, the column and the row.

    Examples
    --------
    >>> pools = read({"score": [[0.1, 0.7]], "value": [[0.0, 1.0]], "query": [3]})
    >>> pools.queries, list(pools.scores)
    (1, ['score'])
    """
    named = _with(columns, scores, values, query, group, cluster)
    return _pools(source, named, judged)[0]


def audit(
    source: Any,
    *,
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    query: str | Sequence[str] | None = None,
    group: str | None = None,
    cluster: str | None = None,
    k: Sequence[int] | None = None,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 10_000,
    min_pool: int | None = None,
    columns: TableColumns = TableColumns(),
    judged: HowJudged = HowJudged(),
    thresholds: Thresholds = Thresholds(),
    baseline: Any = None,
) -> AuditResult:
    """Tell whether each scorer is safe to maximize.

    Safe here is about taking the best of K of pools like these: not about AI safety, and not
    about training against the score.

    Parameters
    ----------
    source
        The table, anything that :func:`toptail.read` takes. A large folder of Parquet is read as a
        stream.
    scores
        Score columns; by default those named ``score...``, else every number column that may be
        one.
    values
        The value column to judge by; by default ``value`` or ``correct``.
    query
        The column, or the columns together, that say which candidates form one pool; by default
        ``query``.
    group
        Labels of queries to report by; by default ``group``, where there is one.
    cluster
        Labels of queries to resample together; by default ``cluster``, where there is one.
    k
        Candidate counts to show beside 1, 2, 4, ... and k_max, the size of the smallest pool. They
        change no verdict, which looks at K of its own: each up to 16, then eight for each
        doubling.
    level
        Confidence of intervals and of the verdict.
    seed
        Seed of the resamples; the same seed gives the same result to the last bit, with any
        number of cores, on machines with one kind of CPU and the same versions.
    resamples
        Resamples of whole queries (or clusters), shared by all scorers.
    min_pool
        Leave out smaller pools; by default those below the 5 % quantile of sizes.
    columns
        Every column that can be named, those above included, :class:`toptail.TableColumns`.
    judged
        How candidates got their values, :class:`toptail.HowJudged`; needed where not every
        candidate has one.
    thresholds
        What is harm, :class:`toptail.Thresholds`.
    baseline
        An older table, anything that ``source`` may be, or a :class:`toptail.BaselineTable`: each
        scorer is compared with the one of the same name there.

    Returns
    -------
    AuditResult
        ``verdicts``, ``scorers`` (curves and diagnostics), ``groups`` and ``baseline``;
        ``summary()``, ``table(name)``, ``plot()``, and ``write(folder)`` for the report.

    Raises
    ------
    InputError
        If an argument cannot be used, or the columns or K asked for do not fit the table.

    Examples
    --------
    >>> import numpy as np
    >>> value = np.tile([0.0, 1.0, 2.0, 3.0], (50, 1))
    >>> audit({"score": value, "value": value}).verdicts["score"].status
    'safe'
    >>> audit({"score": value[:2], "value": value[:2]}).verdicts["score"].status
    'inconclusive'
    """
    from toptail.audit.baseline import baseline_content
    from toptail.audit.run import pools_content
    from toptail.judging.plan import level_at, look_of
    from toptail.judging.values import judged_pools
    from toptail.results import AuditResult

    check_whole("resamples", resamples, LEAST_RESAMPLES)
    named = _with(columns, scores, values, query, group, cluster)
    look, looks = (1, 1) if judged.plan is None else look_of(judged.plan)
    Rule(thresholds.delta, thresholds.rho, level)  # checks the level before it is spent on looks
    spent = level_at(level, look, looks) if looks > 1 else level
    settings = Settings(
        rule=Rule(thresholds.delta, thresholds.rho, spent),
        k=k,
        seed=seed,
        resamples=resamples,
        unit=thresholds.unit,
        min_pool=min_pool,
        value_range=judged.value_range,
    )
    pools, values = _pools(source, named, judged, stream=baseline is None)
    compared: dict[str, Any] = {}
    warnings: list[str] = []
    if baseline is not None:
        older = baseline if isinstance(baseline, BaselineTable) else BaselineTable(baseline)
        content, warnings = baseline_content(
            pools,
            _older_pools(older, named, judged),
            settings,
            values=values,
            replicates=judged.replicates,
            scores=older.scores,
            margin=older.margin,
        )
        compared = {"baseline": content}
    pools_judged = judged_pools(
        *(pools, values, judged.replicates),
        cheap=judged.cheap,
        unjudged=judged.unjudged,
        value_range=settings.value_range,
        seed=seed,
    )
    content = pools_content(pools_judged, settings, command=caller().command, tick=caller().tick)
    content["warnings"] += warnings
    if looks > 1:
        content["judging"]["look"] = {"at": look, "of": looks, "level": level}
    elif look > 1:
        content["warnings"].append(
            f"This is batch {look} of a plan without declared looks: the level holds only if "
            "no earlier batch was audited."
        )
    return AuditResult(content | compared)


def audit_picks(
    source: Any,
    *,
    query: str | None = None,
    selector: str | None = None,
    values: str | None = None,
    cluster: str | None = None,
    group: str | None = None,
    p_judged: str | None = None,
    baseline: str | None = None,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
    power: float = 0.8,
) -> PicksResult:
    """Compare selectors by how their picks turned out.

    Parameters
    ----------
    source
        :class:`toptail.JudgedPicks`, the path of a file, or any table as :func:`toptail.read`
        takes it, with the columns ``query``, ``selector``, ``value``, and optional
        ``replicate``, ``key``, ``cluster`` and ``group``.
    query
        The column of queries; by default ``query``.
    selector
        The column that says which selector picked; by default ``selector``.
    values
        The column of what picks turned out to be worth; by default ``value``.
    cluster
        Labels of queries to resample together; by default ``cluster``, where there is one.
    group
        Labels of queries to report by; by default ``group``, where there is one.
    p_judged
        The column of chances with which picks were chosen for judging, by default the one of that
        name; with it values may be missing.
    baseline
        The selector to compare with first; ``random`` by default where there is one.
    seed
        Seed of the resamples; the same seed gives the same result to the last bit.
    resamples
        Resamples of whole queries (or clusters), shared by all selectors.
    level
        Confidence of intervals.
    power
        The probability with which the smallest detectable difference would be detected.

    Returns
    -------
    PicksResult
        ``selectors`` (mean values), ``table("differences")``, ``summary()``, ``plot()`` and
        ``write(folder)``.

    Raises
    ------
    InputError
        If an argument cannot be used, or the table is not one of judged picks.

    Examples
    --------
    >>> rows = {"query": [1, 1, 2, 2, 3, 3], "selector": ["random", "best"] * 3}
    >>> result = audit_picks({**rows, "value": [0.1, 0.5, 0.2, 0.4, 0.0, 0.6]}, resamples=100)
    >>> print(result.selectors["best"].value)
    0.5
    """
    from toptail.audit.picks import picks_content
    from toptail.pools.picks import PickColumns, to_picks
    from toptail.results import PicksResult

    check_whole("resamples", resamples, LEAST_RESAMPLES)
    columns = PickColumns(
        query=query,
        selector=selector,
        values=values,
        cluster=cluster,
        group=group,
        p_judged=p_judged,
    )
    picks = to_picks(source, columns)
    content = picks_content(
        picks,
        seed=seed,
        resamples=resamples,
        level=level,
        power=power,
        baseline=baseline,
        command=caller().command,
    )
    return PicksResult(content, picks)


def choose(
    source: Any,
    *,
    selectors: str | Sequence[Any] | None = None,
    k_max: int | None = None,
    cost: float = 0.0,
    margin: float = 0.02,
    abstain: float | None = None,
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    query: str | Sequence[str] | None = None,
    cluster: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    resamples: int = 400,
    min_pool: int | None = None,
    columns: TableColumns = TableColumns(),
    judged: HowJudged = HowJudged(),
    crossfit: CrossFit = CrossFit(),
) -> ChoiceResult:
    """Choose what to deploy: selector, parameters and K, with its value and how stable that is.

    The choice is made on all queries, and again with queries weighed at random: intervals of the
    deployed selector's value and of its gain over plain best-of-K allow for the choice.

    Parameters
    ----------
    source
        The table, anything that :func:`toptail.read` takes.
    selectors
        What to try: words such as ``"trim"`` or ``"trim:0.1"``, selectors, or functions from
        columns of a pool to weights. By default all that the columns of the table allow.
    k_max
        The largest number of candidates to look at; by default the smallest pool.
    cost
        Price of a candidate in units of the value, which is subtracted everywhere.
    margin
        A simpler selector is chosen within this share of the headroom of the best.
    abstain
        What no answer is worth; without it selectors that abstain are shown and not chosen.
    scores
        Score columns; by default those named ``score...``, else every number column that may be
        one.
    values
        The value column to judge by; by default ``value`` or ``correct``.
    query
        The column, or the columns together, that say which candidates form one pool; by default
        ``query``.
    cluster
        Labels of queries to resample together; by default ``cluster``, where there is one.
    level
        Confidence of the intervals.
    seed
        Seed of all draws; the same seed gives the same result to the last bit.
    resamples
        How often the choice is made again, with queries weighed at random, for the intervals.
    min_pool
        Leave out smaller pools; by default those below the 5 % quantile of sizes.
    columns
        Every column that can be named, those above included, :class:`toptail.TableColumns`.
    judged
        How candidates got their values, :class:`toptail.HowJudged`; its ``unjudged`` must be a
        number here. Intervals stay inside its ``value_range``, which is known without being named
        where every value is 0 or 1.
    crossfit
        How the cross-fitted value is computed, :class:`toptail.CrossFit`.

    Returns
    -------
    ChoiceResult
        ``selector``, which :meth:`toptail.Selector.pick` applies to new pools, its ``value`` and
        ``gain`` with intervals, ``answer`` in words; ``summary()``, ``table(name)``, ``plot()``
        and ``write(folder)``.

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
    from toptail.pools.columns import as_list
    from toptail.results import ChoiceResult
    from toptail.select.choose import choice_content
    from toptail.select.inputs import ChoiceSettings, choice_data, further_columns

    settings = ChoiceSettings(
        k_max=k_max,
        cost=cost,
        margin=margin,
        abstain=abstain,
        folds=crossfit.folds,
        repeats=crossfit.repeats,
        resamples=resamples,
        level=level,
        seed=seed,
    )
    named = _with(columns, scores, values, query, None, cluster)
    filters = as_list(named.filters) or []
    parts = _parts(named, judged)
    parts["further"] = further_columns(filters, named.answer)
    pools, values = _joined(source, parts, judged, named.values)
    data = choice_data(
        pools,
        Settings(min_pool=min_pool, seed=seed, value_range=judged.value_range),
        scores=as_list(named.scores) or (),
        filters=filters,
        answer=named.answer,
        values=values,
        replicates=judged.replicates,
        cheap=judged.cheap,
        unjudged=judged.unjudged,
    )
    wanted = [selectors] if isinstance(selectors, str) else selectors
    content, selector = choice_content(
        data, settings, selectors=wanted, command=caller().command, tick=caller().tick
    )
    return ChoiceResult(content, selector)


def plan(
    source: Any,
    *,
    labels: int | None = None,
    half_width: float | None = None,
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    query: str | Sequence[str] | None = None,
    spread: float | None = None,
    min_pool: int | None = None,
    seed: int = 0,
    looks: int = 1,
    extend: Any = None,
    columns: TableColumns = TableColumns(),
    judged: HowJudged = HowJudged(),
) -> JudgingPlan:
    """Choose candidates to judge, so that the verdicts of all scorers are decided soonest.

    Parameters
    ----------
    source
        A table as :func:`toptail.audit` takes it; it needs no values.
    labels
        The most candidates that may be judged, those of ``extend`` included.
    half_width
        Instead: the half-width that the captured share of every scorer should have.
    scores
        Score columns; by default those named ``score...``, else every number column that may be
        one.
    values
        A column with the values of some candidates from a pilot; the plan assumes their spread.
    query
        The column, or the columns together, that say which candidates form one pool; by default
        ``query``.
    spread
        Instead: the standard deviation of values inside a query.
    min_pool
        Leave out smaller pools; by default those below the 5 % quantile of sizes.
    seed
        Seed of the draws. The same seed gives the same plan, and with more labels a plan that
        contains it.
    looks
        After how many batches the audit may be read; judging may stop after any of them.
    extend
        An earlier plan (its table or file). The new plan contains its candidates and keeps its
        seed, its scorers and its looks.
    columns
        Every column that can be named, those above included, :class:`toptail.TableColumns`.
    judged
        ``HowJudged(cheap=...)`` names the column of a cheap judge, which judged every candidate.

    Returns
    -------
    JudgingPlan
        ``table`` has one row per candidate to judge, which ``write(path)`` stores; judged values
        come back through ``HowJudged(plan=..., answers=...)``. Without a column that names
        candidates they are numbered by their row in the query, from 0 (``numbered``), and the rows
        of the source must stay in their order.

    Raises
    ------
    InputError
        If an argument cannot be used, or the plan to extend is of another table.

    Examples
    --------
    >>> import toptail
    >>> pools = toptail.builtin_pools(queries=200)
    >>> first = plan(pools, labels=1_000)
    >>> second = plan(pools, labels=2_000, extend=first.table)
    >>> first.labels <= 1_000, first.labels + second.fresh == second.labels
    (True, True)
    """
    from toptail.judging.plan import make_plan

    for name, given in vars(judged).items():
        if name != "cheap" and given is not None:
            raise InputError(f"{option(name)} says nothing to a plan; leave it out.")
    named = _with(columns, scores, values, query, None, None)
    return make_plan(
        source,
        _parts(named, judged),
        values=named.values,
        cheap=judged.cheap,
        labels=labels,
        half_width=half_width,
        spread=spread,
        min_pool=min_pool,
        seed=seed,
        looks=looks,
        extend=extend,
    )


def _with(
    columns: TableColumns,
    scores: str | Sequence[str] | None,
    values: str | None,
    query: str | Sequence[str] | None,
    group: str | None,
    cluster: str | None,
) -> TableColumns:
    """The columns with those that were given as plain keywords."""
    plain = {"scores": scores, "values": values, "query": query, "group": group, "cluster": cluster}
    given = {name: column for name, column in plain.items() if column is not None}
    for name in given:
        if getattr(columns, name) is not None:
            raise InputError(f"Name the column of '{name}' once, as {name}= or inside columns=.")
    return replace(columns, **given)  # type: ignore[arg-type]


def _parts(columns: TableColumns, judged: HowJudged) -> Columns:
    from toptail.pools.columns import Columns

    return Columns(
        query=columns.query,
        candidate=columns.candidate,
        group=columns.group,
        cluster=columns.cluster,
        support=columns.support,
        p_judged=judged.p_judged,
        scores=columns.scores,
        values=judged.columns(columns.values),
        missing_values=judged.missing_values,
        missing=columns.missing,
    )


def _joined(
    source: Any, parts: Columns, judged: HowJudged, values: str | None, *, stream: bool = False
) -> tuple[ScoredPools, str | None]:
    """The pools with values judged elsewhere joined to them, and the value column to judge by."""
    from toptail.pools.read import to_pools

    caller().tick("reading the table", 0.0)
    pools = to_pools(source, parts, stream=stream, mapped=caller().mapped)
    if not judged.elsewhere:
        return pools, values
    from toptail.judging.labels import joined

    return joined(pools, values, plan=judged.plan, answers=judged.answers, pairs=judged.pairs)


def _pools(
    source: Any, columns: TableColumns, judged: HowJudged, *, stream: bool = False
) -> tuple[ScoredPools, str | None]:
    complete = judged.cheap is None and not judged.missing_values
    parts = _parts(columns, judged)
    return _joined(source, parts, judged, columns.values, stream=stream and complete)


def _older_pools(older: BaselineTable, columns: TableColumns, judged: HowJudged) -> ScoredPools:
    from toptail.pools.columns import Columns
    from toptail.pools.read import to_pools

    scores = list(older.scores or ()) or columns.scores
    names = Columns(
        query=columns.query,
        scores=scores,
        values=judged.columns(columns.values),
        missing=columns.missing,
    )
    return to_pools(older.source, names)
