"""The critic families, one readable file each; nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toptail.lab.critics.base import (
        Batch,
        Critic,
        Params,
        Readout,
        TrainedCritic,
        parameter_count,
    )
    from toptail.lab.critics.bilinear import EmbeddingCritic
    from toptail.lab.critics.cosine import Cosine
    from toptail.lab.critics.hybrid import Hybrid
    from toptail.lab.critics.networks import Embeddings, Encoders
    from toptail.lab.critics.raw import Raw
    from toptail.lab.critics.tdq import TDQ
    from toptail.lab.critics.two_head import TwoHead

    FAMILIES: Mapping[str, type[Critic]]
    """Every family by its name."""

_WHERE = {
    "Batch": "base",
    "Critic": "base",
    "Params": "base",
    "Readout": "base",
    "TrainedCritic": "base",
    "parameter_count": "base",
    "EmbeddingCritic": "bilinear",
    "Cosine": "cosine",
    "Hybrid": "hybrid",
    "Embeddings": "networks",
    "Encoders": "networks",
    "Raw": "raw",
    "TDQ": "tdq",
    "TwoHead": "two_head",
}
"""Which file each name comes from."""


def __getattr__(name: str) -> Any:
    if name == "FAMILIES":
        families = ("TDQ", "Raw", "Cosine", "Hybrid", "TwoHead")
        return {family.name: family for family in map(__getattr__, families)}
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


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
