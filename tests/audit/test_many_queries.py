"""Intervals of very many queries: random groups of them say what all of them would."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from toptail import audit
from toptail.stats.resample import Sample, merged


@pytest.fixture
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 400 clusters are many, and make 200 groups."""
    module = import_module("toptail.stats.resample")
    monkeypatch.setattr(module, "MANY", 400)
    monkeypatch.setattr(module, "GROUPS", 200)


def test_groups_are_even_and_hold_every_cluster_once() -> None:
    sums = np.arange(1_000.0)[:, None] * [1.0, -2.0] + [0.0, 5.0]
    groups = merged(sums, np.random.default_rng(0), 64)
    assert groups.shape == (64, 2)
    np.testing.assert_allclose(groups.sum(axis=0), sums.sum(axis=0))
    ones = merged(np.ones((1_000, 1)), np.random.default_rng(0), 64)[:, 0]
    assert set(ones) == {15.0, 16.0}


def interval(per_query: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """The 95 % interval of a mean over queries."""
    sample = Sample(len(per_query), None)
    sample.add("x", per_query)
    sample.weigh(rng, 400)
    low, high = sample.mean("x").interval(0.95)
    return float(low[0]), float(high[0])


@pytest.mark.usefixtures("_few")
def test_the_cheap_interval_covers_as_the_full_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 skewed tables, the share of intervals that hold the truth, and their widths."""
    rng = np.random.default_rng(0)
    tables = [rng.exponential(size=1_000) for _ in range(600)]
    cheap = np.array([interval(table, rng) for table in tables])
    monkeypatch.setattr(import_module("toptail.stats.resample"), "MANY", 10_000)
    full = np.array([interval(table, rng) for table in tables])
    held = [((ends[:, 0] <= 1.0) & (ends[:, 1] >= 1.0)).mean() for ends in (cheap, full)]
    # Two standard errors of a share of 600 are 0.018.
    assert min(held) > 0.92
    assert abs(held[0] - held[1]) < 0.02
    widths = np.diff(cheap)[:, 0] / np.diff(full)[:, 0]
    assert widths.mean() == pytest.approx(1.0, abs=0.02)


@pytest.mark.usefixtures("_few")
def test_an_audit_of_many_queries_says_what_the_full_one_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    value = rng.random((2_000, 4))
    table = {"good": value + 0.2 * rng.random(value.shape), "value": value}
    cheap = audit(table, resamples=400).to_dict()["scorers"]["good"]
    monkeypatch.setattr(import_module("toptail.stats.resample"), "MANY", 10_000)
    full = audit(table, resamples=400).to_dict()["scorers"]["good"]
    assert cheap["value"] == full["value"]
    assert cheap["verdict"]["status"] == full["verdict"]["status"] == "safe"
    widths = [entry["gain"]["high"][-1] - entry["gain"]["low"][-1] for entry in (cheap, full)]
    assert widths[0] == pytest.approx(widths[1], rel=0.2)
    assert cheap["low"] != full["low"]
