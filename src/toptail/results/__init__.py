"""Results of audits and choices: read from a folder, shown, and written to one."""

from toptail.results.planning import JudgingPlan, plan
from toptail.results.result import (
    AuditResult,
    ChoiceResult,
    PicksResult,
    read_audit,
    write_report,
)
from toptail.results.schema import schema

__all__ = [
    "AuditResult",
    "ChoiceResult",
    "JudgingPlan",
    "PicksResult",
    "plan",
    "read_audit",
    "schema",
    "write_report",
]
