"""Assertions for tests: a score is safe to maximize, up to the K that is used."""

from __future__ import annotations

from os import PathLike

from toptail.audit.verdict import Verdict
from toptail.errors import InputError
from toptail.results import AuditResult


def assert_safe(
    result: AuditResult | str | PathLike[str],
    scorer: str,
    *,
    k: int | None = None,
    groups: bool = True,
) -> None:
    """Assert that taking the best of K by this scorer is safe, for pytest.

    Parameters
    ----------
    result
        What :func:`toptail.audit` returned, or a folder that ``toptail audit`` wrote.
    scorer
        The score that is maximized.
    k
        The K that is used: safe up to there is enough. By default up to the largest K audited.
    groups
        Whether it must hold in each group, too.

    Raises
    ------
    AssertionError
        If it is not shown to be safe; the message says where, why, and what would decide it.
    InputError
        If the audit has no such scorer, or did not measure K.

    Examples
    --------
    >>> import toptail
    >>> result = toptail.audit(toptail.builtin_pools(queries=200), resamples=500)
    >>> assert_safe(result, list(result.scorers)[0], k=16)
    """
    audit = result if isinstance(result, AuditResult) else AuditResult.read(result)
    if scorer not in audit.scorers:
        raise InputError(f"There is no scorer '{scorer}'; those are {', '.join(audit.scorers)}.")
    most = audit.k[-1]
    if k is not None and not 1 < k <= most:
        raise InputError(f"k={k} was not audited: the audit speaks of K from 2 to {most}.")
    found = {"": audit.verdicts[scorer]}
    if groups:
        inside = {name: part[scorer].verdict for name, part in audit.groups.items()}
        found |= {f" in the group {name}": verdict for name, verdict in inside.items()}
    failed = [_why(verdict, where) for where, verdict in found.items() if not _safe(verdict, k)]
    if failed:
        raise AssertionError(
            f"{scorer} is not shown to be safe up to best of {k or most}:\n  " + "\n  ".join(failed)
        )


def _safe(verdict: Verdict, k: int | None) -> bool:
    if k is None:
        return verdict.status == "safe"
    return verdict.k_safe_max is not None and verdict.k_safe_max >= k


def _why(verdict: Verdict, where: str) -> str:
    needed = verdict.queries_needed
    more = f" About {needed:,} queries would decide it." if needed else ""
    safe = verdict.k_safe_max
    upto = f" (safe up to best of {safe})" if safe and verdict.status != "safe" else ""
    return f"{verdict.status}{where}{upto}: {verdict.reason}{more}"
