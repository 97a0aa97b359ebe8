"""The claim ledger: every statement of the paper, decided from stored tables."""

from toptail.studies.claims.controlled import CONTROLLED
from toptail.studies.claims.ledger import (
    Claim,
    Finding,
    NotMeasuredError,
    decide,
    render_markdown,
    tally,
)

__all__ = [
    "CONTROLLED",
    "Claim",
    "Finding",
    "NotMeasuredError",
    "decide",
    "render_markdown",
    "tally",
]
