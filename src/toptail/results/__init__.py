"""Results of audits and choices: shown, stored in a folder, and read from one."""

from toptail.results.result import (
    AuditResult,
    ChoiceResult,
    PicksResult,
    read_audit,
    schema,
    write_report,
)

__all__ = ["AuditResult", "ChoiceResult", "PicksResult", "read_audit", "schema", "write_report"]
