"""Audits of best-of-K selection: is this critic safe to maximize.

>>> import toptail
>>> pools = toptail.builtin_pools(queries=200)
>>> result = toptail.audit(pools, resamples=500)
>>> [entry["verdict"]["status"] for entry in result["scorers"].values()]
['safe', 'safe', 'unsafe', 'unsafe', 'no gain']
"""

from toptail.audit import Rule, audit, audit_picks
from toptail.errors import InputError
from toptail.pools import JudgedPicks, ScoredPools
from toptail.pools.builtin import builtin_pools
from toptail.results import read_audit, write_report

__all__ = [
    "InputError",
    "JudgedPicks",
    "Rule",
    "ScoredPools",
    "audit",
    "audit_picks",
    "builtin_pools",
    "read_audit",
    "write_report",
]
