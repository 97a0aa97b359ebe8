"""The eight critics at full size, by name."""

from __future__ import annotations

from toptail.errors import InputError
from toptail.lab.critics.base import Critic
from toptail.lab.critics.bellman import Bellman, Reward
from toptail.lab.critics.bellman_heads import BellmanHybrid, TwoHeadJoint, TwoHeadSeparate
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.gciql import GCIQL
from toptail.lab.critics.losses import Contrast
from toptail.lab.critics.nce_mlp import NCEMLP
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.stack import StackedEncoders
from toptail.lab.critics.td_bilinear import TDBilinear

FULL_SIZE = (
    "raw",
    "cosine",
    "tdq",
    "hybrid",
    "two_head_separate",
    "two_head_joint",
    "td_bilinear",
    "nce_mlp",
)
"""Names that `full_size` knows."""


def full_size(
    name: str,
    *,
    bfloat16: bool = False,
    hidden: tuple[int, ...] = (512, 512, 512),
    embed_dim: int = 512,
    ensemble: int = 2,
    contrast: Contrast = "binary_nce",
    temperature: float = 0.1,
    learn_temperature: bool = False,
    alpha: float = 1.0,
    td_weight: float | None = None,
    reward: Reward = "-1/0",
    negatives: int = 7,
    bellman: Bellman | None = None,
) -> Critic:
    """Build the critic of that name; settings that it does not have are ignored.

    The defaults are the reference agents': three hidden layers of 512, embeddings of 512, two
    copies of each network, expectile 0.9, discount 0.99, target rate 0.005.

    ``td_weight`` is the weight of the Bellman loss beside the contrastive one (hybrid and
    two-head critics). Unless given, it measures the TD error in units of the value's range, which
    is 1 / (1 - gamma) for the reward -1/0 and 1 for 0/1. In plain units the Bellman loss of the
    former is ten thousand times larger and leaves nothing of the contrastive one.
    """
    bellman = bellman or Bellman()
    if td_weight is None:
        td_weight = (1.0 - bellman.gamma) ** 2 if reward == "-1/0" else 1.0
    encoders = StackedEncoders(hidden, embed_dim, ensemble, True, bfloat16)
    cosine = (encoders, contrast, temperature, learn_temperature)
    gciql = GCIQL(hidden, ensemble, bellman, bfloat16=bfloat16)
    critics: dict[str, Critic] = {
        "raw": Raw(encoders, contrast),
        "cosine": Cosine(*cosine),
        "tdq": gciql,
        "hybrid": BellmanHybrid(*cosine, alpha, td_weight, bellman),
        "two_head_separate": TwoHeadSeparate(*cosine, gciql, td_weight),
        "two_head_joint": TwoHeadJoint(*cosine, alpha, td_weight, bellman),
        "td_bilinear": TDBilinear(encoders, bellman),
        "nce_mlp": NCEMLP(hidden, ensemble, negatives, bfloat16=bfloat16),
    }
    if name not in critics:
        raise InputError(f"There is no critic '{name}'; the critics are {', '.join(FULL_SIZE)}.")
    return critics[name]
