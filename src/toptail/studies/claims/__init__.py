"""The claim ledger: every statement of the paper, decided from stored tables."""

from toptail.studies.claims.controlled import CONTROLLED
from toptail.studies.claims.fixed_query import FIXED_QUERY
from toptail.studies.claims.ledger import (
    Claim,
    Finding,
    NotMeasuredError,
    decide,
    render_markdown,
    tally,
)
from toptail.studies.claims.semantics import SEMANTICS

__all__ = [
    "CONTROLLED",
    "FIXED_QUERY",
    "SEMANTICS",
    "Claim",
    "Finding",
    "NotMeasuredError",
    "decide",
    "render_markdown",
    "tally",
]
