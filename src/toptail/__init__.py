"""Audits of best-of-K selection: is this critic safe to maximize.

>>> import toptail
>>> result = toptail.audit(toptail.builtin_pools(queries=200), resamples=500)
>>> [verdict.status for verdict in result.verdicts.values()]
['safe', 'safe', 'unsafe', 'unsafe', 'no gain']
"""

from toptail.audit import Verdict
from toptail.audit.record import installed
from toptail.errors import InputError
from toptail.pools import JudgedPicks, ScoredPools
from toptail.pools.builtin import builtin_pools
from toptail.results import AuditResult, JudgingPlan, PicksResult, audit, audit_picks, plan

__version__ = installed("toptail")

__all__ = [
    "AuditResult",
    "InputError",
    "JudgedPicks",
    "JudgingPlan",
    "PicksResult",
    "ScoredPools",
    "Verdict",
    "__version__",
    "audit",
    "audit_picks",
    "builtin_pools",
    "plan",
]
