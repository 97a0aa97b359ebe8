"""Success rates of several seeds have the interval of all their episodes."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.audit.triples.bootstrap import seed_mean
from toptail.stats import wilson
from toptail_paper.grids.search import rate_estimate


@pytest.mark.parametrize("hits", [(59, 50, 59), (85, 51, 45), (1, 0, 2), (100, 100, 100)])
def test_the_interval_of_a_mean_over_seeds_is_that_of_all_episodes(
    hits: tuple[int, ...],
) -> None:
    rates = [rate_estimate(own, 100, seed, 2_000) for seed, own in enumerate(hits)]
    mean = seed_mean(rates)
    assert float(mean.point) == pytest.approx(np.mean(hits) / 100)
    found, pooled = mean.interval(0.95), wilson(sum(hits), 300)
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in pooled], atol=0.015)


@pytest.mark.parametrize("hits", [0, 7, 50, 100])
def test_one_seed_alone_has_about_wilsons_interval(hits: int) -> None:
    found, wanted = rate_estimate(hits, 100, 3, 1_000).interval(0.95), wilson(hits, 100)
    np.testing.assert_allclose([float(x) for x in found], [float(x) for x in wanted], atol=0.02)
