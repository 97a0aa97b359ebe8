"""The paper: what it reports, what it claims, and what a study's stored tables say about it."""

from toptail_paper.claims.claim import Claim
from toptail_paper.claims.ledger import (
    CLAIMS,
    ClaimEntry,
    annotate,
    counted,
    decide,
    render_markdown,
    tally,
)
from toptail_paper.claims.ledger_over_tasks import seen_on_tasks, write_across

__all__ = [
    "CLAIMS",
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
