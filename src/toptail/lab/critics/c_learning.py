"""C-learning: the contrastive objective by bootstrapping, in TD-Q's function class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from toptail.lab.critics.base import TARGET, Batch, Info, Params, Read, column
from toptail.lab.critics.bellman import Bellman
from toptail.lab.critics.joint_mlp import ensemble_readouts
from toptail.lab.critics.losses import softplus
from toptail.lab.critics.registry import Entry, Readout
from toptail.lab.critics.tdq import TDQ

ENTRY = Entry(
    name="c_learning",
    title="C-learning",
    place=9,
    group="factor",
    network="mlp",
    deployed="logit",
    readouts=Readout.ensemble("logit", "contrastive"),
    ideal="log_ratio",
    cell=("bootstrapped", "classification", "behaviour"),
)


def weighted_entropy(weight: jax.Array, logit: jax.Array) -> jax.Array:
    """Cross-entropy of a logit that is right ``weight`` times and wrong once.

    weight softplus(-x) + softplus(x), whose minimizer is x = log(weight); over random weights,
    the logarithm of their mean.
    """
    return weight * softplus(-logit) + softplus(logit)


@dataclass(frozen=True)
class CLearning(TDQ):
    """Twin logits x(s, a, g) and one u(s, g) of TD-Q's shape, trained by recursive classification.

    exp(x) estimates the ratio of p(g | s, a), the discounted probability to be at g, to the
    frequency p(g). By p(g | s, a) = (1 - gamma) p(s' = g | s, a) + gamma E p(g | s'), the next
    state is a positive of weight 1 - gamma, and a random goal one of weight gamma exp(u(s', g))
    beside being a negative (Eysenbach et al., 2021). exp(u) is fitted to an expectile, here the
    mean, of exp(x) over the behaviour's actions, with the same cross-entropy.
    """

    name: ClassVar[str] = "c_learning"
    deployed: ClassVar[str] = "logit"
    reads_rewards: ClassVar[bool] = False

    bellman: Bellman = Bellman(expectile=0.5)
    """Discount, expectile and speed of the target network."""

    def known(self, logit: jax.Array) -> jax.Array:
        """A logit as a target: no gradient, and a ratio of at most 1 / (1 - gamma).

        That bound is the authors' own. The ratio is larger only of goals that are as good as
        reached.
        """
        gamma = self.bellman.gamma
        # A discount that differs between runs of one program is an array.
        bound = -math.log1p(-gamma) if isinstance(gamma, float) else -jnp.log1p(-gamma)
        return jnp.minimum(jax.lax.stop_gradient(logit), bound)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """Recursive classification of next states and random goals."""
        del key
        goals = column(batch, "random_goals")
        now = jnp.concatenate([batch.states, goals], axis=-1)
        after = jnp.concatenate([column(batch, "next_states"), goals], axis=-1)
        pair = jnp.concatenate([now, batch.actions], axis=-1)
        reached = jnp.concatenate(
            [batch.states, column(batch, "next_goals"), batch.actions], axis=-1
        )
        rows = {"q": jnp.concatenate([reached, pair]), "v": now}
        sides = self.stack.apart(params)
        x, u = (net.apply(own, {s: rows[s]})[s] for s, (net, own) in sides.items())
        frozen = self.stack.apply(params[TARGET], {"q": pair, "v": after})
        outputs = (x, u, frozen["q"], frozen["v"])
        x, u, target, next_u = (out[..., 0].astype(jnp.float32) for out in outputs)
        positive, own = jnp.split(x, 2, axis=1)
        return self.losses(positive, own, u[0], jnp.min(target, axis=0), next_u[0])

    def losses(
        self,
        positive: jax.Array,
        own: jax.Array,
        u: jax.Array,
        target: jax.Array,
        next_u: jax.Array,
    ) -> tuple[jax.Array, Info]:
        """The losses of x and of u.

        Logits of next states and of random goals [members, B]; of the latter also u(s, g), the
        slow copies' smaller x(s, a, g), and u(s', g), each [B].
        """
        gamma, expectile = self.bellman.gamma, self.bellman.expectile
        here = (1.0 - gamma) * jnp.mean(softplus(-positive))
        later = gamma * jnp.exp(self.known(next_u))
        q_loss = here + jnp.mean(weighted_entropy(later[None], own))
        target = self.known(target)
        # Less its least value, so that the weight may jump where the two are equal.
        excess = weighted_entropy(jnp.exp(target), u) - weighted_entropy(jnp.exp(target), target)
        optimism = jnp.where(target >= u, expectile, 1.0 - expectile)
        v_loss = jnp.mean(optimism * excess)
        gap = jnp.mean(positive) - jnp.mean(own)
        info = {"positive_logit": jnp.mean(positive), "logit_gap": gap}
        return q_loss + v_loss, {"q_loss": q_loss, "v_loss": v_loss, **info}

    def readouts(self) -> Mapping[str, Read]:
        return ensemble_readouts(self.members, self.beta, self.deployed)
