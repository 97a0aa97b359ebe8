"""Two heads on one network: a cosine score and a calibrated TD scalar from one pair of encoders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toptail.lab.critics.bellman import BellmanHeads
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="two_head_joint",
    title="Two heads, joint",
    place=6,
    group="two_head",
    network="head",
    deployed="q_td",
    readouts=(
        Readout("f_raw", "both"),
        Readout("f_cos", "both", scorer=True),
        Readout("phi_norm", "both"),
        Readout("q_td", "both", value=True, title="Two heads, joint: q_td"),
        Readout("q_hybrid", "both"),
    ),
    ideal="q_star",
)


@dataclass(frozen=True)
class TwoHeadJoint(BellmanHeads):
    """As the hybrid, but IQL fits q_td by itself, and selection uses it."""

    name: ClassVar[str] = "two_head_joint"
    deployed: ClassVar[str] = "q_td"
    fits = "q_td"
