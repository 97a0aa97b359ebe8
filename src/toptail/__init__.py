"""Audits of best-of-K selection: is this critic safe to maximize.

>>> import toptail
>>> result = toptail.audit(toptail.builtin_pools(queries=200), resamples=500)
>>> [verdict.status for verdict in result.verdicts.values()]
['safe', 'safe', 'unsafe', 'unsafe', 'no gain']
"""

from toptail import interrupts as interrupts  # first: it sees to Ctrl-C during the others
from toptail.audit import Verdict
from toptail.audit.record import installed
from toptail.errors import InputError
from toptail.pools import JudgedPicks, ScoredPools
from toptail.pools.builtin import builtin_pools
from toptail.results import AuditResult, PicksResult, audit, audit_picks

__version__ = installed("toptail")

__all__ = [
    "AuditResult",
    "InputError",
    "JudgedPicks",
    "PicksResult",
    "ScoredPools",
    "Verdict",
    "__version__",
    "audit",
    "audit_picks",
    "builtin_pools",
]
