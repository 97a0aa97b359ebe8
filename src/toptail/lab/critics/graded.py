"""Graded contrast: the raw critic with gamma^d as the label of a goal that follows after d steps.

Binary NCE calls every positive 1, however far away it is. Here the label says how near the goal is
(a distance-conditioned contrastive target); goals of other rows keep the label 0.

Ideal: with p+ the future of (s, a) that positives are drawn from, the logit of
p+(g) E[gamma^d | g] / (p+(g) + (B - 1) p(g)): a value-weighted version of the raw critic's.
Deviations: a variant of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import Batch, Info, Params, column
from toptail.lab.critics.networks import inner
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="graded",
    title="Raw, graded labels",
    place=18,
    group="other",
    network="bilinear",
    deployed="f_raw",
    readouts=(
        *Readout.ensemble("f_raw", "contrastive"),
        Readout("f_cos", "contrastive"),
        Readout("phi_norm", "contrastive"),
    ),
)


@dataclass(frozen=True)
class Graded(Raw):
    """Cross-entropy of all pairs: mean_ij softplus(x_ij) - mean_i gamma^d_i x_ii / B."""

    name: ClassVar[str] = "graded"

    gamma: float = 0.99
    """Discount of the labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.contrast != "binary_nce":
            raise InputError(f"{option('contrast', self.contrast)} has no labels to grade.")

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """The raw critic's loss with the label gamma^d of a positive in place of 1.

        The raw loss has - x_ii / B for the label 1, so that (1 - gamma^d) x_ii / B is added.
        """
        del key
        e = self.embed(params, batch.states, batch.actions, batch.goals)
        loss, info = self.contrasted(e)
        own = inner(e.phi, e.psi) / self.encoders.embed_dim**0.5
        missing = 1.0 - self.gamma ** column(batch, "offsets")
        return loss + jnp.mean(missing[None] * own) / len(missing), info
