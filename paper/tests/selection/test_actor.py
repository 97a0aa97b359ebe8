"""The DDPG+BC loss against NumPy, and actors on critics whose best action is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.critics.full_cases import DIMS, SLOW, make, random_batch, rough
from tests.critics.slow_full import Array, Tree, joint, mlp
from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Critic, Info, Params, Read, TrainedCritic
from toptail.lab.tasks.trajectories import Trajectories
from toptail.lab.training.data import OfflineData, device_data
from toptail_paper.selection.deployment.actor import (
    Actor,
    ActorConfig,
    TrainedActor,
    train_actor,
    train_actors,
)

CRITIC = make("tdq")
ACTOR = Actor(CRITIC, "q", (16, 16), alpha=0.4)
ROWS = 6
KEY = jax.random.key(0)


@cache
def params() -> tuple[Params, Params]:
    """Parameters of the actor and of the critic."""
    own, critic = (jax.jit(x.init, static_argnums=(1, 2, 3))(KEY, *DIMS) for x in (ACTOR, CRITIC))
    return rough(own), rough(critic)


def float64(tree: Params) -> Tree:
    wide: Tree = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)
    return wide


def slow_loss(own: Tree, critic: Tree, batch: Batch, scale: float | None = None) -> list[float]:
    """Loss, mean score, mean squared distance and mean |score|, row by row in float64.

    ``scale`` stands for mean |f| where that is to stay what it was at other parameters.
    """
    states, actions, goals = (
        np.asarray(x, np.float64) for x in (batch.states, batch.actions, batch.td_goals)
    )
    scores, distances = [], []
    for s, a, g in zip(states, actions, goals, strict=True):
        pi = np.tanh(mlp(own, "kernel_actor", 0, 0, np.concatenate([s, g])))
        scores.append(joint(critic, SLOW, s[None], pi[None], g[None]).mean())
        distances.append(sum((x - y) ** 2 for x, y in zip(a, pi, strict=True)))
    mean, distance, size = np.mean(scores), np.mean(distances), np.mean(np.abs(scores))
    loss = -mean / (size if scale is None else scale) + 0.4 * distance / 2
    return [float(x) for x in (loss, mean, distance, size)]


def test_the_loss_is_that_of_its_definition() -> None:
    own, critic = params()
    batch = random_batch(size=ROWS)
    loss, info = jax.jit(ACTOR.loss)({**own, "target": critic}, batch, KEY)
    found = [float(x) for x in (loss, info["score"], info["squared_distance"])]
    np.testing.assert_allclose(
        found, slow_loss(float64(own), float64(critic), batch)[:3], rtol=1e-4
    )


def test_the_gradient_treats_the_scale_as_a_number() -> None:
    own, critic = params()
    batch = random_batch(size=ROWS)
    gradient = jax.jit(jax.grad(lambda p: ACTOR.loss({**p, "target": critic}, batch, KEY)[0]))(own)
    rng = np.random.default_rng(3)
    way: Tree = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), float64(own))
    scale = slow_loss(float64(own), float64(critic), batch)[3]

    def along(t: float) -> float:
        moved: Tree = jax.tree.map(lambda p, w: p + t * w, float64(own), way)
        return slow_loss(moved, float64(critic), batch, scale)[0]

    slope = (along(1e-4) - along(-1e-4)) / 2e-4
    found = sum(float(np.sum(way[name] * np.asarray(leaf))) for name, leaf in gradient.items())
    np.testing.assert_allclose(found, slope, rtol=2e-3)


@dataclass(frozen=True)
class Peak(Critic):
    """A critic without training whose best action is (s + g) / 2, and how sharp its peak is."""

    name: ClassVar[str] = "peak"
    deployed: ClassVar[str] = "score"

    height: float = 1.0

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        del key, state_dim, action_dim, goal_dim
        return {"sharpness": jnp.ones(())}

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        raise AssertionError(f"a frozen critic is not trained: {params} {batch} {key}")

    def readouts(self) -> Mapping[str, Read]:
        def score(params: Params, s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
            miss = jnp.sum((a - (s + g) / 2) ** 2, axis=-1)
            score: jax.Array = self.height * (1.0 - params["sharpness"] * miss)
            return score

        return {"score": score, "upside_down": lambda *args: -score(*args)}


def opposite(states: Array) -> Array:
    """The actions that the data has: not those of the peak."""
    return np.asarray(-states)


@cache
def data() -> OfflineData:
    """Trajectories that stand still, so that every goal is the state, with those actions."""
    states = np.repeat(np.random.default_rng(0).uniform(-0.8, 0.8, (200, 1, 2)), 5, axis=1)
    terminals = np.zeros((200, 5), dtype=bool)
    terminals[:, -1] = True
    flat = states.reshape(-1, 2)
    observations, actions = (x.astype(np.float32) for x in (flat, opposite(flat)))
    return device_data(Trajectories(observations, actions, terminals.reshape(-1)))


def miss(found: TrainedActor, wanted: Array) -> float:
    """Root mean squared distance per coordinate, of the actions at `STATES`."""
    rows = jnp.asarray(STATES, jnp.float32)
    actions = jax.jit(found.actor.act)(found.params, rows, rows)
    return float(np.sqrt(np.mean((np.asarray(actions) - wanted) ** 2)))


STATES = np.random.default_rng(5).uniform(-0.7, 0.7, (200, 2))
TRAINING = ActorConfig(400, 0.0, (32, 32), batch_size=64, learning_rate=3e-3)


@pytest.mark.slow
def test_without_cloning_the_actor_finds_the_best_action_of_a_critic_that_stays() -> None:
    critic = TrainedCritic(Peak(), {"sharpness": jnp.ones(())})
    shares: list[float] = []

    def tick(_: str, share: float) -> None:
        shares.append(share)

    found, other = (train_actor(TRAINING, critic, data(), seed, tick) for seed in (1, 2))
    assert miss(found, STATES) < 0.05
    assert miss(found, opposite(STATES)) > 0.5
    np.testing.assert_allclose(found.info["score"], 1.0, atol=0.01)
    assert shares == [0.25, 0.5, 0.75, 1.0] * 2
    # The critic is not trained, its memory is still its own, and it is not stored with the actor.
    assert float(critic.params["sharpness"]) == 1.0
    assert "target" not in found.params
    assert not np.allclose(found.params["kernel_1"], other.params["kernel_1"], atol=1e-3)


def test_with_much_cloning_the_actor_does_what_the_data_does() -> None:
    critic = TrainedCritic(Peak(), {"sharpness": np.ones((), np.float32)})
    found = train_actor(replace(TRAINING, alpha=1000.0), critic, data(), 1)
    assert miss(found, opposite(STATES)) < 0.05
    assert found.info["squared_distance"] < 0.01


def test_actors_side_by_side_are_each_what_they_are_alone() -> None:
    critic = TrainedCritic(Peak(), {"sharpness": np.ones((), np.float32)})
    alphas = (0.0, 0.3, 1000.0)
    together = train_actors(TRAINING, alphas, critic, data(), 1)
    assert [found.actor.alpha for found in together] == list(alphas)
    for alpha, found in zip(alphas, together, strict=True):
        alone = train_actor(replace(TRAINING, alpha=alpha), critic, data(), 1)
        assert found.actor == alone.actor
        np.testing.assert_allclose(found.info["score"], alone.info["score"], atol=1e-3)
        for name, leaf in alone.params.items():
            np.testing.assert_allclose(found.params[name], leaf, atol=2e-3)
    assert miss(together[0], STATES) < 0.05 < miss(together[2], STATES)


def test_the_readout_matters_and_the_size_of_the_scores_does_not() -> None:
    """Checked in the gradient, which is all that training sees."""
    rows = jnp.asarray(STATES[:16], jnp.float32)
    batch = Batch(rows, -rows, rows, jnp.zeros(16))

    def gradient(height: float, readout: str) -> Array:
        actor = Actor(Peak(height), readout, (8,), alpha=0.0)
        own = actor.init(KEY, 2, 2, 2)
        frozen = {"target": {"sharpness": jnp.ones(())}}
        found = jax.jit(jax.grad(lambda p: actor.loss({**p, **frozen}, batch, KEY)[0]))(own)
        return np.asarray(found["kernel_1"], np.float64)

    plain = gradient(1.0, "score")
    np.testing.assert_allclose(gradient(1000.0, "score"), plain, atol=1e-5)
    np.testing.assert_allclose(gradient(1.0, "upside_down"), -plain, atol=1e-5)
    assert np.abs(plain).max() > 1e-2


@pytest.mark.parametrize("uniform", [True, False])
def test_goals_lie_ahead_in_the_same_trajectory(uniform: bool) -> None:
    """Rows are numbered by their observation, in two trajectories of 1,000 rows."""
    ends = np.zeros(2000, dtype=bool)
    ends[[999, 1999]] = True
    numbers = np.tile(np.arange(2000, dtype=np.float32)[:, None], 2)
    rows = device_data(Trajectories(numbers, np.zeros((2000, 2), np.float32), ends))
    sample = ActorConfig(uniform_goals=uniform).training(TrainedCritic(Peak(), {})).sample
    batch = jax.jit(sample, static_argnums=2)(KEY, rows, 4000)
    at, to = (np.asarray(x)[:, 0] for x in (batch.states, batch.td_goals))
    assert (to > at).all()
    assert (at // 1000 == to // 1000).all()
    early = at % 1000 < 100
    # Uniform over the rest of about 950 rows, or geometric with mean 100.
    expected = 475 if uniform else 100
    np.testing.assert_allclose((to - at)[early].mean(), expected, rtol=0.15)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"alpha": -1.0}, {"batch_size": 0}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=rf"{next(iter(wrong))}=.* must be"):
        ActorConfig(**wrong)  # type: ignore[arg-type]
