"""The containers and their files. No statistics."""

from toptail.pools.scored import Block, ScoredPools

__all__ = ["Block", "ScoredPools"]
