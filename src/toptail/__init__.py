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
from toptail.results import (
    AuditResult,
    ChoiceResult,
    JudgingPlan,
    PicksResult,
    audit,
    audit_picks,
    choose,
    plan,
)
from toptail.select import Selector

__version__ = installed("toptail")

__all__ = [
    "AuditResult",
    "ChoiceResult",
    "InputError",
    "JudgedPicks",
    "JudgingPlan",
    "PicksResult",
    "ScoredPools",
    "Selector",
    "Verdict",
    "__version__",
    "audit",
    "audit_picks",
    "builtin_pools",
    "choose",
    "plan",
]
