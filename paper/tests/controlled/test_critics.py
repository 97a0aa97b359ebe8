"""The critics of the controlled world against slow NumPy arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.critics.facts import EMBEDDED, OF_RAW, WITH_HEADS
from tests.critics.test_factors import factors_make_the_readouts
from toptail.lab.critics.base import Batch, Critic, Info, Params
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.raw import Raw
from toptail_paper.controlled.config import HERE
from toptail_paper.controlled.critics import (
    ONE_STEP,
    OneStepHybrid,
    OneStepTDQ,
    OneStepTwoHead,
)
from toptail_paper.controlled.networks import Encoders

Floats = NDArray[np.float64]

KEY = jax.random.key(0)
TINY = Encoders(hidden=(4,), embed_dim=4, ensemble=2, layer_norm=True)
ROWS = 6


def batch(rows: int = ROWS, seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    states, actions, goals = (
        jnp.asarray(rng.normal(size=(rows, dim)), jnp.float32) for dim in (3, 2, 3)
    )
    return Batch(states, actions, goals, jnp.asarray(-rng.random(rows), jnp.float32))


@cache
def params_of(critic: Critic) -> Params:
    params: Params = jax.jit(lambda key: critic.init(key, 3, 2, 3))(jax.random.key(1))
    return params


@cache
def loss_of(critic: Critic) -> Callable[[Params, Batch, jax.Array], tuple[jax.Array, Info]]:
    return jax.jit(critic.loss)


@cache
def readouts_of(critic: Critic) -> Callable[..., dict[str, jax.Array]]:
    return jax.jit(
        lambda params, *rows: {n: f(params, *rows) for n, f in critic.readouts().items()}
    )


def slow_network(params: Any, x: Floats, norms: bool) -> Floats:
    """An MLP written out: Dense, GELU (tanh form), LayerNorm, ..., Dense."""
    depth = sum(name.startswith("Dense") for name in params)
    for i in range(depth - 1):
        x = x @ params[f"Dense_{i}"]["kernel"] + params[f"Dense_{i}"]["bias"]
        x = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
        if norms:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
            x = x * params[f"LayerNorm_{i}"]["scale"] + params[f"LayerNorm_{i}"]["bias"]
    last = params[f"Dense_{depth - 1}"]
    return np.asarray(x @ last["kernel"] + last["bias"])


def member(tree: Any, e: int) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf[e], np.float64), tree)


def slow_embeddings(params: Params, data: Batch) -> list[tuple[Floats, Floats]]:
    s, a, g = (np.asarray(x, np.float64) for x in data[:3])
    return [
        (
            slow_network(member(params["phi"], e), np.hstack([s, a]), True),
            slow_network(member(params["psi"], e), g, True),
        )
        for e in range(2)
    ]


def cosine(x: Floats, y: Floats) -> Floats:
    return np.asarray(x @ y.T / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)))


def test_raw_and_cosine_losses_and_readouts_by_slow_arithmetic() -> None:
    data, params = batch(), params_of(Raw(TINY))
    pairs = slow_embeddings(params, data)
    raw_logits = np.stack([phi @ psi.T / 2.0 for phi, psi in pairs])
    cos = np.stack([cosine(phi, psi) for phi, psi in pairs])
    for critic, logits in ((Raw(TINY), raw_logits), (Cosine(TINY, temperature=0.2), cos / 0.2)):
        labels = np.eye(ROWS)
        bce = np.mean(np.log1p(np.exp(logits)) - labels * logits)
        assert float(loss_of(critic)(params, data, KEY)[0]) == pytest.approx(bce, rel=1e-4)
    reads = readouts_of(Raw(TINY))(params, *data[:3])
    expected = {
        "f_raw": np.mean([np.diag(phi @ psi.T) for phi, psi in pairs], axis=0),
        "f_cos": np.mean([np.diag(c) for c in cos], axis=0),
        "phi_norm": np.mean([np.linalg.norm(phi, axis=1) for phi, _ in pairs], axis=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose(reads[name], values, rtol=2e-4, atol=1e-5)


def finite_at_extreme_inputs(critic: Critic) -> None:
    params, data = params_of(critic), batch()

    @jax.jit
    def scaled(p: Params, scale: jax.Array) -> tuple[jax.Array, Params]:
        extreme: Batch = jax.tree.map(lambda x: x * scale, data)
        return jax.value_and_grad(lambda q: critic.loss(q, extreme, KEY)[0])(p)

    for scale in (0.0, 1e-20, 1e4):
        value, gradient = scaled(params, jnp.float32(scale))
        assert np.isfinite(value)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def same_loss_in_another_order(critic: Critic) -> None:
    params, data = params_of(critic), batch()
    shuffled: Batch = jax.tree.map(lambda x: x[::-1], data)
    loss = jax.jit(lambda rows: loss_of(critic)(params, rows, KEY)[0])
    assert float(loss(shuffled)) == pytest.approx(float(loss(data)), rel=1e-5)


def one_goal_serves_all_candidates(critic: Critic) -> None:
    params = params_of(critic)
    rng = np.random.default_rng(0)
    shapes = ((1, 3), (5, 2), (1, 3))
    rows = [rng.normal(size=(4, n, d)).astype(np.float32) for n, d in shapes]

    read = readouts_of(critic)
    full = [np.broadcast_to(x, (4, 5, x.shape[-1])) for x in rows]
    repeated = read(params, *full)
    for name, scores in read(params, *rows).items():
        assert scores.shape == (4, 5)
        np.testing.assert_allclose(scores, repeated[name], rtol=1e-4, atol=1e-5)


def no_implicit_promotion(critic: Critic) -> None:
    params, data = params_of(critic), batch()
    with jax.numpy_dtype_promotion("strict"):
        loss, score = jax.eval_shape(
            lambda: (critic.loss(params, data, KEY)[0], critic.score(params, *data[:3]))
        )
    assert loss.dtype == score.dtype == jnp.float32


CHECKS = (
    finite_at_extreme_inputs,
    same_loss_in_another_order,
    one_goal_serves_all_candidates,
    no_implicit_promotion,
)


"""What holds for the loss and the readouts of every small critic."""


CRITICS = [
    Raw(TINY, "symmetric_info_nce"),
    Cosine(TINY, learn_temperature=True),
    OneStepTDQ((5, 4), ensemble=3),
    OneStepHybrid(TINY, alpha=0.7),
    OneStepTwoHead(TINY, td_weight=0.3),
]


def test_each_is_a_small_version_of_a_critic_of_the_library() -> None:
    assert list(ONE_STEP) == list(HERE)
    for name, kind in ONE_STEP.items():
        assert kind.deployed == HERE[name].deployed
        assert {*kind().readouts()} <= {each.name for each in HERE[name].readouts}


@pytest.mark.parametrize("critic", CRITICS, ids=lambda critic: critic.name)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_losses_and_readouts_of(critic: Critic, check: Callable[[Critic], None]) -> None:
    check(critic)


@pytest.mark.parametrize("kind", [OneStepHybrid, OneStepTwoHead])
def test_every_readout_is_what_its_factors_make(kind: type[Critic]) -> None:
    factors_make_the_readouts(kind(), WITH_HEADS)


@pytest.mark.parametrize("kind", [Raw, Cosine])
def test_small_encoders_make_the_readouts_by_their_factors(kind: type[Raw | Cosine]) -> None:
    expected = OF_RAW if kind is Raw else EMBEDDED
    factors_make_the_readouts(kind(encoders=Encoders()), expected)


@pytest.mark.parametrize("family", [OneStepHybrid, OneStepTwoHead])
def test_td_heads_by_slow_arithmetic(family: type[OneStepHybrid | OneStepTwoHead]) -> None:
    critic = family(TINY, temperature=0.2, alpha=0.7, td_weight=0.3)
    data, params = batch(), params_of(critic)
    q_td, f_cos, contrast = [], [], []
    for e, (phi, psi) in enumerate(slow_embeddings(params, data)):
        unit_phi = phi / np.linalg.norm(phi, axis=1, keepdims=True)
        unit_psi = psi / np.linalg.norm(psi, axis=1, keepdims=True)
        head = member(params["head"], e)
        both = np.hstack([unit_phi, unit_psi])
        q_td.append(slow_network(head, both, True)[:, 0])
        f_cos.append((unit_phi * unit_psi).sum(1))
        logits = unit_phi @ unit_psi.T / 0.2
        contrast.append(np.mean(np.log1p(np.exp(logits)) - np.eye(ROWS) * logits))
    fitted = np.array(q_td) + (0.7 * np.array(f_cos) if family is OneStepHybrid else 0.0)
    td = np.mean((fitted - np.asarray(data.rewards)) ** 2)
    loss, info = loss_of(critic)(params, data, KEY)
    assert float(loss) == pytest.approx(np.mean(contrast) + 0.3 * td, rel=1e-4)
    assert float(info["contrast"]) == pytest.approx(np.mean(contrast), rel=1e-4)
    reads = readouts_of(critic)(params, *data[:3])
    sums = np.array(q_td) + 0.7 * np.array(f_cos)
    expected = {"q_td": np.array(q_td), "q_hybrid": sums, "f_cos": np.array(f_cos)}
    for name, values in expected.items():
        np.testing.assert_allclose(reads[name], np.mean(values, axis=0), rtol=2e-4, atol=1e-5)


def test_tdq_is_the_mean_of_members_fitted_to_the_reward() -> None:
    critic, data = OneStepTDQ((5, 4), ensemble=3), batch()
    params = params_of(critic)
    s, a, g = (np.asarray(x, np.float64) for x in data[:3])
    q = np.stack(
        [slow_network(member(params["q"], e), np.hstack([s, g, a]), False)[:, 0] for e in range(3)]
    )
    reads = readouts_of(critic)(params, *data[:3])
    np.testing.assert_allclose(reads["q"], q.mean(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(reads["q_min"], q.min(0), rtol=1e-4, atol=1e-5)
    expected = np.mean((q - np.asarray(data.rewards)) ** 2)
    assert float(loss_of(critic)(params, data, KEY)[0]) == pytest.approx(expected, rel=1e-4)


def test_value_goals_replace_the_positives_in_the_td_loss_only() -> None:
    data = batch()
    other = data._replace(value_goals=data.goals[::-1])
    key = KEY
    for critic in (OneStepTDQ((5, 4), ensemble=3), OneStepHybrid(TINY)):
        params = params_of(critic)
        same = loss_of(critic)(params, data._replace(value_goals=data.goals), key)[0]
        assert float(same) == pytest.approx(float(loss_of(critic)(params, data, key)[0]), rel=1e-6)
        loss, info = loss_of(critic)(params, other, key)
        assert float(loss) != pytest.approx(float(same))
        if "contrast" in info:
            assert float(info["contrast"]) == float(
                loss_of(critic)(params, data, key)[1]["contrast"]
            )
