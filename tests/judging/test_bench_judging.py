"""The simulation behind docs/judging.md: its truths, and that a row comes out."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.bench.judging import WAYS, outcome, wrong_under_looks
from toptail.bench.judging_cases import POPULATIONS
from toptail.bench.judging_savings import savings
from toptail.pools.builtin import builtin_pools


@pytest.mark.parametrize("make", POPULATIONS)
def test_the_truth_is_what_the_name_says(make) -> None:  # type: ignore[no-untyped-def]
    population = make()
    worst = population.truth().min()
    if "ρ" in population.name:
        assert worst == pytest.approx(-0.10)
    elif "δ" in population.name:
        assert worst == pytest.approx(-0.02)
    else:
        assert population.captured == pytest.approx(0.0, abs=1e-9)


def test_every_way_runs_and_a_good_cheap_judge_narrows() -> None:
    population = POPULATIONS[4]()
    found = {name: outcome(population, way, cheap, 3) for name, way, cheap in WAYS}
    assert all(np.isfinite(each.half_width) for each in found.values())
    assert found["planned, good cheap judge"].half_width < found["planned"].half_width
    assert wrong_under_looks(population, 1, looks=2) in (0.0, 1.0)


def test_labels_for_a_half_width_lie_between_those_tried() -> None:
    pools = builtin_pools(80, 16)
    measured = savings(pools, [400, 800], seeds=1)
    full, found = measured.half_width, measured.ways
    assert [each.way for each in found] == ["whole queries", "at random", "planned"]
    planned = found[2]
    middle = float(np.sqrt(planned.half_width[0] * planned.half_width[1]))
    assert planned.labels[0] < planned.needed(middle) < planned.labels[1]
    assert np.isnan(planned.needed(full / 10))
