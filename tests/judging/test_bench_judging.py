"""The simulation behind docs/explanation/error-rates.md: its truths, and that a row comes out."""

from __future__ import annotations

import numpy as np
import pytest

from toptail.pools.builtin import builtin_pools
from validation.judging import WAYS, outcome, planned, wrong_under_looks
from validation.judging_cases import CANDIDATES, POPULATIONS, SCALED
from validation.judging_savings import savings


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


@pytest.mark.parametrize("make", SCALED)
def test_the_truth_where_headroom_differs_is_that_of_many_queries(make) -> None:  # type: ignore[no-untyped-def]
    population = make(0.8)
    table = population.table(30_000, np.random.default_rng(0))
    score, value = (
        column.reshape(-1, CANDIDATES) for column in (table.scores["score"], table.values["value"])
    )
    gain = value[np.arange(len(value)), score.argmax(axis=1)] - value.mean(axis=1)
    headroom = value.max(axis=1) - value.mean(axis=1)
    error = np.std(gain - population.captured * headroom) / headroom.mean() / np.sqrt(len(value))
    assert abs(gain.sum() / headroom.sum() - population.captured) < 4 * error


@pytest.mark.slow
def test_lower_ends_stay_below_the_truth_where_headroom_differs() -> None:
    """One of forty may lie above it; before the headroom's own sample counted, eight of 60 did."""
    found = outcome(SCALED[1](1.2), planned, None, 60, labels=320, queries=100)
    assert found.low_above <= 0.05
    assert found.covered >= 0.93


@pytest.mark.slow
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
