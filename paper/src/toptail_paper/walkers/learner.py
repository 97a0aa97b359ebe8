"""The learner: SAC with n-step returns and categorical critics, everything on the accelerator.

The replay is one array of steps, ``[slots, environments, columns]``; sums over n steps are formed
when a batch is drawn, so that every stored step can serve under any command. One call of `update`
scans over all updates that belong to a vector step.

Adam's moments remember about 20 updates and the targets about 50, so neither is worth storing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from toptail_paper.walkers.bodies import NOISE, Body
from toptail_paper.walkers.settings import ExpertSettings

Params = Any
Scalars = dict[str, jax.Array]
_LOG_STD = (-5.0, 2.0)


class Moments(NamedTuple):
    """Adam's memory of one set of parameters."""

    first: Params
    second: Params
    steps: jax.Array


class Normalizer(NamedTuple):
    """Running mean and mean square deviation of the networks' inputs."""

    number: jax.Array
    mean: jax.Array
    variance: jax.Array


class State(NamedTuple):
    """Everything that learning changes, except the replay."""

    actor: Params
    critic: Params
    target: Params
    log_temperature: jax.Array
    moments: tuple[Moments, Moments, Moments]
    normalizer: Normalizer
    key: jax.Array


class Replay(NamedTuple):
    """The last steps of every environment."""

    rows: jax.Array
    """``[slots, environments, columns]``: observation, action, next observation, features, ended
    (nothing follows), cut (something would)."""
    inserted: jax.Array
    """Vector steps inserted so far."""


class StepBatch(NamedTuple):
    """Steps as the losses need them."""

    inputs: jax.Array
    actions: jax.Array
    rewards: jax.Array
    """Discounted sums up to the n-th step or the episode's end."""
    discounts: jax.Array
    """What the value of the following state counts; 0 where nothing follows."""
    following: jax.Array


# Networks: dense layers with LayerNorm (without scale and shift) and GELU between them.


def init_layers(key: jax.Array, sizes: list[int]) -> list[dict[str, jax.Array]]:
    """Draw dense layers; the last starts near zero."""
    layers = []
    for i, (inner, outer) in enumerate(pairwise(sizes)):
        key, drawn = jax.random.split(key)
        scale = (0.01 if i == len(sizes) - 2 else 1.0) / inner**0.5
        kernel = scale * jax.random.normal(drawn, (inner, outer), jnp.float32)
        layers.append({"kernel": kernel, "bias": jnp.zeros(outer, jnp.float32)})
    return layers


def apply_layers(layers: list[dict[str, jax.Array]], x: jax.Array, dtype: Any) -> jax.Array:
    """Apply dense layers to ``[n, inputs]``; the result is float32."""
    for i, layer in enumerate(layers):
        x = x.astype(dtype) @ layer["kernel"].astype(dtype) + layer["bias"].astype(dtype)
        if i < len(layers) - 1:
            wide = x.astype(jnp.float32)
            mean = wide.mean(axis=-1, keepdims=True)
            variance = ((wide - mean) ** 2).mean(axis=-1, keepdims=True)
            x = jax.nn.gelu(((wide - mean) * jax.lax.rsqrt(variance + 1e-6)).astype(dtype))
    return x.astype(jnp.float32)


def policy(actor: Params, inputs: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Mean and deviation of the action before tanh, each ``[n, action]``."""
    mean, spread = jnp.split(apply_layers(actor, inputs, dtype), 2, axis=-1)
    low, high = _LOG_STD
    middle, half = (low + high) / 2, (high - low) / 2
    start = jnp.arctanh(-middle / half)  # so that the first deviation is 1
    return mean, jnp.exp(middle + half * jnp.tanh(spread + start))


def draw_action(
    actor: Params, inputs: jax.Array, key: jax.Array, dtype: Any
) -> tuple[jax.Array, jax.Array]:
    """Draw actions ``[n, action]`` and return their log probabilities ``[n]``."""
    mean, deviation = policy(actor, inputs, dtype)
    noise = jax.random.normal(key, mean.shape)
    raw = mean + deviation * noise
    log_gauss = -0.5 * noise**2 - jnp.log(deviation) - 0.5 * jnp.log(2 * jnp.pi)
    log_slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
    return jnp.tanh(raw), (log_gauss - log_slope).sum(axis=-1)


def support(settings: ExpertSettings) -> jax.Array:
    """Points of the categorical values ``[atoms]``, finer near 0."""
    low, high = (jnp.arcsinh(v / settings.fine) for v in (settings.lowest, settings.highest))
    return settings.fine * jnp.sinh(jnp.linspace(low, high, settings.atoms))


def spread_over(points: jax.Array, values: jax.Array, weights: jax.Array) -> jax.Array:
    """Give values ``[n, m]`` with weights to their neighbours among points ``[a]``, ``[n, a]``.

    Linear between neighbours, so that means are kept; values beyond the ends go to the ends.
    """
    far = 1e30  # neighbours of the ends: no share is lost to them
    left = jnp.concatenate([points[:1] - far, points[:-1]])
    right = jnp.concatenate([points[1:], points[-1:] + far])
    values = jnp.clip(values, points[0], points[-1])[:, :, None]
    rising, falling = (values - left) / (points - left), (right - values) / (right - points)
    shares = jnp.clip(jnp.minimum(rising, falling), 0.0, 1.0)
    return (weights[:, :, None] * shares).sum(axis=1)


def critic_logits(critic: Params, inputs: jax.Array, actions: jax.Array, dtype: Any) -> jax.Array:
    """Logits of both critics, ``[2, n, atoms]``."""
    both = jnp.concatenate([inputs, actions], axis=-1)
    return jax.vmap(lambda layers: apply_layers(layers, both, dtype))(critic)


def normalize(normalizer: Normalizer, inputs: jax.Array) -> jax.Array:
    """Scale inputs by what was seen so far, within ±10."""
    return jnp.clip((inputs - normalizer.mean) / deviation(normalizer), -10.0, 10.0)


def deviation(normalizer: Normalizer) -> jax.Array:
    """What inputs are divided by; never tiny."""
    return jnp.sqrt(normalizer.variance + 1e-4)


def _updated(normalizer: Normalizer, inputs: jax.Array) -> Normalizer:
    """Merge the moments of new inputs ``[n, inputs]`` into the running ones."""
    number = normalizer.number + len(inputs)
    share = len(inputs) / number
    off = inputs.mean(axis=0) - normalizer.mean
    variance = (1 - share) * normalizer.variance + share * inputs.var(axis=0)
    return Normalizer(
        number, normalizer.mean + share * off, variance + share * (1 - share) * off**2
    )


def _adam(
    params: Params, grads: Params, moments: Moments, rate: float, decay: float = 0.0
) -> tuple[Params, Moments]:
    """One step of Adam (0.9, 0.95) with decoupled weight decay."""
    steps = moments.steps + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments.first, grads)
    second = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g**2, moments.second, grads)
    unbias1, unbias2 = 1 - 0.9**steps, 1 - 0.95**steps

    def moved(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        direction = (m / unbias1) / (jnp.sqrt(v / unbias2) + 1e-8)
        return p - rate * (direction + decay * p)

    return jax.tree.map(moved, params, first, second), Moments(first, second, steps)


class SAC:
    """The learner of one body: makes the state, acts, stores steps, updates."""

    def __init__(self, body: type[Body], settings: ExpertSettings) -> None:
        self.body, self.settings = body, settings
        self.slots = settings.replay // settings.environments
        self.evaluating = max(1, round(settings.evaluating * settings.environments))
        """The first so many environments act by mode + noise."""
        self._dtype = jnp.bfloat16 if settings.half else jnp.float32
        self._points = support(settings)
        self._choose = jax.jit(self._act)
        self.insert: Callable[..., Replay] = jax.jit(self._insert, donate_argnums=0)
        self.update: Callable[..., tuple[State, Scalars]] = jax.jit(self._update, donate_argnums=0)

    def init(self, seed: int) -> State:
        body, s = self.body, self.settings
        size = body.inputs(jnp.ones((1, body.observation_size)), jnp).shape[1]
        key, actor_key, *critic_keys = jax.random.split(jax.random.key(seed), 4)
        actor = init_layers(actor_key, [size, *s.actor, 2 * body.action_size])
        sizes = [size + body.action_size, *s.critic, s.atoms]
        critic = jax.vmap(lambda k: init_layers(k, sizes))(jnp.stack(critic_keys))
        normalizer = Normalizer(jnp.asarray(1.0), jnp.zeros(size), jnp.ones(size))
        return self.state(actor, critic, jnp.log(s.temperature), normalizer, key)

    def state(
        self,
        actor: Params,
        critic: Params,
        log_temperature: Any,
        normalizer: Normalizer,
        key: jax.Array,
    ) -> State:
        """Put a state together; targets and Adam's moments start anew."""
        actor, critic, normalizer = jax.tree.map(
            lambda x: jnp.asarray(x, jnp.float32), (actor, critic, normalizer)
        )
        log_temperature = jnp.asarray(log_temperature, jnp.float32)
        moments = (_fresh(actor), _fresh(critic), _fresh(log_temperature))
        target = jax.tree.map(jnp.copy, critic)  # both are given away to the update
        return State(actor, critic, target, log_temperature, moments, normalizer, key)

    def empty(self) -> Replay:
        columns = 2 * self.body.observation_size + self.body.action_size + 5
        shape = (self.slots, self.settings.environments, columns)
        return Replay(jnp.zeros(shape, jnp.float32), jnp.zeros((), jnp.int32))

    def act(
        self, state: State, observations: jax.Array, uniform: jax.Array
    ) -> tuple[jax.Array, State]:
        """Choose actions ``[environments, action]``, evenly random ones where ``uniform`` says so.

        Returns the state with the observations counted in.
        """
        actions, normalizer, key = self._choose(
            state.actor, state.normalizer, state.key, observations, uniform
        )
        return actions, state._replace(normalizer=normalizer, key=key)

    def _act(
        self,
        actor: Params,
        normalizer: Normalizer,
        key: jax.Array,
        observations: jax.Array,
        uniform: jax.Array,
    ) -> tuple[jax.Array, Normalizer, jax.Array]:
        key, own, noise_key, random_key = jax.random.split(key, 4)
        inputs = self.body.inputs(observations, jnp)
        normalizer = _updated(normalizer, inputs)
        scaled = normalize(normalizer, inputs)
        drawn, _ = draw_action(actor, scaled, own, jnp.float32)
        mean, _ = policy(actor, scaled, jnp.float32)
        noisy = jnp.tanh(mean) + NOISE * jax.random.normal(noise_key, mean.shape)
        random = jax.random.uniform(random_key, mean.shape, minval=-1.0, maxval=1.0)
        judged = jnp.arange(len(mean))[:, None] < self.evaluating
        actions = jnp.where(judged, jnp.clip(noisy, -1, 1), jnp.where(uniform, random, drawn))
        return actions, normalizer, key

    def _insert(
        self, replay: Replay, observations: jax.Array, actions: jax.Array, outcome: jax.Array
    ) -> Replay:
        """Store one step of every environment; outcome: next observation, features, ended, cut."""
        row = jnp.concatenate([observations, actions, outcome], axis=1)
        slot = replay.inserted % self.slots
        rows = jax.lax.dynamic_update_index_in_dim(replay.rows, row, slot, axis=0)
        return Replay(rows, replay.inserted + 1)

    def draw(self, replay: Replay, normalizer: Normalizer, key: jax.Array) -> StepBatch:
        """Draw a batch of stored steps, some of them under another command."""
        s, body = self.settings, self.body
        time_key, env_key, angle_key = jax.random.split(key, 3)
        filled = jnp.minimum(replay.inserted, self.slots)
        age = jax.random.randint(time_key, (s.batch,), s.returns, filled + 1)
        env = jax.random.randint(env_key, (s.batch,), 0, s.environments)
        steps = [
            self._columns(replay.rows[(replay.inserted - age + k) % self.slots, env])
            for k in range(s.returns)
        ]
        observations, actions = steps[0][:2]
        commands = self._relabel(observations[:, -2:], angle_key)
        start = jnp.concatenate([observations[:, :-2], commands], axis=1)
        reward, going, weight = jnp.zeros(s.batch), jnp.ones(s.batch), jnp.ones(s.batch)
        follows, following = jnp.ones(s.batch), start
        for _, _, after, features, ended, cut in steps:
            reward += going * weight * body.reward(features, commands, jnp)
            weight = jnp.where(going > 0, s.discount * weight, weight)
            commands = jnp.where(going[:, None] > 0, body.advance(commands, features), commands)
            here = jnp.concatenate([after[:, :-2], commands], axis=1)
            following = jnp.where(going[:, None] > 0, here, following)
            follows = jnp.where((going > 0) & (ended > 0), 0.0, follows)
            going = going * (1 - jnp.maximum(ended, cut))
        return StepBatch(
            normalize(normalizer, body.inputs(start, jnp)),
            actions,
            reward,
            weight * follows,
            normalize(normalizer, body.inputs(following, jnp)),
        )

    def _columns(self, rows: jax.Array) -> tuple[jax.Array, ...]:
        """Take rows apart: observation, action, next observation, features, ended, cut."""
        seen, moved = self.body.observation_size, self.body.action_size
        observations, actions, after, features, ends = jnp.split(
            rows, [seen, seen + moved, 2 * seen + moved, 2 * seen + moved + 3], axis=1
        )
        return observations, actions, after, features, ends[:, 0], ends[:, 1]

    def _relabel(self, commands: jax.Array, key: jax.Array) -> jax.Array:
        """Turn the commands of the first rows to anywhere, keeping their lengths."""
        count = round(self.settings.relabelled * len(commands))
        angles = jax.random.uniform(key, (count,), maxval=2 * jnp.pi)
        length = jnp.linalg.norm(commands[:count], axis=1, keepdims=True)
        turned = length * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.concatenate([turned, commands[count:]], axis=0)

    def _update(self, state: State, replay: Replay) -> tuple[State, Scalars]:
        """Make all updates of one vector step; returns the last ones' scalars."""

        def one(state: State, _: None) -> tuple[State, Scalars]:
            seen: Scalars = {}
            for _critic in range(self.settings.critic_updates):
                key, draw_key, action_key = jax.random.split(state.key, 3)
                batch = self.draw(replay, state.normalizer, draw_key)
                state, scalars = self._update_critic(state._replace(key=key), batch, action_key)
                seen |= scalars
            key, action_key = jax.random.split(state.key)
            state, scalars = self._update_actor(state._replace(key=key), batch, action_key)
            return state, seen | scalars

        state, scalars = jax.lax.scan(one, state, None, length=self.settings.actor_updates)
        return state, jax.tree.map(lambda x: x[-1], scalars)

    def _update_critic(
        self, state: State, batch: StepBatch, key: jax.Array
    ) -> tuple[State, Scalars]:
        """Move the critics towards the mean of their targets' values, without an entropy term."""
        s, dtype = self.settings, self._dtype
        action, _ = draw_action(state.actor, batch.following, key, dtype)
        logits = critic_logits(state.target, batch.following, action, dtype)
        weights = jax.nn.softmax(logits).mean(axis=0)
        values = batch.rewards[:, None] + batch.discounts[:, None] * self._points
        goal = spread_over(self._points, values, weights)

        def loss(critic: Params) -> jax.Array:
            logits = critic_logits(critic, batch.inputs, batch.actions, dtype)
            return -(goal * jax.nn.log_softmax(logits)).sum(axis=(0, 2)).mean()

        value, grads = jax.value_and_grad(loss)(state.critic)
        critic, moments = _adam(state.critic, grads, state.moments[1], s.rate, s.decay)
        target = jax.tree.map(lambda t, c: t + s.target_rate * (c - t), state.target, critic)
        all_moments = (state.moments[0], moments, state.moments[2])
        state = state._replace(critic=critic, target=target, moments=all_moments)
        return state, {"critic_loss": value, "value": (goal * self._points).sum(axis=1).mean()}

    def _update_actor(
        self, state: State, batch: StepBatch, key: jax.Array
    ) -> tuple[State, Scalars]:
        """Raise value and entropy, and move the temperature towards the wanted entropy."""
        s, dtype = self.settings, self._dtype

        def loss(actor: Params) -> tuple[jax.Array, jax.Array]:
            action, log_prob = draw_action(actor, batch.inputs, key, dtype)
            logits = critic_logits(state.critic, batch.inputs, action, dtype)
            value = (jax.nn.softmax(logits) * self._points).sum(axis=-1).mean()
            temperature = jnp.exp(state.log_temperature)
            return temperature * log_prob.mean() - value / s.value_scale, -log_prob.mean()

        (_, entropy), grads = jax.value_and_grad(loss, has_aux=True)(state.actor)
        actor, actor_moments = _adam(state.actor, grads, state.moments[0], s.rate, s.decay)
        surplus = entropy - s.entropy * self.body.action_size
        log_temperature, moments = _adam(
            state.log_temperature, surplus, state.moments[2], s.temperature_rate
        )
        state = state._replace(
            actor=actor,
            log_temperature=log_temperature,
            moments=(actor_moments, state.moments[1], moments),
        )
        return state, {"entropy": entropy, "temperature": jnp.exp(log_temperature)}


def _fresh(params: Params) -> Moments:
    zeros = partial(jax.tree.map, jnp.zeros_like)
    return Moments(zeros(params), zeros(params), jnp.zeros((), jnp.int32))
