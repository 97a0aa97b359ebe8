"""The contract that every full-size critic has to keep, in float32 and in bfloat16.

Losses, gradients and readouts are those of slow NumPy versions. All of it is one module, whose
tests share compiled functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from tests.critics import slow_full as slow
from tests.critics.facts import ENCODERS, SUBJECTS, Facts, facts
from tests.critics.full_cases import (
    BATCH,
    DIMS,
    KEY,
    SLOW,
    Case,
    case,
    double,
    flat,
    gradient_gap,
    make,
    no_promotion,
    pool,
    quick_jit,
    random_batch,
    slow_rows,
    target_source,
)
from toptail.lab.critics.base import FROZEN, Batch, TrainedCritic, parameter_count
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.registry import full_size
from toptail.lab.training.checkpoints import load_params, save_params
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, train_step


@pytest.mark.parametrize(("reward", "width"), [("-1/0", 50.0), ("0/1", 1.0)])
def test_a_cosine_is_added_to_a_value_in_the_units_of_the_value(
    reward: Literal["-1/0", "0/1"], width: float
) -> None:
    """The sum less the value is alpha f_cos times the range of returns with that reward."""
    critic = full_size("hybrid", reward=reward, gamma=0.98, alpha=0.5, hidden=(8,), embed_dim=4)
    params, batch = critic.init(KEY, *DIMS), random_batch()
    at = (batch.states, batch.actions, batch.goals)
    readouts = critic.readouts()
    read = quick_jit(lambda *rows: {name: of(params, *rows) for name, of in readouts.items()})(*at)
    expected = read["q_td"] + 0.5 * width * read["f_cos"]
    np.testing.assert_allclose(read["q_hybrid"], expected, rtol=1e-4, atol=1e-4)
    assert critic.settings()["td_weight"] == pytest.approx(width**-2)


HALF = ("tdq", "raw", "hybrid")
"""Critics that are tested in bfloat16, too: between them they have every kind of network."""
CASES = [*((name, False) for name in SUBJECTS), *((name, True) for name in HALF)]


@pytest.fixture(
    scope="module", params=CASES, ids=[f"{n}-{'bfloat16' if h else 'float32'}" for n, h in CASES]
)
def c(request: pytest.FixtureRequest) -> Case:
    return case(*request.param)


def classified(c: Case) -> Facts:
    return facts()[c.critic.name]


def test_names(c: Case) -> None:
    assert c.critic.deployed == classified(c).deployed
    assert c.critic.deployed in c.critic.readouts()
    assert isinstance(c.critic, EmbeddingCritic) == classified(c).embeds
    assert ("target" in c.params) == classified(c).target


def rows_of(c: Case, **how: Any) -> Batch:
    return random_batch(**how, further=classified(c).further)


def zeros(c: Case) -> Batch:
    nothing: Batch = jax.tree.map(jnp.zeros_like, rows_of(c))
    return nothing._replace(rewards=-jnp.ones(BATCH), masks=jnp.ones(BATCH))


def huge(c: Case) -> Batch:
    return rows_of(c, scale=1e3)


def identical(c: Case) -> Batch:
    same: Batch = jax.tree.map(lambda x: jnp.broadcast_to(x[:1], x.shape), rows_of(c))
    return same


@pytest.mark.parametrize("extreme", [huge, zeros, identical])
def test_finite_at_extreme_inputs(c: Case, extreme: Callable[[Case], Batch]) -> None:
    batch = extreme(c)
    for params in (c.fresh, c.params):
        scalars, grads = c.gradient(params, batch)
        assert np.isfinite(list(scalars.values())).all()
        assert np.isfinite(flat(grads)).all()
        assert all(np.isfinite(x).all() for x in c.read(params, *pool(batch)).values())


def test_loss_at_zero(c: Case) -> None:
    expected = classified(c).at_zero
    if expected is not None:
        scalars, _ = c.gradient(c.fresh, zeros(c))
        assert scalars["loss"] == pytest.approx(expected, rel=1e-5)


def test_permuted_batch(c: Case) -> None:
    """Permuting the rows changes nothing but the order of sums, unless the loss draws by row.

    The contrastive MLP draws its negatives by position; here it takes all of them. That a part
    of them is right on average is tested beside its loss.
    """
    batch = rows_of(c)
    if classified(c).samples:
        losses = [c.gradient(c.params, batch, jax.random.key(n))[0]["loss"] for n in (0, 0, 1)]
        assert losses[0] == losses[1] != losses[2]
        return
    order = np.random.default_rng(5).permutation(BATCH)
    loss, grads = c.gradient(c.params, batch)
    permuted, permuted_grads = c.gradient(c.params, jax.tree.map(lambda x: x[order], batch))
    rounding = 1e-2 if c.critic.compute_params(c.params) is not c.params else 1e-5
    # Distances that are sums of maxima round once more than products do.
    absolute = 2e-5 if c.critic.name == "temporal_distance" else 1e-5
    assert permuted == pytest.approx(loss, rel=1e-5, abs=absolute)
    error = np.linalg.norm(flat(grads) - flat(permuted_grads))
    assert error < rounding * np.linalg.norm(flat(grads))
    # Moving the goals alone is another batch.
    columns = [name for name in Batch._fields if name.endswith("goals")]
    moved = {name: getattr(batch, name)[order] for name in columns}
    other, _ = c.gradient(c.params, batch._replace(**moved))
    # Where a constant is most of the loss, or a bound keeps scores small, goals change it less.
    least = {"quasimetric": 2e-4, "spectral": 2e-5}.get(c.critic.name, 1e-3)
    assert other["loss"] != pytest.approx(loss["loss"], rel=least)


def test_who_reads_rewards(c: Case) -> None:
    """Whoever says so has another loss with other rewards, and nobody else."""
    batch = rows_of(c)
    losses = [
        c.gradient(c.params, batch._replace(rewards=batch.rewards - by))[0]["loss"] for by in (0, 1)
    ]
    assert (losses[0] != losses[1]) == c.critic.reads_rewards


def test_second_call_does_not_compile(c: Case) -> None:
    c.gradient(c.params, rows_of(c, seed=8))
    c.gradient(c.fresh, rows_of(c, seed=9))
    assert c.traces == 1


def test_a_step_gives_what_it_takes(c: Case) -> None:
    """Shapes, types and weak types of the state survive a step, so its result can be stepped."""
    config = TrainConfig(c.critic, batch_size=BATCH)
    data = rows_of(c)
    if classified(c).further:  # drawn from a data set's own rows
        return
    state = jax.eval_shape(lambda key: init_state(config, key, data), KEY)
    after, _ = jax.eval_shape(lambda s: train_step(config, s, data), state)
    assert isinstance(after, TrainState)

    def kinds(tree: object) -> list[tuple[str, object, object, object]]:
        leaves = jax.tree_util.tree_leaves_with_path(tree)
        return [(jax.tree_util.keystr(p), x.shape, x.dtype, x.weak_type) for p, x in leaves]

    assert kinds(after) == kinds(state)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(after.params))


def test_target_network(c: Case) -> None:
    """It starts as a copy, gets no gradient, and everything else gets one."""
    _, grads = c.gradient(c.params, rows_of(c))
    if FROZEN in grads:
        assert not np.any(flat(grads.pop(FROZEN)))
    if classified(c).target:
        source = target_source(c.critic.name, c.fresh)
        # The slow twin of spectral's vectors rounds in another order; other targets are copies.
        rtol, atol = (1e-6, 1e-7) if c.critic.name == "spectral" else (0, 0)
        np.testing.assert_allclose(flat(c.fresh["target"]), flat(source), rtol=rtol, atol=atol)
        assert not np.any(flat(grads.pop("target")))
    assert all(np.any(leaf) for leaf in jax.tree.leaves(grads))


def test_saved_parameters_score_the_same(c: Case, tmp_path: Path) -> None:
    save_params(tmp_path / "critic.safetensors", c.params)
    loaded = load_params(tmp_path / "critic.safetensors")
    before, after = (c.read(params, *pool(random_batch())) for params in (c.params, loaded))
    assert jax.tree.map(jnp.shape, loaded) == jax.tree.map(jnp.shape, c.params)
    for label, scores in before.items():
        assert scores.shape == (2, 3)
        assert scores.dtype == jnp.float32
        np.testing.assert_array_equal(scores, after[label])
        assert len(np.unique(scores)) > 1, label


def test_no_implicit_promotion(c: Case) -> None:
    batch = rows_of(c)
    with no_promotion():
        params = jax.eval_shape(lambda key: c.critic.init(key, *DIMS), KEY)
        compute = jax.eval_shape(c.critic.compute_params, params)
        gradient = jax.value_and_grad(c.critic.loss, has_aux=True)
        jax.make_jaxpr(gradient)(params, batch, KEY)
        if c.critic.compute_params(c.params) is not c.params:
            jax.make_jaxpr(gradient)(compute, batch, KEY)
        jax.make_jaxpr(c.critic.after_update)(params)
        for read in c.critic.readouts().values():
            jax.make_jaxpr(read)(params, *pool(batch))


def test_trained_critic_reads_by_name() -> None:
    c, rows = case("tdq", False), pool(random_batch())
    expected = c.read(c.params, *rows)
    for readout, label in ((None, "q"), ("q_min", "q_min")):
        scores = TrainedCritic(c.critic, c.params, readout).score(*(np.asarray(x) for x in rows))
        np.testing.assert_allclose(scores, expected[label], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(c.critic.score(c.params, *rows), expected["q"], rtol=1e-5, atol=1e-6)


def test_parameter_counts() -> None:
    counted = {name: parameter_count(case(name, False).params) for name in SUBJECTS}
    assert counted == {name: each.parameters for name, each in facts().items()}
    learned = make("cosine", learn_temperature=True).init(KEY, *DIMS)
    assert parameter_count(learned) == ENCODERS + 1


@pytest.fixture(scope="module", params=SUBJECTS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_loss_and_info(name: str) -> None:
    c, batch = case(name, False), random_batch(further=facts()[name].further)
    wide = double(c.params)
    expected = facts()[name].slow_loss(wide, wide, slow_rows(batch), SLOW)
    got, _ = c.gradient(c.params, batch)
    assert got == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert "step" not in got, "a line of metrics has its step's number under that name"


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
