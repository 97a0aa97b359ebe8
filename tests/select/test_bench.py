"""The benchmarks of the choice: both sides measure the same, and the worlds are what they say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from toptail.bench.choose import _against_drawn_pools
from toptail.bench.choose_honesty import WORLDS, World, bench_honesty, one_table
from toptail.select.read import read_options
from toptail.select.trial import ChoiceSettings, trial_of


def test_exact_values_are_those_of_drawn_pools() -> None:
    row = _against_drawn_pools(queries=3, candidates=32, draws=400)
    gap = re.search(r"largest gap ([\d.]+)", row.against)
    assert gap is not None
    assert float(gap[1]) < 0.06
    assert row.what.startswith("20 selectors")


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_no_selector_is_better_than_another(world: World) -> None:
    rng = np.random.default_rng(0)
    labels = None if world.labels is None else 4_000 * world.labels // world.queries
    large = World(**{**vars(world), "queries": 4_000, "labels": labels})
    trial = trial_of(read_options(large.table(rng), {}), ChoiceSettings(), list(world.selectors))
    means = trial.contest.sums.sum(axis=0) / trial.contest.counts.sum()
    found = means[1:] if world.slope else means
    np.testing.assert_allclose(found, world.truth(), atol=0.09)


def test_a_table_gives_an_honest_and_a_naive_value() -> None:
    value, low, high, naive, naive_low, naive_high = one_table(WORLDS[0], [1, 2, 3])
    assert low < value < high
    assert naive_low < naive < naive_high
    assert naive > value


def test_the_rows_say_how_often_the_truth_was_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toptail.bench.choose_honesty.WORLDS", WORLDS[-1:])
    (row,) = bench_honesty(3)
    assert re.search(r"holds the truth in [\d.]+% of 3 tables", row.result)
    assert "too high" in row.against
