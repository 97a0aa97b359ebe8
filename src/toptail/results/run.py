"""The public audits: their arguments checked, what was given read, the result wrapped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from toptail.audit import Rule, Settings, baseline_content, picks_content, pools_content
from toptail.audit.baseline import MARGIN
from toptail.audit.settings import Unit
from toptail.errors import InputError, check_whole, option
from toptail.judging.labels import Judges
from toptail.judging.plan import level_at, look_of
from toptail.pools.columns import Columns
from toptail.pools.picks import PickColumns
from toptail.pools.read import to_picks, to_pools
from toptail.pools.stream import Mapped
from toptail.results.result import AuditResult, PicksResult

LEAST_RESAMPLES: Final = 100
"""With fewer, the ends of a 95 % interval are the extremes of what was drawn."""


def audit(
    data: Any,
    *,
    query: str | None = None,
    candidate: str | None = None,
    group: str | None = None,
    cluster: str | None = None,
    support: str | None = None,
    p_judged: str | None = None,
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    cheap: str | None = None,
    unjudged: float | Literal["bounds"] | None = None,
    plan: Any = None,
    answers: Any = None,
    pairs: Any = None,
    replicates: Sequence[str] | None = None,
    k: Sequence[int] | None = None,
    seed: int = Settings.seed,
    resamples: int = Settings.resamples,
    delta: float = Rule.delta,
    rho: float = Rule.rho,
    level: float = Rule.level,
    unit: Unit = Settings.unit,
    min_pool: int | None = None,
    value_range: tuple[float, float] | None = None,
    baseline: Any = None,
    baseline_scores: Mapping[str, str] | None = None,
    margin: float | None = None,
    command: str | None = None,
    tick: Callable[[str, float], None] | None = None,
    mapped: Mapped = map,
) -> AuditResult:
    """Tell whether each scorer is safe to maximize.

    Safe here is about taking the best of K of pools like these: not about AI safety, and not
    about training against the score.

    Parameters
    ----------
    data
        :class:`toptail.ScoredPools`, the path of a file, a folder or an address of partitioned
        Parquet (read as a stream where it is large), any data frame (whatever speaks Arrow,
        a lazy frame, a Hugging Face data set), a mapping of columns, a list of rows, or a
        mapping of arrays ``[queries, candidates]``.
    query, candidate, group, cluster, support
        The column that says which candidates form one pool; labels of the candidates; labels
        of queries to report by; labels of queries to resample by; whether a candidate is on the
        data support. By default the columns of these names, where there are any.
    scores
        Score columns; a scorer ``raw`` stands for its seeds ``raw@42``, ``raw@43``. By default
        those named ``score...``, else every number column that is not a value and does not look
        like an index, a length, a count, a seed or an id.
    values
        The value column to judge by; by default ``value`` or ``correct``.
    p_judged
        The column of chances with which candidates were chosen for judging, by default the one of
        that name. Then values may be missing, and curves are right on average all the same.
    cheap
        The value column of a cheap judge, who judged every candidate, beside ``values`` of some.
    unjudged
        What a candidate without a value counts as, or ``bounds`` for the worst and the best case.
    plan, answers
        A plan of :func:`toptail.plan` (its table or file) and what was answered: a table with
        ``query``, ``candidate`` and ``value``, by default the plan's own.
    pairs
        Instead of values: a table of judged pairs with ``query``, ``a``, ``b``, ``wins`` and
        ``p_judged``. A candidate's value is its chance to beat a random other one of its query.
    replicates
        Two or more value columns that are independent replicates of one noisy judge: their
        mean is the value, and the oracle is chosen on one half and valued on the other.
    k
        Candidate counts to show beside 1, 2, 4, ... and k_max, the smallest pool: the verdict
        looks at those and at no other.
    seed
        Seed of the resamples; the same seed gives the same result to the last bit, with any
        number of cores, on machines with one kind of CPU and the same versions.
    resamples
        Resamples of whole queries (or clusters), shared by all scorers.
    delta, rho, level
        Thresholds of the verdict: the fall that is harm, the harm that must be ruled out (both
        shares of the headroom), and the confidence.
    unit
        What a gain is a share of: ``pooled``, the headroom of all queries together; ``query``,
        each query's own, where queries without headroom are left out.
    min_pool
        Leave out smaller pools; by default those below the 5 % quantile of sizes.
    value_range
        The lowest and the highest value that a candidate can have, if there are such. Then
        fewer than 40 queries can be enough, and harm beyond any candidate seen is counted.
    baseline
        An older table, anything that ``data`` may be: each scorer is compared with the one of the
        same name there, at the queries that both tables have.
    baseline_scores
        Scorer of the older table -> its name in the new one, where the names differ.
    margin
        A loss of at most this share of the older table's headroom counts as no loss; 0.02 by
        default.
    command
        The command to record as what made this result.
    tick
        Called with a stage's name and its finished share, for progress bars.
    mapped
        Who works through a table that is streamed, called as ``map`` is; an engine has one.

    Raises
    ------
    InputError
        If an argument cannot be used, or the columns or K asked for do not fit the data.

    Examples
    --------
    >>> import numpy as np
    >>> value = np.tile([0.0, 1.0, 2.0, 3.0], (50, 1))
    >>> audit({"score": value, "value": value}).verdicts["score"].status
    'safe'
    >>> audit({"score": value[:2], "value": value[:2]}).verdicts["score"].status
    'inconclusive'
    """
    check_whole("resamples", resamples, LEAST_RESAMPLES)
    judges = Judges(values, replicates, cheap, unjudged, plan, answers, pairs)
    value_range = (0.0, 1.0) if pairs is not None else value_range
    look, looks = (1, 1) if plan is None else look_of(plan)
    Rule(delta, rho, level)  # before the level is spent
    settings = Settings(
        rule=Rule(delta, rho, level_at(level, look, looks) if looks > 1 else level),
        k=k,
        seed=seed,
        resamples=resamples,
        unit=unit,
        min_pool=min_pool,
        value_range=value_range,
        unjudged=unjudged,
        cheap=cheap,
    )
    if tick is not None:
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
        partly=judges.partly,
    )
    stream = all(given is None for given in (cheap, unjudged, plan, pairs, baseline))
    pools, values = judges.joined(to_pools(data, columns, stream=stream, mapped=mapped))
    against: dict[str, Any] | None = None
    warnings: list[str] = []
    if baseline is not None:
        wanted = list(baseline_scores or ()) or scores
        against, warnings = baseline_content(
            pools,
            to_pools(baseline, Columns(query=query, scores=wanted, values=columns["values"])),
            settings,
            values=values,
            replicates=replicates,
            scores=baseline_scores,
            margin=MARGIN if margin is None else margin,
        )
    elif margin is not None or baseline_scores is not None:
        given = option("baseline_scores" if margin is None else "margin")
        raise InputError(f"{given} is about the table that {option('baseline')} names; give both.")
    content = pools_content(
        pools, settings, values=values, replicates=replicates, command=command, tick=tick
    )
    content["warnings"] += warnings
    if looks > 1:
        content["judging"]["look"] = {"at": look, "of": looks, "level": level}
    elif look > 1:
        content["warnings"].append(
            f"This is batch {look} of a plan without declared looks: the level holds only if "
            "nobody looked at the batches before."
        )
    return AuditResult(content if against is None else content | {"baseline": against})


def audit_picks(
    data: Any,
    *,
    query: str | None = None,
    selector: str | None = None,
    values: str | None = None,
    cluster: str | None = None,
    group: str | None = None,
    p_judged: str | None = None,
    baseline: str | None = None,
    seed: int = Settings.seed,
    resamples: int = Settings.resamples,
    level: float = Rule.level,
    power: float = 0.8,
    command: str | None = None,
) -> PicksResult:
    """Compare selectors by how their picks turned out.

    Parameters
    ----------
    data
        :class:`toptail.JudgedPicks`, the path of a file, or any table as :func:`toptail.audit`
        takes it, with the columns ``query``, ``selector``, ``value``, and optional
        ``replicate``, ``key``, ``cluster`` and ``group``.
    query, selector, values, cluster, group
        The columns of queries, selectors and values, of labels of queries to resample by, and
        of labels of queries to report by, where they are called otherwise.
    p_judged
        The column of chances with which picks were chosen for judging, by default the one of that
        name; with it values may be missing, as in :func:`toptail.audit`.
    baseline
        The selector to compare with first; ``random`` by default where there is one.
    seed, resamples, level, command
        As in :func:`toptail.audit`.
    power
        The probability with which the smallest detectable difference would be detected.
    """
    check_whole("resamples", resamples, LEAST_RESAMPLES)
    columns = PickColumns(
        query=query,
        selector=selector,
        values=values,
        cluster=cluster,
        group=group,
        p_judged=p_judged,
    )
    content = picks_content(
        to_picks(data, columns),
        seed=seed,
        resamples=resamples,
        level=level,
        power=power,
        baseline=baseline,
        command=command,
    )
    return PicksResult(content)
