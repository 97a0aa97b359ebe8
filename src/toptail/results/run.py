"""The public audits: their arguments checked, what was given read, the result wrapped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from toptail.audit import Rule, Settings, picks_content, pools_content
from toptail.errors import check_whole
from toptail.pools.columns import Columns, listed
from toptail.pools.given import to_picks, to_pools
from toptail.pools.picks import PickColumns
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
    scores: str | Sequence[str] | None = None,
    values: str | None = None,
    replicates: Sequence[str] | None = None,
    k: Sequence[int] | None = None,
    seed: int = Settings.seed,
    resamples: int = Settings.resamples,
    delta: float = Rule.delta,
    rho: float = Rule.rho,
    level: float = Rule.level,
    command: str | None = None,
    tick: Callable[[str, float], None] | None = None,
) -> AuditResult:
    """Tell whether each scorer is safe to maximize.

    Parameters
    ----------
    data
        :class:`toptail.ScoredPools`, the path of a file, any data frame (whatever speaks Arrow,
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
    replicates
        Two or more value columns that are independent replicates of one noisy judge: their
        mean is the value, and the oracle is chosen on one half and valued on the other.
    k
        Candidate counts to measure (1 is always added); by default powers of two up to the
        smallest pool of at least two candidates.
    seed
        Seed of the bootstrap; the same seed gives the same result to the last bit.
    resamples
        Bootstrap resamples of whole queries (or clusters), shared by all scorers.
    delta, rho, level
        Thresholds of the verdict: the fall that is harm, the harm that must be ruled out (both
        shares of the headroom), and the confidence.
    command
        The command to record as what made this result.
    tick
        Called with a stage's name and its finished share, for progress bars.

    Raises
    ------
    InputError
        If an argument cannot be used, or the columns or K asked for do not fit the data.

    Examples
    --------
    >>> result = audit({"score": [[1, 2], [3, 4]], "value": [[0.0, 1.0], [0.0, 1.0]]})
    >>> result.verdicts["score"].status
    'safe'
    """
    check_whole("resamples", resamples, LEAST_RESAMPLES)
    settings = Settings(Rule(delta, rho, level), k, seed, resamples)
    if tick is not None:
        tick("reading the table", 0.0)
    columns = Columns(
        query=query,
        candidate=candidate,
        group=group,
        cluster=cluster,
        support=support,
        scores=scores,
        values=listed(replicates) or values,
    )
    return AuditResult(
        pools_content(
            to_pools(data, columns),
            settings,
            values=values,
            replicates=replicates,
            command=command,
            tick=tick,
        )
    )


def audit_picks(
    data: Any,
    *,
    query: str | None = None,
    selector: str | None = None,
    values: str | None = None,
    cluster: str | None = None,
    group: str | None = None,
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
    baseline
        The selector to compare with first; ``random`` by default where there is one.
    seed, resamples, level, command
        As in :func:`toptail.audit`.
    power
        The probability with which the smallest detectable difference would be detected.
    """
    check_whole("resamples", resamples, LEAST_RESAMPLES)
    columns = PickColumns(
        query=query, selector=selector, values=values, cluster=cluster, group=group
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
