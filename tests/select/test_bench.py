"""The benchmarks of the choice: both sides measure the same, and the worlds are what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from toptail.select.base import ScoreRule
from toptail.select.choose import compare
from toptail.select.inputs import ChoiceSettings, choice_data
from toptail.select.selectors import Best, Filtered, RandomPick
from validation import choose_honesty
from validation.choose import _against_drawn_pools
from validation.choose_honesty import (
    WORLDS,
    Found,
    World,
    counted,
    line,
    one_table,
    true_value,
)

CURSED, *_ = WORLDS


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth from fewer queries, which is enough here."""
    monkeypatch.setattr(choose_honesty, "TRUTH", 20_000)
    choose_honesty._large.cache_clear()


def test_exact_values_are_those_of_drawn_pools() -> None:
    row = _against_drawn_pools(queries=3, candidates=32, draws=400)
    gap = re.search(r"largest gap ([\d.]+)", row.against)
    assert gap is not None
    assert float(gap[1]) < 0.06
    assert row.what.startswith("20 selectors")


@pytest.mark.slow
@pytest.mark.parametrize("world", [w for w in WORLDS if "equally" in w.name or "nothing" in w.name])
def test_no_selector_is_better_than_another(world: World) -> None:
    table = world.table(4_000, np.random.default_rng(0))
    trial = compare(choice_data(table), ChoiceSettings(), list(world.selectors))
    means = trial.totals.mean[1:]
    expected = [true_value(world, each) for each in trial.values.selectors[1:]]
    np.testing.assert_allclose(means, expected, atol=0.09)
    assert np.ptp(expected) < 0.02


@pytest.mark.parametrize("world", WORLDS[:2] + WORLDS[5:6], ids=lambda world: world.name)
def test_the_truth_is_the_mean_of_many_tables(world: World) -> None:
    """By tables with luck, one after the other, in place of one large table without."""
    best = Best(score=ScoreRule.of(next(iter(world.table(40, _rng()).scores))), k=8)
    rng, found = _rng(), []
    for _ in range(60):
        offered = choice_data(world.table(200, rng))
        trial = compare(offered, ChoiceSettings(resamples=100), [best])
        at = trial.values.selectors.index(best)
        found.append([*trial.totals.mean[[0, at]]])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    truth = [true_value(world, RandomPick()), true_value(world, best)]
    assert (np.abs(np.mean(found, axis=0) - truth) < 4 * error + 0.02).all()


def _rng() -> np.random.Generator:
    return np.random.default_rng(8)


def test_the_support_repairs_the_cursed_score() -> None:
    score = ScoreRule.of("cursed")
    plain = true_value(CURSED, Best(score=score, k=16))
    repaired = true_value(CURSED, Filtered(score=score, by="support", least=1.0, k=16))
    assert repaired > plain + 0.5


def test_a_table_gives_estimates_with_ends_and_the_truth() -> None:
    found = one_table(CURSED, 40, [1, 2, 3])
    for value, low, high, truth in (found.value, found.gain):
        assert low <= value <= high
        assert np.isfinite(truth)
    assert found == one_table(CURSED, 40, [1, 2, 3])


def test_misses_are_counted_on_their_sides() -> None:
    def table(truth: float) -> Found:
        return Found((0.5, 0.0, 1.0, truth), (0.0, 0.0, 0.0, 0.0), 0.1, 1.0, "best(s)")

    cell = counted(CURSED, 40, [table(x) for x in (-0.1, 0.0, 0.5, 1.0, 1.1, 1.2, 0.7, 0.2)])
    value, gain = cell["value"], cell["gain"]
    assert (value["coverage"], value["truth_below"], value["truth_above"]) == (0.625, 0.125, 0.25)
    assert gain["coverage"] == 1.0
    assert cell["deployed"] == {"best(s)": 1.0}


def test_the_stored_simulation_is_the_documented_one_and_holds_what_is_claimed() -> None:
    root = Path(__file__).parents[2]
    stored = json.loads((root / "validation" / "results" / "choose" / "coverage.json").read_text())
    documented = (root / "docs" / "explanation" / "error-rates.md").read_text(encoding="utf-8")
    sizes = [(cell["world"], cell["queries"]) for cell in stored["cells"]]
    assert sizes == [(world.name, n) for world in WORLDS for n in world.queries]
    for cell in stored["cells"]:
        assert line(cell) in documented
        assert min(cell[part]["coverage"] for part in ("value", "gain")) >= 0.93
    least = min(cell[part]["coverage"] for cell in stored["cells"] for part in ("value", "gain"))
    assert (
        f"| [choices](#choices): 95 % intervals | at most {100 * (1 - least):.1f} |" in documented
    )
