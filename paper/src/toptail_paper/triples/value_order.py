"""Whether a score behaves like a value: calibration, Bellman consistency, and order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from toptail.errors import InputError
from toptail.pools.columns import split_seed
from toptail.stats import decile_means, spearman
from toptail.stats.best_of_k import Floats, Ints
from toptail.stats.resample import Estimate
from toptail_paper.triples.bootstrap import TrajectoryBootstrap
from toptail_paper.triples.scored import ScoredTriples


def calibration(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap, bins: int = 10
) -> Estimate:
    r"""Mean return-to-go in each tenth of the scores, lowest scores first ``[bins]``.

    .. math:: m_b = \operatorname{mean}\{\gamma^{d_i} : f_i \text{ in the } b\text{-th tenth}\}

    The tenths are formed again in each resample; tied scores are split evenly. A calibrated
    score rises from left to right.
    """
    scores, value = bootstrap.column(triples, "scores", column), triples.value
    return bootstrap.each(lambda rows: decile_means(scores[rows], value[rows], bins))


def calibration_gap(deciles: Estimate) -> Estimate:
    r"""Top less bottom tenth of :func:`calibration`, :math:`\Delta\gamma^d = m_{10} - m_1`.

    Larger is better; 0 for a score whose tail means nothing, negative for an inverted one.
    """
    return deciles[-1] - deciles[0]


@dataclass(frozen=True)
class BellmanConsistency:
    """Two normalized errors of the one-step residual δ; lower is better for both."""

    rmse: Estimate
    """RMSE(δ)/std(f); depends on the score's arbitrary offset."""
    std: Estimate
    """std(δ)/std(f): does not change when a constant is added to the score."""


def bellman_consistency(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> BellmanConsistency:
    r"""Normalized error of the Bellman recursion along the recorded actions, for d >= 2.

    .. math:: \delta = f(s_t, a_t, g) - r - \gamma f(s_{t+1}, a_{t+1}, g), \qquad
              \frac{\operatorname{RMSE}(\delta)}{\operatorname{std}(f)},\quad
              \frac{\operatorname{std}(\delta)}{\operatorname{std}(f)}

    with r the critic's own reward of a step that misses the goal: 0 for contrastive scores
    and 0/1 critics, -1 for -1/0 critics. Standard deviations are over the same triples with
    divisor n. Lower is better; an exact return-to-go (γ^d, or -(1 - γ^d)/(1 - γ)) gives 0.
    NaN for a constant score, which has no scale.
    """
    keep = triples.distance >= 2
    if not keep.any():
        raise InputError(
            f"{triples.source}: no triple has a goal two or more steps away, which the Bellman "
            "residual needs; draw triples with longer offsets."
        )
    score = bootstrap.column(triples, "scores", column)
    following = bootstrap.column(triples, "next_scores", column)
    reward = triples.step_reward[split_seed(column)[0]]
    # Next scores of triples with d = 1 may be anything: they are never looked at.
    residual = np.where(keep, score - reward - triples.gamma * np.where(keep, following, 0.0), 0.0)

    def errors(rows: Ints) -> Floats:
        f, delta = score[rows], residual[rows]
        spread = f.std() if f.max() > f.min() else np.nan
        return np.array([np.sqrt((delta**2).mean()), delta.std()]) / spread

    both = bootstrap.each(errors, keep)
    return BellmanConsistency(both[0], both[1])


def ordering(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap, judge: str | None = None
) -> Estimate:
    r"""Kendall's tau_b between a deployed score and the return-to-go γ^d of its triple.

    .. math:: \tau_b = \frac{C - D}{\sqrt{(n_0 - n_f)(n_0 - n_\gamma)}}

    over all :math:`n_0 = n(n-1)/2` pairs of triples, with C concordant and D discordant
    ones, :math:`n_f` tied in score and :math:`n_\gamma` tied in distance. In [-1, 1]; larger
    is better; 0 is no order. NaN for a constant score. With a ``judge``, its value of the triples
    stands in place of γ^d.
    """
    value = triples.value if judge is None else bootstrap.column(triples, "values", judge)
    return tau_b(bootstrap.column(triples, "scores", column), value, bootstrap)


def readout_ordering(
    triples: ScoredTriples, column: str, bootstrap: TrajectoryBootstrap
) -> Estimate:
    """:func:`ordering` of another readout (``raw:cosine@42``, ``raw:norm@42``) of a scorer.

    The same embeddings read in several ways tell what training did from what reading does.
    Larger is better.
    """
    return tau_b(bootstrap.column(triples, "readouts", column), triples.value, bootstrap)


def centered_ordering(
    triples: ScoredTriples, column: str, query_means: ArrayLike, bootstrap: TrajectoryBootstrap
) -> Estimate:
    r"""Kendall's tau_b of the score less its query's mean with γ^d.

    .. math:: \tau_b\big(f(s,a,g) - \bar f(s,g),\ \gamma^d\big), \qquad
              \bar f(s,g) = \frac{1}{M} \sum_{i=1}^{M} f(s, a_i, g),\quad a_i \sim \pi(a|s,g)

    ``query_means [n]`` are the means over actions of a behaviour model at the same (s, g).
    What is left of :func:`ordering` does not come from differences between queries. Near 0
    when the order was one of queries; larger is better.
    """
    means = np.asarray(query_means, dtype=np.float64)
    if means.shape != triples.trajectory.shape:
        raise InputError(
            f"{triples.source}: the mean scores of queries have shape {means.shape}, expected one "
            f"for each of {len(triples)} triples."
        )
    return tau_b(bootstrap.column(triples, "scores", column) - means, triples.value, bootstrap)


def agreement(triples: ScoredTriples, judge: str, bootstrap: TrajectoryBootstrap) -> Estimate:
    """Spearman's rho between γ^d and another judge's value of the same triples.

    In [-1, 1]; 1 says that both order the triples alike, so that regret against one is regret
    against the other. NaN where the judge does not vary.
    """
    proxy, value = triples.value, bootstrap.column(triples, "values", judge)
    return bootstrap.each(lambda rows: spearman(proxy[rows], value[rows]))


def value_agreement(
    triples: ScoredTriples, judge: str, other: str, bootstrap: TrajectoryBootstrap
) -> Estimate:
    """Spearman's rho between two judges' values of the same triples: see :func:`agreement`."""
    one, two = (bootstrap.column(triples, "values", name) for name in (judge, other))
    return bootstrap.each(lambda rows: spearman(one[rows], two[rows]))


def tau_b(x: Floats, y: Floats, bootstrap: TrajectoryBootstrap) -> Estimate:
    r"""Kendall's tau_b of ``x [n]`` and ``y [n]``, exactly, on every resample.

    Numerator and both factors of the denominator are sums over pairs of triples:
    sign(x_i - x_j) sign(y_i - y_j), and [x_i ≠ x_j], and [y_i ≠ y_j]. Their sums over pairs
    of trajectories are taken once (n² comparisons); a resample is then a quadratic form.
    A triple drawn twice is tied with itself in both, which tau_b does not count.
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return Estimate(np.full((), np.nan), np.full(len(bootstrap.times), np.nan))
    order = np.argsort(bootstrap.code, kind="stable")
    x, y, code = x[order], y[order], bootstrap.code[order]
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    forms = np.empty((3, bootstrap.clusters, bootstrap.clusters))
    for cluster, mine in enumerate(np.split(np.arange(x.size), starts[1:])):
        x_sign, y_sign = _signs(x[mine], x), _signs(y[mine], y)
        for form, pairs in zip(forms, (x_sign * y_sign, x_sign != 0, y_sign != 0), strict=True):
            form[cluster] = np.add.reduceat(pairs.sum(axis=0, dtype=np.int64), starts)
    agree, x_differ, y_differ = (bootstrap.pairs(form) for form in forms)

    def ratio(a: Floats, b: Floats, c: Floats) -> Floats:
        spread = np.sqrt(b * c)
        return np.asarray(np.clip(a / np.where(spread > 0, spread, np.nan), -1.0, 1.0))

    return Estimate(
        ratio(agree.point, x_differ.point, y_differ.point),
        ratio(agree.draws, x_differ.draws, y_differ.draws),
    )


def _signs(a: Floats, b: Floats) -> NDArray[np.int8]:
    """sign(a_i - b_j) ``[len(a), len(b)]``; comparisons, since differences may overflow."""
    return (a[:, None] > b).astype(np.int8) - (a[:, None] < b).astype(np.int8)
