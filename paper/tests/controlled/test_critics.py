"""The critics of the controlled world against slow NumPy arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.critics import slow_full
from tests.critics.facts import EMBEDDED, OF_RAW, WITH_HEADS
from tests.critics.test_factors import factors_make_the_readouts
from toptail.lab.critics.base import Batch, Critic, Info, Params
from toptail.lab.critics.cosine import Cosine
from toptail.lab.critics.embedding import CosineContrast
from toptail.lab.critics.raw import Raw
from toptail_paper.controlled.config import HERE
from toptail_paper.controlled.critics import (
    ONE_STEP,
    OneStepHeads,
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


def unit_rows(x: Floats) -> Floats:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def slow(critic: Critic, params: Params, data: Batch) -> tuple[float, dict[str, Floats]]:
    """The loss, and each member's readouts of matching rows, from the definitions."""
    s, a, g, rewards = (np.asarray(x, np.float64) for x in data[:4])
    if isinstance(critic, OneStepTDQ):
        rows, members = np.hstack([s, g, a]), range(critic.ensemble)
        q = np.stack([slow_network(member(params["q"], e), rows, False)[:, 0] for e in members])
        return float(np.mean((q - rewards) ** 2)), {"q": q, "q_min": q.min(0, keepdims=True)}
    pairs = slow_embeddings(params, data)
    phi, psi = np.stack([x for x, _ in pairs]), np.stack([y for _, y in pairs])
    f_cos = slow_full.cosines(phi, psi)
    if isinstance(critic, Raw):
        logits = np.stack([x @ y.T for x, y in pairs])
        loss, _ = slow_full.contrast(logits / np.sqrt(TINY.embed_dim), critic.contrast)
        lengths = np.linalg.norm(phi, axis=2)
        return loss, {"f_raw": (phi * psi).sum(2), "f_cos": f_cos, "phi_norm": lengths}
    assert isinstance(critic, CosineContrast)
    learned = critic.learn_temperature
    temperature = np.exp(params["log_temperature"]) if learned else critic.temperature
    units = [[unit_rows(x), unit_rows(y)] for x, y in pairs]
    logits = np.stack([x @ y.T for x, y in units]) / temperature
    loss, _ = slow_full.contrast(logits, critic.contrast)
    if not isinstance(critic, OneStepHeads):
        return loss, {"f_cos": f_cos}
    heads = [member(params["head"], e) for e in range(len(units))]
    q_td = np.stack(
        [slow_network(h, np.hstack(xy), True)[:, 0] for h, xy in zip(heads, units, strict=True)]
    )
    both = q_td + critic.alpha * f_cos
    td = np.mean(((both if isinstance(critic, OneStepHybrid) else q_td) - rewards) ** 2)
    return float(loss + critic.td_weight * td), {"q_td": q_td, "q_hybrid": both, "f_cos": f_cos}


def losses_and_readouts_by_slow_arithmetic(critic: Critic) -> None:
    data, params = batch(), params_of(critic)
    expected, reads = slow(critic, params, data)
    loss, info = loss_of(critic)(params, data, KEY)
    assert float(loss) == pytest.approx(expected, rel=1e-4)
    found = readouts_of(critic)(params, *data[:3])
    for name, values in reads.items():
        np.testing.assert_allclose(found[name], values.mean(0), rtol=2e-4, atol=1e-5)
    if isinstance(critic, OneStepHeads):
        contrast = slow(replace(critic, td_weight=0.0), params, data)[0]
        assert float(info["contrast"]) == pytest.approx(contrast, rel=1e-4)


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
    losses_and_readouts_by_slow_arithmetic,
    finite_at_extreme_inputs,
    one_goal_serves_all_candidates,
    no_implicit_promotion,
)


CRITICS = [
    Raw(TINY, "symmetric_info_nce"),
    Cosine(TINY, learn_temperature=True),
    OneStepTDQ((5, 4), ensemble=3),
    OneStepHybrid(TINY, temperature=0.2, alpha=0.7, td_weight=0.3),
    OneStepTwoHead(TINY, temperature=0.2, alpha=0.7, td_weight=0.3),
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
