"""Behaviour-regularized actors (DDPG+BC), each trained against a frozen critic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError, check_whole, option
from toptail.lab.critics.base import (
    TARGET,
    Batch,
    Critic,
    Info,
    Learner,
    Params,
    TrainedCritic,
    trained_only,
)
from toptail.lab.critics.networks import Stack, flat_rows
from toptail.lab.training.data import GoalSampling, OfflineData
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, run_steps
from toptail.progress import Tick
from toptail_paper.study.batches import with_numbers

CHUNK = 500
"""Steps of one compiled program, at most."""

SCALE_FLOOR = 1e-6
"""Added to the mean |Q| that the critic's part of the loss is divided by."""


@dataclass(frozen=True)
class ActorConfig:
    """How an actor is trained."""

    steps: int = 100_000
    """Optimizer steps."""
    alpha: float = 0.1
    """Weight of behaviour cloning; 0.1 is OGBench's for contrastive RL on AntMaze."""
    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer of the actor."""
    batch_size: int = 1024
    """Rows per step."""
    learning_rate: float = 3e-4
    """Adam's step size."""
    uniform_goals: bool = True
    """Whether goals are uniform over the rest of the trajectory, as OGBench's actors have them;
    otherwise their distance is geometric."""
    gamma: float = 0.99
    """Discount of the geometric distances."""

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size"):
            check_whole(name, getattr(self, name), 1)
        if not self.alpha >= 0:
            raise InputError(f"{option('alpha', self.alpha)} must be 0 or more.")

    def training(self, critic: TrainedCritic) -> TrainConfig:
        readout = critic.readout or critic.critic.deployed
        actor = Actor(critic.critic, readout, self.hidden, self.alpha)
        sampling = GoalSampling(self.gamma, 0.0, 1.0, self.uniform_goals)
        return TrainConfig(actor, self.steps, self.batch_size, self.learning_rate, sampling)


@dataclass(frozen=True)
class Actor(Learner):
    """pi(s, g), trained to raise the score of a frozen critic.

    With f the critic's readout, a the data's action and means over the batch,

        loss = -mean f(s, pi(s, g), g) / mean |f| + alpha mean |a - pi(s, g)|^2 / 2

    where no gradient flows through mean |f|: it brings scores of all sizes to one scale. The
    second part is the negative log-likelihood of a under a Gaussian around pi with variance 1, up
    to a constant.

    The critic's parameters are under `TARGET` among the actor's, so that they get no gradient.
    """

    name: ClassVar[str] = "actor"

    critic: Critic
    readout: str
    """Name of the critic's readout to follow."""
    hidden: tuple[int, ...] = (512, 512, 512)
    """Width of each hidden layer."""
    alpha: float = 0.1
    """Weight of behaviour cloning."""

    def stack(self, action_dim: int) -> Stack:
        """The network, as a stack of one."""
        return Stack((("actor", 1),), self.hidden, action_dim)

    def init(self, key: jax.Array, state_dim: int, action_dim: int, goal_dim: int) -> Params:
        """A fresh actor; the caller adds the frozen critic."""
        return self.stack(action_dim).init(key, {"actor": state_dim + goal_dim})

    def act(self, params: Params, states: jax.Array, goals: jax.Array) -> jax.Array:
        """pi(s, g) in (-1, 1): rows [..., s] and [..., g] to [..., a]."""
        rows, lead = flat_rows(states, goals)
        dim = params[f"bias_{len(self.hidden)}"].shape[-1]
        out = self.stack(dim).apply(params, {"actor": rows})["actor"][0]
        return jnp.tanh(out).reshape(*lead, dim)

    def loss(self, params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
        """DDPG+BC on the value goals; see the class."""
        del key
        goals = batch.td_goals
        actions = self.act(params, batch.states, goals)
        follow = self.critic.readouts()[self.readout]
        score = follow(params[TARGET], batch.states, actions, goals)
        scale = jax.lax.stop_gradient(jnp.mean(jnp.abs(score))) + SCALE_FLOOR
        distance = jnp.mean(jnp.sum((batch.actions - actions) ** 2, axis=-1))
        info = {"score": jnp.mean(score), "squared_distance": distance}
        return -jnp.mean(score) / scale + self.alpha * distance / 2, info


@dataclass(frozen=True, eq=False)
class TrainedActor:
    """An actor after training."""

    actor: Actor
    params: Params
    """Its own parameters, without the critic's."""
    info: dict[str, float]
    """Loss, mean score and mean |a - pi|^2, each a mean over the last chunk of steps."""


def train_actor(
    config: ActorConfig,
    critic: TrainedCritic,
    data: OfflineData,
    seed: int,
    tick: Tick | None = None,
) -> TrainedActor:
    """Train one actor against one trained critic (its readout), which stays as it is.

    ``data`` is what the critic was trained on; the seed decides first weights and batches.
    """
    return train_actors(config, (config.alpha,), critic, data, seed, tick)[0]


def train_actors(
    config: ActorConfig,
    alphas: Sequence[float],
    critic: TrainedCritic,
    data: OfflineData,
    seed: int,
    tick: Tick | None = None,
) -> list[TrainedActor]:
    """Train an actor for each weight of behaviour cloning, side by side.

    All have the first weights and the batches of the seed, which are drawn once for all.
    """
    training = replace(config, alpha=0.0).training(critic)  # one program for all weights
    chunk = math.gcd(CHUNK, config.steps)
    advance = _advance(training, chunk)
    first = init_state(training, jax.random.key(seed), data)
    weights = jnp.asarray(alphas, jnp.float32)
    own, moments = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[None], len(alphas), axis=0), (first.params, first.opt_state)
    )
    frozen = jax.device_put(critic.params)
    for done in range(chunk, config.steps + 1, chunk):
        run = (first.key, jnp.int32(done - chunk), frozen, data)
        own, moments, info = advance(own, moments, weights, *run)
        if tick is not None:
            jax.block_until_ready(own)
            tick("training", done / config.steps)
    assert isinstance(training.learner, Actor)
    params, infos = jax.tree.map(np.asarray, (own, info))
    return [
        TrainedActor(
            replace(training.learner, alpha=float(alpha)),
            jax.tree.map(lambda leaf, i=i: leaf[i], params),
            {name: float(np.mean(values[i])) for name, values in infos.items()},
        )
        for i, alpha in enumerate(alphas)
    ]


@lru_cache(maxsize=8)
def _advance(config: TrainConfig, steps: int) -> Any:
    """The compiled function of so many steps of all actors of one critic.

    Actors differ in their parameters, moments and weights of behaviour cloning; batches and the
    critic's parameters are the same for all.
    """

    def advance(
        own: Params, moments: Any, alphas: jax.Array,
        key: jax.Array, step: jax.Array, frozen: Params, data: OfflineData,
    ) -> tuple[Params, Any, Info]:  # fmt: skip
        def one(own: Params, moments: Any, alpha: jax.Array) -> tuple[Params, Any, Info]:
            state = TrainState(key, step, {**own, TARGET: frozen}, moments)
            weighted = with_numbers(config, {"learner.alpha": alpha})
            state, info = run_steps(weighted, state, data, steps)
            return trained_only(state.params), state.opt_state, info

        return jax.vmap(one)(own, moments, alphas)

    return jax.jit(advance, donate_argnums=(0, 1))
