"""Diagnostics and verdicts over the containers; no drawing, no networks."""

from toptail.audit.picks import audit_picks
from toptail.audit.run import audit
from toptail.audit.verdict import Rule

__all__ = ["Rule", "audit", "audit_picks"]
