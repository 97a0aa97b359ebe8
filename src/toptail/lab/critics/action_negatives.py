"""The raw critic with further negatives: other actions at the same state, towards the same goal.

In-batch negatives exchange goals only, so that nothing in the contrastive loss compares two actions
at one state. Here uniform actions at the row's own state and goal are negatives, too, as in
counterfactual and implicit behavioural-cloning losses.

Ideal: with B rows and weight w, the log of

    b(a | s) p(g | s, a) / ((B - 1) b(a | s) p(g) + w u(a) p(g | s)),

where b is the behaviour, u is uniform, and p(g | s) is the future of the state. It rises with
p(g | s, a) and falls where the behaviour is rare. Deviations: a variant of this project.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.critics.losses import softplus, uniform_actions
from toptail.lab.critics.networks import Embeddings, inner, join
from toptail.lab.critics.raw import Raw
from toptail.lab.critics.registry import Entry, Readout

ENTRY = Entry(
    name="action_negatives",
    title="Raw, other actions as negatives",
    place=17,
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
class ActionNegatives(Raw):
    """The raw critic's loss plus the mean softplus of the logits of uniform actions, over B."""

    name: ClassVar[str] = "action_negatives"

    drawn: int = 2
    """Uniform actions of each row in a step."""
    weight: float = 1.0
    """Weight of all of a row's other actions together; its positive has the weight 1."""

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        others = uniform_actions(key, self.drawn, batch.actions)
        pairs = join(batch.states[None], jnp.concatenate([batch.actions[None], others]))
        phi = self.encoders.side(params, "phi", pairs.reshape(-1, pairs.shape[-1]))
        psi = self.encoders.side(params, "psi", batch.goals)
        phi = phi.reshape(len(phi), *pairs.shape[:2], -1)
        loss, info = self.contrasted(Embeddings(phi[:, 0], psi))
        logits = inner(phi[:, 1:], psi[:, None]) / self.encoders.embed_dim**0.5
        further = self.weight * jnp.mean(softplus(logits)) / len(batch.states)
        return loss + further, {**info, "other_actions": jnp.mean(logits)}
