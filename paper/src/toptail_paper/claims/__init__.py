"""The paper: what it reports, what it claims, and what a study's stored tables say about it."""

from toptail_paper.claims.annotate import CLAIMS, annotate
from toptail_paper.claims.ledger import Claim, ClaimEntry, counted, decide, render_markdown, tally
from toptail_paper.claims.ledger_over_tasks import AcrossEntry, seen_on_tasks, write_across

__all__ = [
    "CLAIMS",
    "AcrossEntry",
    "Claim",
    "ClaimEntry",
    "annotate",
    "counted",
    "decide",
    "render_markdown",
    "seen_on_tasks",
    "tally",
    "write_across",
]
