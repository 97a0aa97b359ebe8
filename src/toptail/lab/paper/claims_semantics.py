"""Every statement the paper makes about what a score means, with its criterion."""

from __future__ import annotations

from toptail.lab.paper.claims_semantics_checks import CHECKS
from toptail.lab.paper.claims_semantics_order import ORDER
from toptail.lab.paper.claims_semantics_search import SEARCH
from toptail.lab.paper.ledger import Claim

SEMANTICS: tuple[Claim, ...] = (*ORDER, *SEARCH, *CHECKS)
"""In the order in which a reader of the paper meets them."""
