"""Claims about what best-of-K search makes of a score."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from scipy.stats import binomtest

from toptail_paper.controlled.theory.support import FloatArray, TheoryCheck


def pick_in_bad_probability(p: float, k: ArrayLike) -> FloatArray:
    """Pr(pick in B) = 1 − (1 − p)ᴷ, when every candidate of B outscores all others."""
    return 1.0 - (1.0 - p) ** np.asarray(k, dtype=float)


def regret_lower_bound(p: float, k: ArrayLike, gap: float) -> FloatArray:
    """(1 − pᴷ − (1 − p)ᴷ)·gap: expected regret is at least this; gap = q_good − q_bad."""
    count = np.asarray(k, dtype=float)
    return (1.0 - p**count - (1.0 - p) ** count) * gap


@dataclass(frozen=True)
class TwoSetWorld:
    """The proposition's world: i.i.d. candidates, a good set A and a bad set B."""

    p: float = 0.05
    """Proposal mass of the bad set B."""
    q_good: float = 0.0
    """Lowest value of a candidate in A."""
    q_bad: float = -1.0
    """Value of every candidate in B."""
    spread: float = 0.5
    """Values in A are uniform in [q_good, q_good + spread]."""
    in_support_low: float = -0.9
    """Score of the lowest value in A; scores rise linearly with the value (order preserved)."""
    in_support_high: float = 0.5
    """Score of the highest value in A."""
    bad_score: float = 0.9
    """M, the score of every candidate in B."""

    def pools(
        self, n: int, k: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Draw n pools of k candidates: in B or not, values and scores, each [n, k]."""
        in_bad = rng.random((n, k)) < self.p
        rank = rng.random((n, k))
        values = np.where(in_bad, self.q_bad, self.q_good + self.spread * rank)
        span = self.in_support_high - self.in_support_low
        scores = np.where(in_bad, self.bad_score, self.in_support_low + span * rank)
        return in_bad, values, scores


def good_ranker_bad_objective(
    world: TwoSetWorld,
    ks: tuple[int, ...],
    pools: int,
    rng: np.random.Generator,
    level: float = 0.999,
) -> TheoryCheck:
    """Claim: a critic that ranks the support perfectly is unsafe once B outscores it.

    Candidates are i.i.d., B has mass p, Q ≥ q_good off B and Q = q_bad on B, and every score on
    B exceeds every score elsewhere. Then Pr(pick in B) = 1 − (1−p)ᴷ and
    E[regret] ≥ (1 − pᴷ − (1−p)ᴷ)(q_good − q_bad). For each K the simulated share must have the
    formula inside its exact binomial interval and the simulated mean regret must not lie below
    the bound by more than its standard error allows. The intervals hold jointly over all K
    (Bonferroni).
    """
    gap = world.q_good - world.q_bad
    expected, bound = pick_in_bad_probability(world.p, ks), regret_lower_bound(world.p, ks, gap)
    joint = 1.0 - (1.0 - level) / (2 * len(ks))
    rows = [_simulate(world, k, pools, joint, rng) for k in ks]
    holds = all(
        row["share_low"] <= share <= row["share_high"] and row["regret_high"] >= regret
        for row, share, regret in zip(rows, expected, bound, strict=True)
    )
    ends = ("", "_low", "_high")
    return TheoryCheck(
        claim="good ranker, bad objective",
        where="prop:good-ranker-bad-obj",
        statement="With a bad set of mass p on top of the scores, the pick lies in it with "
        "probability 1 − (1 − p)^K and expected regret reaches the value gap.",
        holds=holds,
        measured=rows[-1]["share"],
        bound=float(expected[-1]),
        details={
            "world": asdict(world),
            "k": list(ks),
            "pools": pools,
            "level": level,
            **{f"share{end}": [row[f"share{end}"] for row in rows] for end in ends},
            "share_expected": expected.tolist(),
            **{f"regret{end}": [row[f"regret{end}"] for row in rows] for end in ends},
            "regret_bound": bound.tolist(),
        },
    )


def boundedness_is_not_calibration(
    cap: float, delta: float, p: float, ks: tuple[int, ...], pools: int, rng: np.random.Generator
) -> TheoryCheck:
    """Claim: a cap on the score does not help once the bad set reaches it.

    All scores lie in [−cap, cap] (cosine: cap = 1), B scores exactly the cap and every other
    candidate at most cap − delta, with delta > 0. The conclusions of "good ranker, bad
    objective" follow unchanged. With delta ≤ 0 other candidates reach past the bad set, and the
    check fails.
    """
    world = TwoSetWorld(p=p, in_support_low=-cap, in_support_high=cap - delta, bad_score=cap)
    check = good_ranker_bad_objective(world, ks, pools, rng)
    largest = max(abs(world.in_support_low), abs(world.in_support_high), abs(world.bad_score))
    return replace(
        check,
        claim="boundedness is not calibration",
        where="cor:bounded",
        statement=f"Scores capped at {cap:g} fail in the same way when the bad set is at the cap.",
        holds=check.holds and largest <= cap,
        details=dict(check.details) | {"cap": cap, "delta": delta, "largest_score": largest},
    )


def within_epsilon(
    values: FloatArray, epsilon: ArrayLike, trials: int, rng: np.random.Generator
) -> FloatArray:
    """Scores that miss the values by at most epsilon: [trials, pools, k].

    The first half of the trials misses uniformly in [−epsilon, epsilon], the second half by
    exactly plus or minus epsilon, which is where the bound could break.
    """
    noise = rng.uniform(-1.0, 1.0, (trials, *values.shape))
    noise[trials // 2 :] = np.sign(noise[trials // 2 :])
    return values + np.asarray(epsilon, dtype=float)[..., None] * noise


def adversarial_within_epsilon(values: FloatArray, epsilon: float) -> FloatArray:
    """Find the worst scores within epsilon of the values: [pools, k].

    In each pool the worst candidate less than 2·epsilon below the best is raised by epsilon and
    all others are lowered by epsilon. That candidate then wins, and no admissible score can make
    a lower one win.
    """
    gap = values.max(axis=-1, keepdims=True) - values
    target = np.where(gap < 2.0 * epsilon, gap, -1.0).argmax(axis=-1)
    scores = values - epsilon
    rows = np.arange(len(values))
    scores[rows, target] = values[rows, target] + epsilon
    return scores


def two_epsilon_bound(values: FloatArray, scores: FloatArray, epsilon: ArrayLike) -> TheoryCheck:
    """Claim: scores within epsilon of the value on the searched pool cost at most 2·epsilon.

    If |f(a) − Q(a)| ≤ epsilon for every candidate a of the pool, then Regret_K ≤ 2·epsilon. The
    bound is checked in every pool of every trial. `values` is [pools, k], `scores` is
    [..., pools, k], `epsilon` one number or one per pool.
    """
    eps = np.broadcast_to(np.asarray(epsilon, dtype=float), values.shape[:1])
    error = np.abs(scores - values).max(axis=-1)
    regret = pick_regret(values, scores)
    share_of_bound = regret / np.where(eps > 0.0, 2.0 * eps, 1.0)
    return TheoryCheck(
        claim="two-epsilon bound",
        where="rem:sufficient",
        statement="Scores within ε of the value everywhere in the pool cost at most 2ε.",
        # f = Q ± ε is itself rounded, so the comparison allows that rounding and no more.
        holds=bool((regret <= 2.0 * eps + 1e-12 * (1.0 + np.abs(values).max())).all()),
        measured=float(share_of_bound.max()),
        bound=1.0,
        details={
            "unit": "regret as a share of 2ε, the largest over all pools",
            "pools": int(regret.size),
            "largest_regret": float(regret.max()),
            "largest_epsilon": float(eps.max()),
            "largest_error": float(error.max()),
            "premise_holds": bool((error <= eps + 1e-12).all()),
        },
    )


def two_epsilon_is_tight(values: FloatArray, epsilon: float, share: float = 0.95) -> TheoryCheck:
    """Claim (ours): the factor 2 cannot be lowered; an adversary within epsilon nearly attains it.

    The adversarial scores of `adversarial_within_epsilon` must stay within epsilon of the values,
    keep the 2·epsilon bound, and reach at least `share` of it in some pool. Pools whose candidates
    lie far apart compared with epsilon cannot show it.
    """
    bound = two_epsilon_bound(values, adversarial_within_epsilon(values, epsilon), epsilon)
    return replace(
        bound,
        claim="two-epsilon bound is tight",
        statement="An adversary within ε of the value makes best-of-K lose nearly 2ε.",
        holds=bound.holds and bool(bound.details["premise_holds"]) and bound.measured >= share,
        bound=share,
    )


def pick_regret(values: FloatArray, scores: FloatArray) -> FloatArray:
    """Value of the best candidate minus value of the highest-scored one: [..., pools]."""
    pick = scores.argmax(axis=-1)[..., None]
    picked = np.take_along_axis(np.broadcast_to(values, scores.shape), pick, axis=-1)[..., 0]
    regret: FloatArray = values.max(axis=-1) - picked
    return regret


def _simulate(
    world: TwoSetWorld, k: int, pools: int, level: float, rng: np.random.Generator
) -> dict[str, float]:
    """Share of picks in B and mean regret over simulated pools, with two-sided intervals."""
    in_bad, values, scores = world.pools(pools, k, rng)
    pick = scores.argmax(axis=-1)
    hits = int(in_bad[np.arange(pools), pick].sum())
    interval = binomtest(hits, pools).proportion_ci(level)
    regret = pick_regret(values, scores)
    half = float(ndtri(0.5 + level / 2) * regret.std(ddof=1) / math.sqrt(pools))
    mean = float(regret.mean())
    return {
        "share": hits / pools,
        "share_low": float(interval.low),
        "share_high": float(interval.high),
        "regret": mean,
        "regret_low": mean - half,
        "regret_high": mean + half,
    }
