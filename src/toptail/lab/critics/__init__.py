"""The critic families, one readable file each."""

from __future__ import annotations

from collections.abc import Mapping

from toptail.lab.critics.base import Batch, Critic, Params, Readout, TrainedCritic, parameter_count
from toptail.lab.critics.bilinear import EmbeddingCritic
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.hybrid import Hybrid
from toptail.lab.critics.networks import Embeddings, Encoders
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.tdq import TDQ
from toptail.lab.critics.two_head import TwoHead

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
