"""Critics read by their factors: phi once per pair, psi once per goal, and the same scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.critics.facts import facts
from tests.critics.full_cases import DIMS, SLOW, make, quick_jit, random_params
from toptail.lab.critics.base import CPU_BLOCK, Critic, Params, TrainedCritic, in_blocks
from toptail.lab.critics.registry import names

Array = NDArray[np.float32]

FACTORED: Mapping[str, frozenset[str]] = {name: each.factored for name, each in facts().items()}
"""Critic to the readouts that are functions of phi and psi."""


CRITICS: Mapping[str, Critic] = {
    **{f"full-size {name}": make(name, hidden=(16,)) for name in names()},
    "bfloat16 raw": make("raw", hidden=(16,), bfloat16=True),
}


class Found(NamedTuple):
    """One readout's answers."""

    by_factors: Any
    whole: Any


def rows(n: int, seed: int = 0) -> list[Array]:
    """States, actions and goals."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, dim)).astype(np.float32) for dim in DIMS]


def questions(n: int, pairs: int, goals: int) -> NDArray[np.int64]:
    """Numbers of pairs and goals, [n, 2]: some come often, some never."""
    rng = np.random.default_rng(n)
    return np.stack([rng.integers(pairs, size=n), rng.integers(goals, size=n)], axis=1)


PAIRS, GOALS = rows(5)[:2], rows(4, seed=1)[2]
ASKED = questions(12, 5, 4)


@cache
def answers(critic: Critic) -> dict[str, Found]:
    """Every readout that has factors, both ways, on random parameters."""
    pair, goal = ASKED.T
    states, actions, goals = (jnp.asarray(x) for x in (*PAIRS, GOALS))

    def both(params: Params) -> dict[str, Found]:
        result = {}
        for readout, read in critic.readouts().items():
            factors = critic.factors(readout)
            if factors is not None:
                phi = factors.embed_pairs(params, states, actions)
                psi = factors.embed_goals(params, goals)
                whole = read(params, states[pair], actions[pair], goals[goal])
                result[readout] = Found(factors.combine(params, phi[:, pair], psi[:, goal]), whole)
        return result

    found: dict[str, Found] = quick_jit(both)(random_params(critic))
    return found


def factors_make_the_readouts(critic: Critic, names: frozenset[str], close: float = 2e-5) -> None:
    found = answers(critic)
    assert set(found) == names
    for readout, (by_factors, whole) in found.items():
        assert by_factors.dtype == np.float32
        np.testing.assert_allclose(by_factors, whole, close, close, err_msg=readout)


@pytest.mark.parametrize("name", CRITICS)
def test_every_readout_is_what_its_factors_make(name: str) -> None:
    # bfloat16 has 8 bits, and products of other shapes round otherwise
    close = 0.05 if "bfloat16" in name else 2e-5
    factors_make_the_readouts(CRITICS[name], FACTORED[CRITICS[name].name], close)


def test_an_unknown_readout_has_no_factors() -> None:
    assert CRITICS["full-size raw"].factors("q_td") is None


def test_blocks_of_pairs_goals_and_questions() -> None:
    critic = CRITICS["full-size raw"]
    trained = TrainedCritic(critic, random_params(critic))
    n, pairs, goals = CPU_BLOCK + 1, CPU_BLOCK + 5, CPU_BLOCK + 9
    (states, actions, _), targets = rows(pairs), rows(goals, seed=1)[2]
    asked = questions(n, pairs, goals)
    asked[-1] = pairs - 1, goals - 1  # whoever loses the last row is found out
    psi = trained.embed_goals(targets)
    assert psi is not None
    assert psi.shape == (SLOW.members, goals, SLOW.embed_dim)
    pair, goal = asked.T
    expected = trained.score(states[pair], actions[pair], targets[goal])
    found = trained.score_pairs(states, actions, psi, asked)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_critic_that_reads_triples_whole_says_so() -> None:
    critic = CRITICS["full-size tdq"]
    trained = TrainedCritic(critic, random_params(critic))
    states, actions, goals = rows(3)
    assert trained.embed_goals(goals) is None
    with pytest.raises(ValueError, match="readout q of tdq has no factors"):
        trained.score_pairs(states, actions, jnp.zeros((1, 3, 4)), [[0, 0]])


# Scoring in blocks of rows: the same scores, few rows at a time.


@pytest.mark.parametrize("n", [1, CPU_BLOCK, CPU_BLOCK + 1, 3 * CPU_BLOCK, 3 * CPU_BLOCK - 5])
def test_every_row_gets_its_own_score(n: int) -> None:
    seen: list[tuple[int, ...]] = []

    def read(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        seen.append(s.shape)
        w: jax.Array = params["w"]
        return w * s[..., 0] + 10 * a[..., 0] + 100 * g[..., 0] * a[..., 1]

    rng = np.random.default_rng(n)
    rows = [jnp.asarray(rng.normal(size=(n, dim)), jnp.float32) for dim in (3, 2, 1)]
    params = {"w": jnp.float32(2.0)}
    plain = read(params, *rows)
    seen.clear()
    np.testing.assert_allclose(in_blocks(read)(params, *rows), plain, rtol=1e-6, atol=1e-5)
    if jax.default_backend() == "cpu":
        assert max(shape[0] for shape in seen) <= CPU_BLOCK


def test_axes_that_broadcast_are_left_to_the_readout() -> None:
    def read(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        w: jax.Array = params["w"]
        return w * (s * a * g)[..., 0]

    s, a, g = jnp.ones((700, 1, 2)), 2 * jnp.ones((1, 3, 2)), jnp.ones((2,))
    scores = in_blocks(read)({"w": jnp.float32(3.0)}, s, a, g)
    np.testing.assert_array_equal(scores, np.full((700, 3), 6.0))


@pytest.mark.parametrize("n", [2, CPU_BLOCK + 3])
def test_rows_may_lie_along_another_axis_of_the_results(n: int) -> None:
    x = jnp.arange(2.0 * n).reshape(n, 2)

    def read(params: Params, x: jax.Array) -> jax.Array:
        w: jax.Array = params["w"]
        return w[:, None, None] * x

    params = {"w": jnp.array([1.0, 10.0, 100.0])}
    np.testing.assert_array_equal(in_blocks(read, axis=1)(params, x), read(params, x))
