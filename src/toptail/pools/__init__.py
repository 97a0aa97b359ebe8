"""The containers and their files. No statistics."""

from toptail.pools.picks import JudgedPicks
from toptail.pools.scored import Block, ScoredPools

__all__ = ["Block", "JudgedPicks", "ScoredPools"]
