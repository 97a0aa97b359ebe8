"""The two-head network: a cosine score and a calibrated TD scalar from one set of encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax

from toptail.lab.critics.base import Params
from toptail.lab.critics.hybrid import Hybrid
from toptail.lab.critics.networks import Embeddings


@dataclass(frozen=True)
class TwoHead(Hybrid):
    """As the hybrid, but the TD loss fits q_td by itself, so that q_td is a value of its own.

    The head's gradient also reaches the encoders. One network, three scalars to select with:
    f_cos, q_td and q_hybrid = q_td + alpha f_cos.
    """

    name: ClassVar[str] = "two_head"
    deployed: ClassVar[str] = "q_td"

    def td_prediction(self, params: Params, e: Embeddings) -> jax.Array:
        """The TD head alone: [members, ...]."""
        return self.q_td(params, e)
