"""The losses, each a function of plain arrays that returns (loss, info)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import jax
import jax.numpy as jnp

from toptail.errors import InputError, option
from toptail.lab.critics.base import Info
from toptail.lab.critics.fused import binary_nce_pairs
from toptail.lab.critics.networks import all_pairs, inner

Contrast: TypeAlias = Literal["binary_nce", "symmetric_info_nce"]


def softplus(x: jax.Array) -> jax.Array:
    """log(1 + exp(x)), without overflow.

    Written out because the B x B pass dominates a step on the CPU: one exponential serves the
    value and its gradient, which halves the time of `jax.nn.softplus` there.
    """
    size = jnp.abs(x)
    # (x + |x|) / 2 is max(x, 0) with the gradient 1/2 at 0 that softplus has there.
    return 0.5 * (x + size) + jnp.log1p(jnp.exp(-size))


def binary_nce(logits: jax.Array) -> tuple[jax.Array, Info]:
    """Binary cross-entropy of all pairs against the identity: lower is better.

    With softplus(x) = log(1 + exp(x)), the cross-entropy of a logit x with label y is
    softplus(x) - y x, so the mean over the B x B pairs is

        mean_ij softplus(x_ij) - mean_i x_ii / B.

    Logits are [e, B, B]; row i is the pair (s_i, a_i), column j the goal g_j, positives on the
    diagonal. Averaged over the e ensemble members.
    """
    rows = logits.shape[-1]
    positive = jnp.mean(jnp.diagonal(logits, axis1=-2, axis2=-1))
    loss = jnp.mean(softplus(logits)) - positive / rows
    return loss, _contrast_info(jnp.mean(logits), positive, rows)


def symmetric_info_nce(logits: jax.Array) -> tuple[jax.Array, Info]:
    """Mean of the two softmax cross-entropies, over goals and over state-action pairs.

        -mean_i [ x_ii - (logsumexp_j x_ij + logsumexp_j x_ji) / 2 ]

    Logits are as in `binary_nce`. Lower is better.
    """
    positive = jnp.mean(jnp.diagonal(logits, axis1=-2, axis2=-1))
    over_goals = jnp.mean(jax.nn.logsumexp(logits, axis=-1))
    over_pairs = jnp.mean(jax.nn.logsumexp(logits, axis=-2))
    loss = 0.5 * (over_goals + over_pairs) - positive
    return loss, _contrast_info(jnp.mean(logits), positive, logits.shape[-1])


def _contrast_info(mean: jax.Array, positive: jax.Array, rows: int) -> Info:
    """Mean positive logit and its distance to the mean logit of the negatives."""
    negative = (mean * rows - positive) / max(rows - 1, 1)
    return {"positive_logit": positive, "logit_gap": positive - negative}


CONTRASTS: Mapping[Contrast, Callable[[jax.Array], tuple[jax.Array, Info]]] = {
    "binary_nce": binary_nce,
    "symmetric_info_nce": symmetric_info_nce,
}


def require_weight(contrast: Contrast, positive_weight: float) -> None:
    """Refuse a weight that is not positive, or that the loss does not have."""
    if not 0 < positive_weight < math.inf:
        raise InputError(f"{option('positive_weight', positive_weight)} must be more than 0.")
    if positive_weight != 1 and contrast != "binary_nce":
        raise InputError(
            f"{option('positive_weight', positive_weight)} is a weight of binary NCE: leave it "
            "out, or take that loss."
        )


def weigh_positives(
    found: tuple[jax.Array, Info], phi: jax.Array, psi: jax.Array, weight: float | jax.Array
) -> tuple[jax.Array, Info]:
    """Binary NCE with each positive counted ``weight`` times, from that with weight 1.

    The mean over B x B pairs has softplus(-x_ii) of the diagonal once; it is added ``weight - 1``
    more times. Logits are phi . psi of rows [e, B, d].
    """
    if isinstance(weight, float | int) and weight == 1:
        return found
    own = inner(phi.astype(jnp.float32), psi.astype(jnp.float32))
    more = (weight - 1.0) / phi.shape[-2] * jnp.mean(softplus(-own))
    return found[0] + more, found[1]


def contrast_pairs(
    contrast: Contrast, phi: jax.Array, psi: jax.Array, *, bfloat16: bool
) -> tuple[jax.Array, Info]:
    """Contrast the inner products of all B x B pairs of rows [e, B, d].

    With ``bfloat16`` the products are bfloat16, and binary NCE is fused.
    """
    if not bfloat16:
        return CONTRASTS[contrast](all_pairs(phi, psi))
    half = (phi.astype(jnp.bfloat16), psi.astype(jnp.bfloat16))
    if contrast == "binary_nce":
        loss, mean, positive = binary_nce_pairs(*half)
        return loss, _contrast_info(mean, positive, phi.shape[-2])
    logits = jnp.einsum("ebd,ecd->ebc", *half, preferred_element_type=jnp.float32)
    return CONTRASTS[contrast](logits)


def squared_td_error(q: jax.Array, target: jax.Array) -> tuple[jax.Array, Info]:
    """Mean squared error of the members' values [e, B] to a target [B] without gradient."""
    error = q - jax.lax.stop_gradient(target)
    loss = jnp.mean(error * error)
    return loss, {"td_rmse": jnp.sqrt(loss)}


def uniform_actions(key: jax.Array, drawn: int, actions: jax.Array) -> jax.Array:
    """Actions [drawn, B, a], uniform in the box ±1, for each of the actions [B, a]."""
    return jax.random.uniform(key, (drawn, *actions.shape), minval=-1.0, maxval=1.0)
