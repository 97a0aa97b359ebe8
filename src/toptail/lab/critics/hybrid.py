"""The hybrid critic: cosine embeddings shaped by a Bellman loss beside the contrastive one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toptail.lab.critics.bellman import BellmanHeads
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="hybrid",
    title="Hybrid",
    place=4,
    group="main",
    network="cosine",
    deployed="f_cos",
    readouts=(
        Readout("f_raw", "both"),
        Readout("f_cos", "both", beside="cosine"),
        Readout("phi_norm", "both"),
        Readout("q_td", "both", beside="q_td"),
        Readout("q_hybrid", "both", value=True, beside="q_hybrid"),
    ),
    ideal="log_ratio",
)


@dataclass(frozen=True)
class Hybrid(BellmanHeads):
    """Contrast on f_cos, plus IQL on Q_hybrid = q_td(phi_hat, psi_hat) + alpha f_cos.

    alpha is a share of the value's range, which is 1 for the reward 0/1 and 1 / (1 - gamma) for
    -1/0: with either reward, alpha = 1 gives f_cos as much weight as the whole value.
    Selection maximizes f_cos alone; q_td and Q_hybrid are available as readouts.
    """

    name: ClassVar[str] = "hybrid"
    deployed: ClassVar[str] = "f_cos"
    fits = "q_hybrid"
