"""The critic families, one readable file each."""

from __future__ import annotations

from collections.abc import Mapping

from toptail.critics.base import Batch, Critic, Params, Readout, TrainedCritic, parameter_count
from toptail.critics.bilinear import EmbeddingCritic
from toptail.critics.cosine import Cosine
from toptail.critics.hybrid import Hybrid
from toptail.critics.networks import Embeddings, Encoders
from toptail.critics.raw import Raw
from toptail.critics.tdq import TDQ
from toptail.critics.two_head import TwoHead

FAMILIES: Mapping[str, type[Critic]] = {
    family.name: family for family in (TDQ, Raw, Cosine, Hybrid, TwoHead)
}
"""Every family by its name."""

__all__ = [
    "FAMILIES",
    "TDQ",
    "Batch",
    "Cosine",
    "Critic",
    "EmbeddingCritic",
    "Embeddings",
    "Encoders",
    "Hybrid",
    "Params",
    "Raw",
    "Readout",
    "TrainedCritic",
    "TwoHead",
    "parameter_count",
]
