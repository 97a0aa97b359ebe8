"""Claims about what the contrastive loss leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TheoryCheck:
    """What came of checking one claim."""

    claim: str
    where: str
    """The paper's label of the statement."""
    statement: str
    holds: bool
    """Whether every part of the claim held in this run."""
    measured: float
    bound: float
    """The number the claim compares it with."""
    details: Mapping[str, Any]
    """Everything else that decided it, as plain JSON values."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"details": dict(self.details)}


def bilinear_scores(phi: FloatArray, psi: FloatArray) -> FloatArray:
    """phi(s, a)ᵀ psi(g) for all pairs: [n, d] and [m, d] to [n, m].

    The coordinates are added strictly from left to right, so that a further coordinate that is
    zero leaves every bit of the sum as it was. A BLAS product or `np.sum` groups the terms by
    their number and would not.
    """
    total = np.zeros((len(phi), len(psi)))
    for left, right in zip(phi.T, psi.T, strict=True):
        total += np.multiply.outer(left, right)
    return total


def binary_nce(logits: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Binary cross-entropy of logits against 0/1 labels, averaged (optionally with weights).

    ℓ(x, y) = log(1 + eˣ) − y·x. The sum is correctly rounded (`math.fsum`), so it does not
    depend on the order of its terms: equal losses come out equal to the last bit.
    """
    x, y = np.asarray(logits, dtype=float), np.asarray(labels, dtype=float)
    terms = np.logaddexp(0.0, x) - y * x
    w = np.ones_like(terms) if weights is None else np.asarray(weights, dtype=float)
    return math.fsum((w * terms).ravel()) / math.fsum(np.broadcast_to(w, terms.shape).ravel())


StateActionMap = Callable[[FloatArray, FloatArray], FloatArray]
GoalMap = Callable[[FloatArray], FloatArray]
TripleMap = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class StateActions:
    """Paired states [n, s] and actions [n, a]: samples of the support or of a bad region."""

    states: FloatArray
    actions: FloatArray


def off_support_nonidentifiability(
    score: TripleMap,
    perturbation: TripleMap,
    support: StateActions,
    goals: FloatArray,
    off_support: StateActions,
) -> TheoryCheck:
    """Claim: a perturbation that vanishes on the training triples leaves the loss as it was.

    If h(s, a, g) = 0 for every triple that enters the contrastive loss L, then L(f + h) = L(f),
    however large h is elsewhere. The loss is binary NCE over all pairs of the batch (row i's
    positive is goal i), the equality is to the last bit, and the freedom must be real: h has to
    change at least one score off support.
    """
    labels = np.eye(len(goals))
    before = _all_pairs(score, support, goals)
    after = before + _all_pairs(perturbation, support, goals)
    loss, perturbed_loss = binary_nce(before, labels), binary_nce(after, labels)
    moved = float(np.abs(_all_pairs(perturbation, off_support, goals)).max())
    return TheoryCheck(
        claim="off-support nonidentifiability",
        where="sec:why-fail",
        statement="A perturbation that is zero on every training triple leaves the loss bit-equal.",
        holds=perturbed_loss == loss and moved > 0.0,
        measured=perturbed_loss - loss,
        bound=0.0,
        details={
            "loss": loss,
            "perturbed_loss": perturbed_loss,
            "largest_change_on_support": float(np.abs(after - before).max()),
            "largest_change_off_support": moved,
        },
    )


@dataclass(frozen=True)
class BadRegion:
    """A closed region B of state-actions, apart from the data support."""

    distance: StateActionMap
    """Distance of each (s, a) from B: [n, s], [n, a] -> [n]; exactly 0 inside."""
    separation: float
    """delta, the distance between B and the data support."""

    def bump(self, states: FloatArray, actions: FloatArray) -> FloatArray:
        """u(s, a) = max(0, 1 − distance / width): 1 on B, 0 on the support.

        The proof takes width = delta; any smaller width serves as well, and half of delta keeps
        rounding at the edge of the support from leaking into the bump.
        """
        distance = self.distance(states, actions)
        if self.separation <= 0.0:  # nothing between B and the support: only the indicator is left
            return np.asarray(distance == 0.0, dtype=float)
        bump: FloatArray = np.maximum(0.0, 1.0 - distance / (0.5 * self.separation))
        return bump


def region_outside_disk(radius: float, gap: float) -> BadRegion:
    """B = {(s, a): ‖a‖ ≥ radius + gap}: the controlled world's actions well outside the disk."""

    def distance(_states: FloatArray, actions: FloatArray) -> FloatArray:
        short_of: FloatArray = np.maximum(0.0, radius + gap - np.linalg.norm(actions, axis=-1))
        return short_of

    return BadRegion(distance, gap)


def inflate(
    phi: StateActionMap,
    psi: GoalMap,
    region: BadRegion,
    bad: StateActions,
    goals: FloatArray,
    margin: float,
) -> tuple[StateActionMap, GoalMap, float]:
    """Build the construction in the proof of finite off-support inflation.

    phi' = [phi; beta·u], psi' = [psi; 1], beta = max(0, margin − min over B × goals of phiᵀpsi).
    Returns phi', psi' and beta.
    """
    lowest = float(bilinear_scores(phi(bad.states, bad.actions), psi(goals)).min())
    # lowest + beta may round to just below the margin: a few units in the last place more.
    rounding = 4.0 * float(np.spacing(max(abs(margin), abs(lowest))))
    beta = max(0.0, margin - lowest + rounding)

    def inflated_phi(states: FloatArray, actions: FloatArray) -> FloatArray:
        bump = beta * region.bump(states, actions)
        return np.concatenate([phi(states, actions), bump[:, None]], axis=-1)

    def inflated_psi(at: FloatArray) -> FloatArray:
        return np.concatenate([psi(at), np.ones((len(at), 1))], axis=-1)

    return inflated_phi, inflated_psi, beta


def finite_inflation(
    phi: StateActionMap,
    psi: GoalMap,
    region: BadRegion,
    support: StateActions,
    bad: StateActions,
    goals: FloatArray,
    margin: float,
) -> TheoryCheck:
    """Claim: a bounded bilinear critic can score at least M on B without touching the support.

    For a bilinear critic f = phiᵀpsi, a closed region B apart from the support and any finite
    margin M there are bounded embeddings phi', psi' with f' = f on the support (here: bit for
    bit, and so the same contrastive loss) and f' ≥ M on B × goals. The check builds them from
    the critic it is given, which may be a trained one, and also asks that
    ‖phi'‖ ≤ √(max‖phi‖² + beta²). `support` and `goals` are paired: row i's positive is goal i.
    """
    new_phi, new_psi, beta = inflate(phi, psi, region, bad, goals, margin)
    on_support = phi(support.states, support.actions)
    before = bilinear_scores(on_support, psi(goals))
    after = bilinear_scores(new_phi(support.states, support.actions), new_psi(goals))
    old_bad = bilinear_scores(phi(bad.states, bad.actions), psi(goals))
    new_bad_phi = new_phi(bad.states, bad.actions)
    lowest_bad = float(bilinear_scores(new_bad_phi, new_psi(goals)).min())

    old_norm = max(_largest_norm(on_support), _largest_norm(phi(bad.states, bad.actions)))
    new_norm = max(
        _largest_norm(new_phi(support.states, support.actions)), _largest_norm(new_bad_phi)
    )
    norm_bound = math.hypot(old_norm, beta)
    labels = np.eye(len(goals))
    same_scores = bool(np.array_equal(before, after))
    same_loss = binary_nce(before, labels) == binary_nce(after, labels)
    bounded = math.isfinite(new_norm) and new_norm <= norm_bound * (1.0 + 1e-12)
    return TheoryCheck(
        claim="finite off-support inflation",
        where="thm:finite-inflation",
        statement="One bounded extra coordinate lifts every score of a bad region to at least M "
        "and leaves every score on the support, and the loss, bit-equal.",
        holds=same_scores and same_loss and lowest_bad >= margin and bounded,
        measured=lowest_bad,
        bound=margin,
        details={
            "beta": beta,
            "separation": region.separation,
            "largest_score_on_support": float(before.max()),
            "lowest_bad_score_before": float(old_bad.min()),
            "largest_change_on_support": float(np.abs(after - before).max()),
            "scores_on_support_bit_equal": same_scores,
            "loss_bit_equal": same_loss,
            "largest_phi_norm_before": old_norm,
            "largest_phi_norm_after": new_norm,
            "phi_norm_bound": norm_bound,
        },
    )


def positives_left_unordered(
    positive_logits: tuple[float, float],
    negative_logits: FloatArray,
    distances: tuple[float, float],
    weights: tuple[float, float] = (1.0, 1.0),
) -> TheoryCheck:
    """Claim: the binary loss does not say which of two positives is nearer.

    Two goals g1, g2 of the same (s, a) lie at distances d1 < d2 and both carry the label 1.
    Exchanging their scores leaves binary NCE bit-equal, and both orders separate the positives
    from the negatives, although only one of them agrees with γᵈ.

    The claim needs both positives to be drawn equally often. Where near goals are drawn more
    often than far ones (a geometric offset does that) their terms weigh more, the exchange
    changes the loss, and the check fails: the order is then identified through the frequencies.
    """
    negatives = np.asarray(negative_logits, dtype=float)
    labels = np.r_[1.0, 1.0, np.zeros(len(negatives))]
    weight = np.r_[weights, np.ones(len(negatives))]
    near, far = positive_logits
    loss = binary_nce(np.r_[near, far, negatives], labels, weight)
    swapped = binary_nce(np.r_[far, near, negatives], labels, weight)
    separated = min(positive_logits) > float(negatives.max())
    return TheoryCheck(
        claim="compatibility is not graded value",
        where="rem:positive-ordering",
        statement="Exchanging the scores of a near and a far positive leaves the binary loss "
        "bit-equal.",
        holds=swapped == loss and separated and near != far and distances[0] != distances[1],
        measured=swapped - loss,
        bound=0.0,
        details={
            "loss": loss,
            "swapped_loss": swapped,
            "distances": list(distances),
            "positive_logits": list(positive_logits),
            "weights": list(weights),
            "positives_above_negatives": separated,
        },
    )


def _all_pairs(function: TripleMap, points: StateActions, goals: FloatArray) -> FloatArray:
    """function(s_i, a_i, g_j) for all pairs: [n, m]."""
    n, m = len(points.states), len(goals)
    states, actions = np.repeat(points.states, m, axis=0), np.repeat(points.actions, m, axis=0)
    return np.asarray(function(states, actions, np.tile(goals, (n, 1))), dtype=float).reshape(n, m)


def _largest_norm(vectors: FloatArray) -> float:
    return float(np.linalg.norm(vectors, axis=-1).max())
