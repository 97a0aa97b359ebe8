"""The claim ledger: every statement of the paper, decided from stored tables."""

from toptail.lab.paper.annotate import annotate
from toptail.lab.paper.controlled import CONTROLLED
from toptail.lab.paper.fixed_query import FIXED_QUERY
from toptail.lab.paper.ledger import (
    Claim,
    Finding,
    NotMeasuredError,
    decide,
    render_markdown,
    tally,
)
from toptail.lab.paper.semantics import SEMANTICS

__all__ = [
    "CONTROLLED",
    "FIXED_QUERY",
    "SEMANTICS",
    "Claim",
    "Finding",
    "NotMeasuredError",
    "annotate",
    "decide",
    "render_markdown",
    "tally",
]
