"""Losses, gradients and readouts of the full-size critics against slow NumPy versions."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from tests.critics import slow_full as slow
from tests.critics.contract import gradient_gap
from tests.critics.facts import SUBJECTS, facts
from tests.critics.full_cases import (
    SLOW,
    Case,
    case,
    double,
    flat,
    make,
    pool,
    quick_jit,
    random_batch,
    slow_rows,
)


@pytest.fixture(scope="module", params=SUBJECTS)
def name(request: pytest.FixtureRequest) -> str:
    """Of the module, so that a critic's tests follow each other: they share compiled functions."""
    return str(request.param)


def test_loss_and_info(name: str) -> None:
    c, batch = case(name, False), random_batch(further=facts()[name].further)
    wide = double(c.params)
    expected = facts()[name].slow_loss(wide, wide, slow_rows(batch), SLOW)
    got, _ = c.gradient(c.params, batch)
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_gradient(name: str) -> None:
    batch = random_batch(further=facts()[name].further)
    assert gradient_gap(case(name, False), facts()[name].slow_loss, batch) < 1e-4


@pytest.mark.slow
def test_bfloat16_stays_near_float32(name: str) -> None:
    full, half = case(name, False), case(name, True)
    batch = random_batch(further=facts()[name].further)
    loss, grads = full.gradient(full.params, batch)
    half_loss, half_grads = half.gradient(full.params, batch)
    assert half_loss["loss"] == pytest.approx(loss["loss"], rel=0.02)
    assert half_loss["loss"] != loss["loss"]  # the setting does something
    error = np.linalg.norm(flat(half_grads) - flat(grads)) / np.linalg.norm(flat(grads))
    # The order of interval ends, which decides the gradient of a quasimetric, is rounded, too.
    assert 0 < error < (0.2 if name == "quasimetric" else 0.05)


@pytest.mark.parametrize(("name", "contrast"), [("raw", "symmetric_info_nce"), ("cosine", "both")])
def test_other_contrast_and_learned_temperature(name: str, contrast: str) -> None:
    settings = {"contrast": "symmetric_info_nce", "learn_temperature": contrast == "both"}
    c, batch = Case(make(name, **settings)), random_batch()
    c.params.update({"log_temperature": np.float32(-1.5)} if contrast == "both" else {})
    wide = double(c.params)
    chosen = slow.Settings(contrast="symmetric_info_nce")
    expected = facts()[name].slow_loss(wide, wide, slow_rows(batch), chosen)
    got, grads = c.gradient(c.params, batch)
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert ("log_temperature" in grads) == (contrast == "both")


def test_drawn_negatives() -> None:
    """Each draw of 2 of 5 offsets is equally likely, and no draw has another loss.

    The losses of all ten pairs of offsets are computed slowly; which pair a key drew is read off
    the loss. Their mean is the loss over all pairs: the estimate is unbiased. Permuting the
    batch changes which goals an offset leads to, so permutation can hold only on average.
    """
    critic, batch = make("nce_mlp", negatives=2), random_batch(size=6)
    params = case("nce_mlp", False).params
    wide, rows = double(params), slow_rows(batch)
    draws = list(itertools.combinations(range(1, 6), 2))
    expected = np.array([slow.sampled_nce(wide, rows, SLOW, draw) for draw in draws])
    assert np.diff(np.sort(expected)).min() > 1e-4  # so that a loss names its draw
    full = facts()["nce_mlp"].slow_loss(wide, wide, rows, SLOW)["loss"]
    assert expected.mean() == pytest.approx(full)

    keys = jax.random.split(jax.random.key(7), 2000)
    losses = quick_jit(jax.vmap(lambda key: critic.loss(params, batch, key)[0]))(keys)
    distance = np.abs(np.asarray(losses)[:, None] - expected)
    assert distance.min(axis=1).max() < 2e-5
    assert chisquare(np.bincount(distance.argmin(axis=1), minlength=10)).pvalue > 1e-3

    mixed = jax.tree.map(lambda x: x[np.array([3, 1, 5, 0, 2, 4])], batch)
    permuted = quick_jit(jax.vmap(lambda key: critic.loss(params, mixed, key)[0]))(keys)
    error = np.std(expected) * np.sqrt(2 / len(keys))
    assert abs(np.mean(permuted) - np.mean(losses)) < 4 * error


def test_readouts(name: str) -> None:
    """Leading axes [2, 3]: two queries with one state and goal each, three candidates."""
    c, batch = case(name, False), random_batch(size=6)
    s, actions, g = pool(batch)
    got = c.read(c.params, s, actions, g)
    repeated = [np.repeat(np.asarray(x[:, 0], np.float64), 3, axis=0) for x in (s, g)]
    rows = np.asarray(batch.actions, np.float64)
    expected = facts()[name].slow_reads(double(c.params), repeated[0], rows, repeated[1])
    assert set(got) == set(expected)
    for label, scores in expected.items():
        np.testing.assert_allclose(got[label], scores.reshape(2, 3), rtol=2e-5, atol=2e-5)
