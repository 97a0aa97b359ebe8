"""When an ensemble may judge: noise is not admitted, a shared signal is."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from toptail.errors import InputError
from toptail.lab.judges.reference import admission, agreement, ensemble_value, resolved

Floats = NDArray[np.float64]
QUERIES, POOLS, SIZE = 60, 2, 64
GROUP = np.repeat(np.array(["near", "medium", "far"]), QUERIES // 3)
TRAJECTORY = np.arange(QUERIES) % 12


def members(signal: float, seed: int = 0, noise: float = 1.0) -> Floats:
    """Three members that share a signal and differ by independent noise."""
    rng = np.random.default_rng(seed)
    shared = signal * rng.normal(size=(QUERIES, POOLS, SIZE))
    offset = 50 * rng.normal(size=(3, QUERIES, POOLS, 1))  # a member's own level of a pool
    return shared + offset + noise * rng.normal(size=(3, QUERIES, POOLS, SIZE))


def decide(values: Floats, **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "prespecified_group": "near",
        "resolvability": 0.5,
        "spearman": 0.7,
        "rng": np.random.default_rng(0),
        "resamples": 200,
    }
    return admission(values, GROUP, TRAJECTORY, **(settings | changes))


def slow_resolved(pool: Floats) -> bool:
    """The rule, number by number, for ``[members, candidates]``."""
    m, n = pool.shape
    c = [[float(v) - sum(map(float, row)) / n for v in row] for row in pool]
    mean = [sum(c[k][i] for k in range(m)) / m for i in range(n)]
    shared = (sum((x - sum(mean) / n) ** 2 for x in mean) / n) ** 0.5
    between = sum(sum((c[k][i] - mean[i]) ** 2 for k in range(m)) / (m - 1) for i in range(n)) / n
    return bool(shared > between**0.5)


def test_both_measures_against_a_slow_version() -> None:
    values = members(0.8)  # near the edge: some pools are resolved, some are not
    found = resolved(values)
    expected = [[slow_resolved(values[:, q, p]) for p in range(POOLS)] for q in range(QUERIES)]
    assert found.tolist() == expected
    assert 0.1 < found.mean() < 0.9
    rho = agreement(values)
    for q, p in ((0, 0), (17, 1)):
        pairs = [
            spearmanr(values[a, q, p], values[b, q, p])[0] for a, b in combinations(range(3), 2)
        ]
        np.testing.assert_allclose(rho[q, p], np.mean(pairs))


def test_pure_noise_resolves_in_almost_no_pool() -> None:
    assert resolved(members(0.0)).mean() < 0.01
    result = decide(members(0.0))
    assert not result["admitted"]
    assert result["resolvability"]["status"] == result["agreement"]["status"] == "fail"
    assert "train them longer" in result["agreement"]["advice"]
    assert abs(result["agreement"]["value"]) < 0.1


def test_a_strong_shared_signal_resolves_in_almost_all() -> None:
    assert resolved(members(4.0)).mean() > 0.99
    result = decide(members(4.0))
    assert result["admitted"]
    assert result["resolvability"]["status"] == result["agreement"]["status"] == "pass"
    assert result["resolvability"]["threshold"] == 0.5


def test_a_members_level_and_a_constant_pool_say_nothing() -> None:
    values = members(1.0)
    shifted = values + 1000 * np.arange(3)[:, None, None, None]
    np.testing.assert_array_equal(resolved(values), resolved(shifted))
    flat = np.zeros((3, 2, 1, 5))
    assert not resolved(flat).any()
    assert np.isnan(agreement(flat)).all()


def test_only_the_prespecified_group_decides_on_resolvability() -> None:
    values, noise = members(4.0), members(0.0, seed=1)
    values[:, GROUP == "near"] = noise[:, GROUP == "near"]
    result = decide(values, spearman=0.5)
    assert result["by_group"]["far"]["resolvability"]["value"] > 0.9
    assert result["resolvability"]["value"] < 0.1
    assert result["agreement"]["status"] == "pass"
    assert not result["admitted"]
    assert decide(values, spearman=0.5, prespecified_group="far")["admitted"]


def test_intervals_cluster_by_trajectory() -> None:
    """Queries of one trajectory alike: twelve numbers, not sixty."""
    per_trajectory = members(4.0)[:, :12]
    per_trajectory[:, ::2] = members(0.0)[:, :12:2]
    values = per_trajectory[:, TRAJECTORY]
    result = decide(values)["agreement"]
    rho = agreement(per_trajectory).mean(axis=1)
    np.testing.assert_allclose(result["value"], rho.mean())
    half = 1.96 * rho.std() / np.sqrt(12)
    np.testing.assert_allclose((result["high"] - result["low"]) / 2, half, rtol=0.2)


def test_what_cannot_be_known_does_not_pass() -> None:
    flat = decide(np.zeros((3, QUERIES, POOLS, 4)))
    assert not flat["admitted"]
    assert flat["agreement"]["value"] is None
    assert flat["agreement"]["status"] == "inconclusive"
    one = admission(
        members(4.0),
        GROUP,
        np.zeros(QUERIES, dtype=np.int64),
        prespecified_group="near",
        resolvability=0.5,
        spearman=0.7,
        rng=np.random.default_rng(0),
    )
    assert one["agreement"]["low"] is None
    with pytest.raises(InputError, match="at least two"):
        resolved(members(1.0)[:1])
    with pytest.raises(InputError, match="prespecified group 'close'"):
        decide(members(1.0), prespecified_group="close")


def test_the_judges_value_is_the_mean() -> None:
    values = np.array([[1.0, 2.0], [3.0, 6.0]], dtype=np.float32)
    assert ensemble_value(values).tolist() == [2.0, 4.0]
