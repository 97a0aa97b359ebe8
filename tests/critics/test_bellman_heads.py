"""One pass for several goal sets, and the hybrid losses built on it, against plain versions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.critics import slow_full as slow
from tests.critics.full_cases import (
    KEY,
    SLOW,
    double,
    make,
    no_promotion,
    quick_jit,
    random_batch,
    random_params,
    rough,
)
from toptail.lab.critics.base import Params
from toptail.lab.critics.bellman import BellmanCritic
from toptail.lab.critics.networks import Stack, StackedEncoders

ENCODERS = StackedEncoders(hidden=(16, 16), embed_dim=SLOW.embed_dim, ensemble=SLOW.members)


def test_embed_goals_against_numpy() -> None:
    """phi is shared and each set gets its psi; one goal per query serves all its candidates."""
    params, batch = random_params(ENCODERS), random_batch()
    queries, candidates = 4, len(batch.states) // 4
    states, actions, each = (
        np.asarray(x).reshape(queries, candidates, -1)
        for x in (batch.states, batch.actions, batch.goals)
    )
    shared = np.asarray(batch.td_goals)[:queries, None]
    sets = (each, shared, each[::-1])
    found = quick_jit(ENCODERS.embed_goals)(params, states, actions, *sets)
    assert len(found) == len(sets)
    for e, goals in zip(found, sets, strict=True):
        goals = np.broadcast_to(goals, each.shape)
        rows = [x.reshape(-1, x.shape[-1]).astype(float) for x in (states, actions, goals)]
        shape = (SLOW.members, queries, candidates, SLOW.embed_dim)
        for got, own in zip(e, slow.embed(double(params), SLOW, *rows), strict=True):
            assert got.dtype == jnp.float32
            np.testing.assert_allclose(got, own.reshape(shape), rtol=1e-5, atol=1e-5)


def test_groups_apart() -> None:
    """Each answers as it does in company, to its own number of rows, and knows nothing else."""
    stack = Stack((("a", 1), ("b", 2), ("c", 1)), (8,), 3)
    widths = {"a": 2, "b": 4, "c": 3}
    shapes = jax.eval_shape(lambda key: stack.init(key, widths), KEY)
    params = rough(jax.tree.map(lambda x: np.zeros(x.shape), shapes))
    rng = np.random.default_rng(5)
    rows = {k: rng.normal(size=(6, w)).astype(np.float32) for k, w in widths.items()}

    def outputs(p: Params, rows: dict[str, jax.Array]) -> list[dict[str, jax.Array]]:
        found = {}
        for place, (name, (alone, own)) in enumerate(stack.apart({**p, "head": {}}).items()):
            assert alone.groups == (stack.groups[place],)
            assert set(own) == {f"kernel_{name}", *(x for x in p if x[-1].isdigit())}
            found[name] = alone.apply(own, {name: rows[name][: 2 + place]})[name]
        return [stack.apply(p, rows), found]

    together, apart = jax.tree.map(np.asarray, quick_jit(outputs)(params, rows))
    assert list(apart) == list(widths)
    for place, (name, got) in enumerate(apart.items()):
        expected = together[name][:, : 2 + place]
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=name)


def products(closed: Any) -> list[tuple[int, ...]]:
    """Shapes of all matrix products' results in a traced function."""
    found: list[tuple[int, ...]] = []
    for equation in closed.jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            found.append(equation.outvars[0].aval.shape)
        for inner in equation.params.values():
            if hasattr(inner, "jaxpr"):
                found += products(inner)
    return found


def test_embed_goals_computes_each_side_once() -> None:
    """Two goal sets: phi of the pairs and psi of twice as many rows, a product per layer each."""
    params, batch = random_params(ENCODERS), random_batch()
    with no_promotion():
        traced = jax.make_jaxpr(ENCODERS.embed_goals)(
            params, batch.states, batch.actions, batch.goals, batch.td_goals
        )
    members, rows = SLOW.members, len(batch.states)
    widths = (*ENCODERS.hidden, ENCODERS.embed_dim)
    expected = [(members, n, width) for n in (rows, 2 * rows) for width in widths]
    assert products(traced) == expected


def test_v_of_the_next_states_has_no_backward_pass() -> None:
    """A product per layer for it; V of the states has two more each, but for its inputs'."""
    critic, batch = make("td_bilinear"), random_batch()
    assert isinstance(critic, BellmanCritic)
    params = random_params(critic)

    def total(p: Params) -> jax.Array:
        now, after = critic.now_and_next(p, batch)
        return jnp.sum(now) + jnp.sum(after)

    layers = len(critic.encoders.hidden) + 1
    backward = 2 * layers - 1 + 1  # and the sum of the last bias
    assert len(products(jax.make_jaxpr(jax.grad(total))(params))) == 2 * layers + backward
