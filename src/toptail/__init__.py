"""Audits of best-of-K selection: is this score safe to maximize.

>>> import toptail
>>> result = toptail.audit(toptail.builtin_pools(queries=200), resamples=500)
>>> [verdict.status for verdict in result.verdicts.values()]
['safe', 'safe', 'unsafe', 'unsafe', 'no gain']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toptail.api import (
    BaselineTable,
    CrossFit,
    HowJudged,
    TableColumns,
    Thresholds,
    audit,
    audit_picks,
    choose,
    plan,
    read,
)
from toptail.errors import InputError

if TYPE_CHECKING:
    from toptail.audit.verdict import Verdict
    from toptail.judging.plan import JudgingPlan
    from toptail.lab.check.inputs import CheckConfig
    from toptail.lab.check.run import check
    from toptail.pools import JudgedPicks, ScoredPools
    from toptail.pools.builtin import builtin_pools
    from toptail.results import AuditResult, ChoiceResult, PicksResult
    from toptail.select.base import Selector

    __version__: str

_WHERE = {
    "AuditResult": "results",
    "CheckConfig": "lab.check.inputs",
    "ChoiceResult": "results",
    "JudgedPicks": "pools",
    "JudgingPlan": "judging.plan",
    "PicksResult": "results",
    "ScoredPools": "pools",
    "Selector": "select.base",
    "Verdict": "audit.verdict",
    "builtin_pools": "pools.builtin",
    "check": "lab.check.run",
}
"""Modules of the names that are imported when they are first used."""

__all__ = [
    "AuditResult",
    "BaselineTable",
    "CheckConfig",
    "ChoiceResult",
    "CrossFit",
    "HowJudged",
    "InputError",
    "JudgedPicks",
    "JudgingPlan",
    "PicksResult",
    "ScoredPools",
    "Selector",
    "TableColumns",
    "Thresholds",
    "Verdict",
    "__version__",
    "audit",
    "audit_picks",
    "builtin_pools",
    "check",
    "choose",
    "plan",
    "read",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from toptail.provenance import installed

        found: Any = installed("toptail")
    elif name in _WHERE:
        found = getattr(import_module(f"toptail.{_WHERE[name]}"), name)
    else:
        raise AttributeError(f"module 'toptail' has no attribute '{name}'")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
