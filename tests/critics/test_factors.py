"""Critics read by their factors: phi once per pair, psi once per goal, and the same scores."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.critics.facts import facts
from tests.critics.full_cases import DIMS, SLOW, make, quick_jit, random_params
from toptail.lab.critics.base import CPU_BLOCK, Critic, Params, TrainedCritic
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
