"""What the contract tests have to be told of each critic; a new one tells it in its own test file.

``tests/critics/test_NAME.py`` of a critic that is not listed here has a constant ``FACTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from tests.critics import slow_full as slow
from tests.critics.examples import EXAMPLES
from tests.critics.full_cases import DIMS, SLOW
from toptail.lab.critics.registry import CRITICS

LN2 = float(np.log(2.0))
TD = 1.0  # (q - (r + gamma v'))^2 with q = v' = 0 and r = -1; V's own error is 0
BOTH = LN2 + SLOW.td_weight * TD

Reads = Callable[[slow.Tree, Any, Any, Any], dict[str, Any]]


class Facts(NamedTuple):
    """What the checks need to know of a critic."""

    at_zero: float | None
    """Loss of fresh parameters where every input is zero: then every logit and value is 0. None for
    a loss that draws inputs of its own."""

    deployed: str
    """The readout that the paper's table names for selection."""

    parameters: int
    """Trained numbers of the small version in `full_cases`."""

    slow_loss: Callable[[slow.Tree, slow.Tree, slow.Rows, slow.Settings], slow.Scalars]
    """The loss and its info in NumPy: (params, params without gradient, rows, settings). For a
    loss that samples it makes the same draws from ``rows.key``."""

    slow_reads: Reads
    """Every readout in NumPy, of matching rows."""

    factored: frozenset[str] = frozenset()
    """The readouts that are functions of phi and psi."""

    embeds: bool = False
    """Whether it has phi and psi."""

    target: bool = False
    """Whether it has a target network."""

    samples: bool = False
    """Whether the loss draws by row, so that permuting the rows changes it."""

    further: Mapping[str, int] = {}
    """Further columns of the batch (see `Learner.further`), with their widths."""


def network_size(inputs: int, out: int) -> int:
    """Parameters of one (16, 16) network: kernels, biases, and a scale and shift per LayerNorm."""
    return (inputs * 16 + 3 * 16) + (16 * 16 + 3 * 16) + (16 * out + out)


_S, _A, _G = DIMS
Q, V = network_size(_S + _G + _A, 1), network_size(_S + _G, 1)
ENCODERS = 2 * (network_size(_S + _A, 8) + network_size(_G, 8))
HEADS = 2 * network_size(16, 1)

EMBEDDED = frozenset({"f_raw", "f_cos", "phi_norm"})
OF_RAW = EMBEDDED | {"f_raw_min", "f_raw_lcb"}
WITH_HEADS = EMBEDDED | {"q_td", "q_hybrid"}


def embedded(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The scalars of the embeddings."""
    phi, psi = slow.embed(params, SLOW, s, a, g)
    return {
        "f_raw": (phi * psi).sum(axis=-1).mean(0),
        "f_cos": slow.cosines(phi, psi).mean(0),
        "phi_norm": np.sqrt((phi**2).sum(axis=-1)).mean(0),
    }


def raw(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The scalars of the embeddings, and the copies' inner products."""
    phi, psi = slow.embed(params, SLOW, s, a, g)
    return embedded(params, s, a, g) | of_members("f_raw", (phi * psi).sum(axis=-1))


def with_heads(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The scalars of the embeddings and of the TD head on them."""
    e = slow.embed(params, SLOW, s, a, g)
    q, cosines = slow.head(params, *e), slow.cosines(*e)
    weight = SLOW.alpha * SLOW.value_range
    heads = {"q_td": q.mean(0), "q_hybrid": (q + weight * cosines).mean(0)}
    return embedded(params, s, a, g) | heads


def of_members(label: str, members: Any) -> dict[str, Any]:
    """Mean, minimum and lower bound of [members, ...]."""
    mean = members.mean(0)
    spread = np.sqrt(((members - mean) ** 2).mean(0))
    bound = mean - SLOW.beta * spread
    return {label: mean, f"{label}_min": members.min(0), f"{label}_lcb": bound}


def tdq(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The Q networks' scalars, and the length of their last hidden layer."""
    hidden = slow.joint(params, SLOW, s, a, g, features=True)
    found = of_members("q", slow.joint(params, SLOW, s, a, g)[..., 0])
    return found | {"feature_norm": np.sqrt((hidden**2).sum(axis=-1)).mean(0)}


def separate(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The scalars of the embeddings and of the TD-Q beside them."""
    members = slow.joint(params["value"], SLOW, s, a, g)[..., 0]
    return embedded(params, s, a, g) | of_members("q_td", members)


def td_bilinear(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The scalars of the embeddings, and their scaled inner product's."""
    phi, psi = slow.embed(params, SLOW, s, a, g)
    members = (phi * psi).sum(axis=-1) / np.sqrt(SLOW.embed_dim)
    return embedded(params, s, a, g) | of_members("q", members)


def nce_mlp(params: slow.Tree, s: Any, a: Any, g: Any) -> dict[str, Any]:
    """The logits' scalars."""
    return of_members("logit", slow.joint(params, SLOW, s, a, g)[..., 0])


SUBJECTS = (*CRITICS, *EXAMPLES)
"""The critics that the contract is tested for."""

_LISTED: Mapping[str, Facts] = {
    "tdq": Facts(TD, "q", 2 * Q + V, slow.tdq, tdq, target=True),
    "raw": Facts(LN2, "f_raw", ENCODERS, slow.raw, raw, OF_RAW, embeds=True),
    "cosine": Facts(LN2, "f_cos", ENCODERS, slow.cosine, embedded, EMBEDDED, embeds=True),
    "hybrid": Facts(
        BOTH, "f_cos", ENCODERS + HEADS + V, slow.hybrid, with_heads, WITH_HEADS, True, True
    ),
    # Its TD scalar is another network's, of the joint input.
    "two_head_separate": Facts(
        BOTH, "q_td", ENCODERS + 2 * Q + V, slow.two_head_separate, separate, EMBEDDED, True, True
    ),
    "two_head_joint": Facts(
        BOTH, "q_td", ENCODERS + HEADS + V, slow.two_head_joint, with_heads, WITH_HEADS, True, True
    ),
    # The raw critic's function class.
    "td_bilinear": Facts(
        TD,
        "q",
        ENCODERS + V,
        slow.td_bilinear,
        td_bilinear,
        EMBEDDED | {"q", "q_min", "q_lcb"},
        True,
        True,
    ),
    # TD-Q's Q networks.
    "nce_mlp": Facts(LN2, "logit", 2 * Q, slow.nce_mlp, nce_mlp),
}


@cache
def facts() -> Mapping[str, Facts]:
    """The facts of every critic and example, the unlisted ones' from their own test files."""
    return {
        name: _LISTED[name]
        if name in _LISTED
        else import_module(f"tests.critics.test_{name}").FACTS
        for name in SUBJECTS
    }
