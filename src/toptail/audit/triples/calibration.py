"""Calibration: what a triple of the d-th tenth of the scores is worth."""

from __future__ import annotations

from toptail.audit.sample import Estimate
from toptail.audit.triples.bootstrap import TrajectoryBootstrap
from toptail.pools.triples import ScoredTriples
from toptail.stats import decile_means


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
