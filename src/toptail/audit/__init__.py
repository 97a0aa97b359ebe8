"""Diagnostics and verdicts over the containers; no drawing, no networks."""

from toptail.audit.picks import picks_content
from toptail.audit.run import pools_content
from toptail.audit.settings import Rule, Settings
from toptail.audit.verdict import Verdict

__all__ = ["Rule", "Settings", "Verdict", "picks_content", "pools_content"]
