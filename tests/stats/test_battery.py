"""Every public statistic is classified, and passes the checks of its class."""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest

import toptail.stats as stats

K = [1, 2, 5]
ROWS = {  # functions of (scores [m, n], values [m, n]) that return one row of numbers per query
    "best_of_k": lambda s, v: stats.best_of_k(s, v, K),
    "decile_means": lambda s, v: stats.decile_means(s, v),
    "kendall_tau_b": lambda s, v: stats.kendall_tau_b(s, v)[:, None],
    "recall_at_k": lambda s, v: stats.recall_at_k(s, v.argmax(axis=1), 2)[:, None],
    "row_auc": lambda s, v: stats.row_auc(s, v > 0)[:, None],
    "spearman": lambda s, v: stats.spearman(s, v)[:, None],
}
ONE_NUMBER = {"auc"}
VALUES_ONLY = {"oracle", "split_oracle", "decile_gap", "paired_win_rate", "normalized_regret"}
UNCERTAINTY = {
    *("Band", "bootstrap_p", "bootstrap_sums", "cluster_sums", "holm", "max_t_band"),
    *("percentile_interval", "weighted_sums", "wilson"),
    *("Shares", "Unseen", "shares", "unseen_cluster"),
}
CLOSED_FORM = {"divergence_bound", "extreme_weights", "rare_share", "selection_weights"}


def test_nothing_is_unclassified() -> None:
    assert set(stats.__all__) == {
        *ROWS,
        *ONE_NUMBER,
        *VALUES_ONLY,
        *UNCERTAINTY,
        *CLOSED_FORM,
    }


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(6, 11)), rng.normal(size=(6, 11))


@pytest.mark.parametrize("name", ROWS)
def test_increasing_map_changes_nothing(name: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    s, v = data
    np.testing.assert_allclose(ROWS[name](np.exp(s) * 1e100, v), ROWS[name](s, v), atol=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_candidate_order_changes_nothing(name: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    s, v = data
    order = np.random.default_rng(0).permutation(s.shape[1])
    np.testing.assert_allclose(ROWS[name](s[:, order], v[:, order]), ROWS[name](s, v), atol=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_queries_do_not_touch_each_other(name: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    s, v = data
    alone = np.concatenate([ROWS[name](s[i : i + 1], v[i : i + 1]) for i in range(len(s))])
    np.testing.assert_allclose(ROWS[name](s, v), alone, atol=1e-12)


@pytest.mark.parametrize("name", ROWS)
def test_nan_scores_never_look_fine(name: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    s, v = data
    s = s.copy()
    s[2, 3] = np.nan
    result = ROWS[name](s, v)
    assert np.isnan(result[2]).all()
    assert np.isfinite(np.delete(result, 2, axis=0)).all()


@pytest.mark.parametrize("name", ROWS)
def test_a_reversed_score_is_told_from_a_right_one(
    name: str, data: tuple[np.ndarray, np.ndarray]
) -> None:
    _, v = data
    right, wrong = ROWS[name](v, v), ROWS[name](-v, v)
    assert right[:, -1].mean() > wrong[:, -1].mean() + 0.1


def test_examples_in_the_docstrings_hold() -> None:
    tried = 0
    for module in iter_modules(stats.__path__):
        result = doctest.testmod(import_module(f"toptail.stats.{module.name}"))
        assert result.failed == 0
        tried += result.attempted
    assert tried >= 6
