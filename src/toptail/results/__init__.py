"""The instrument as one call: a table in, a result that a person can hold out."""

from toptail.judging.plan import JudgingPlan, plan
from toptail.results.choice import ChoiceResult, choose
from toptail.results.folder import read_audit, write_report
from toptail.results.result import AuditResult, PicksResult
from toptail.results.run import audit, audit_picks
from toptail.results.schema import schema

__all__ = [
    "AuditResult",
    "ChoiceResult",
    "JudgingPlan",
    "PicksResult",
    "audit",
    "audit_picks",
    "choose",
    "plan",
    "read_audit",
    "schema",
    "write_report",
]
