"""Diagnostics and verdicts over the containers; no drawing, no networks."""

from toptail.audit.baseline import baseline_content
from toptail.audit.picks import picks_content
from toptail.audit.run import pools_content
from toptail.audit.settings import Rule, Settings
from toptail.audit.verdict import Verdict

__all__ = ["Rule", "Settings", "Verdict", "baseline_content", "picks_content", "pools_content"]
