"""Walkers by OGBench's published recipe: plain SAC at its sizes, batch and number of steps.

    toptail-paper train-walker ant --recipe published --out DIR

The shipped walkers are trained by a faster learner and walk faster than OGBench's own did
(docs/experts.md). Data depends on who collected it, so this trains a walker as the published data's
walkers were trained (settings from OGBench's ``main_sac.py`` and ``agents/sac.py``): one Adam at
1e-4 for actor, critics and temperature, batches of 256, the smaller of two critics with an entropy
term in its target, no observation scaling, and the last walker, not the best of several.

What differs: simulations are stepped side by side instead of one alone, and the updates that
belong to a vector step do not see that step yet. Nothing else is known to differ.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from toptail.errors import InputError
from toptail.io.files import atomic
from toptail.io.json_files import write_json
from toptail.lab.training.runs import machine, now
from toptail.lab.walkers.walker import Walker
from toptail.provenance import commit
from toptail.stats.resample import available_threads
from toptail_paper.walkers.bodies import body_named
from toptail_paper.walkers.evaluate import RunningEpisodes, Tally, evaluate

Params = Any
_LOG_STD: Final = (-5.0, 2.0)
_SAVE_SECONDS: Final = 120.0


@dataclass(frozen=True)
class PublishedRecipe:
    """Sizes and rates of one training, as OGBench's commands give them."""

    steps: int
    """Environment steps."""
    interval: int = 1
    """Environment steps per update."""
    layer_norm: bool = False
    """Whether a LayerNorm follows each hidden layer of the critics."""
    environments: int = 16
    """Simulations that are stepped together."""
    hidden: tuple[int, ...] = (256, 256)
    """Widths of the hidden layers of the actor and of both critics."""
    batch: int = 256
    """Steps per update."""
    rate: float = 1e-4
    """Adam's learning rate."""
    discount: float = 0.99
    """Discount per environment step."""
    target_rate: float = 0.005
    """Share of the critics that their targets take over per update."""
    entropy: float = -0.5
    """Entropy per action dimension that the temperature aims at."""
    replay: int = 1_000_000
    """Steps that the replay holds."""
    random_steps: int = 10_000
    """Steps of evenly random actions before the first update."""

    def __post_init__(self) -> None:
        if self.environments % self.interval or self.replay % self.environments:
            raise InputError(
                f"{self.environments} environments do not fit one update in {self.interval} steps "
                f"and a replay of {self.replay}: take a divisor of the one, a multiple of the other"
            )


RECIPES: Final = {
    "ant": PublishedRecipe(steps=400_000),
    "antball": PublishedRecipe(
        steps=12_000_000, interval=4, layer_norm=True, environments=128, replay=1_000_064
    ),
}
"""By body; the humanoid's 10M updates are not offered here."""


class ReplayRows(NamedTuple):
    """Stored steps, or a batch of them."""

    observations: jax.Array
    actions: jax.Array
    rewards: jax.Array
    masks: jax.Array
    """0 where nothing follows."""
    following: jax.Array


class LearnerState(NamedTuple):
    """Everything that learning changes, except the replay."""

    params: Params
    """``actor``, ``critic`` (a pair, stacked) and ``log_alpha``."""
    target: Params
    """The critics' slow copies."""
    moments: Any
    key: jax.Array


class Noise(NamedTuple):
    """Normal numbers for the actions of one loss, each ``[batch, action]``."""

    following: jax.Array
    here: jax.Array


def init_params(recipe: PublishedRecipe, observation: int, action: int, key: jax.Array) -> Params:
    """Draw networks with Glorot's uniform kernels; the actor's last layer a tenth as large."""
    actor_key, mean_key, std_key, *critic_keys = jax.random.split(key, 5)
    sizes = [observation, *recipe.hidden]
    last = (recipe.hidden[-1], action)
    heads = [_kernel(k, *last, scale=0.01) for k in (mean_key, std_key)]
    actor = _layers(actor_key, sizes)
    actor.append({"kernel": jnp.concatenate(heads, axis=1), "bias": jnp.zeros(2 * action)})
    sizes = [observation + action, *recipe.hidden, 1]

    def critic(key: jax.Array) -> Params:
        norms = [{"scale": jnp.ones(n), "shift": jnp.zeros(n)} for n in recipe.hidden]
        return {"layers": _layers(key, sizes), "norms": norms if recipe.layer_norm else []}

    return {
        "actor": actor,
        "critic": jax.vmap(critic)(jnp.stack(critic_keys)),
        "log_alpha": jnp.zeros(()),
    }


def _layers(key: jax.Array, sizes: Sequence[int]) -> list[dict[str, jax.Array]]:
    keys = jax.random.split(key, len(sizes) - 1)
    return [
        {"kernel": _kernel(k, inner, outer), "bias": jnp.zeros(outer)}
        for k, (inner, outer) in zip(keys, pairwise(sizes), strict=True)
    ]


def _kernel(key: jax.Array, inner: int, outer: int, scale: float = 1.0) -> jax.Array:
    """Uniform with variance ``2 scale / (inner + outer)``."""
    bound = (6.0 * scale / (inner + outer)) ** 0.5
    return jax.random.uniform(key, (inner, outer), minval=-bound, maxval=bound)


def policy(actor: Params, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and logarithm of the deviation of the action before tanh, each ``[n, action]``."""
    x = observations
    for layer in actor[:-1]:
        x = jax.nn.gelu(x @ layer["kernel"] + layer["bias"])
    mean, log_std = jnp.split(x @ actor[-1]["kernel"] + actor[-1]["bias"], 2, axis=-1)
    return mean, jnp.clip(log_std, *_LOG_STD)


def squashed(
    actor: Params, observations: jax.Array, noise: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Actions ``[n, action]`` made of normal numbers, and their log probabilities ``[n]``."""
    mean, log_std = policy(actor, observations)
    raw = mean + jnp.exp(log_std) * noise
    log_gauss = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
    log_slope = 2 * (jnp.log(2.0) - raw - jax.nn.softplus(-2 * raw))
    return jnp.tanh(raw), (log_gauss - log_slope).sum(axis=-1)


def q_values(critic: Params, observations: jax.Array, actions: jax.Array) -> jax.Array:
    """Both critics' values ``[2, n]``; GELU, then LayerNorm where there is one."""
    both = jnp.concatenate([observations, actions], axis=-1)

    def one(critic: Params) -> jax.Array:
        x = both
        *hidden, last = critic["layers"]
        for i, layer in enumerate(hidden):
            x = jax.nn.gelu(x @ layer["kernel"] + layer["bias"])
            if critic["norms"]:
                norm = critic["norms"][i]
                off = x - x.mean(axis=-1, keepdims=True)
                scaled = off * jax.lax.rsqrt((off**2).mean(axis=-1, keepdims=True) + 1e-6)
                x = scaled * norm["scale"] + norm["shift"]
        value: jax.Array = (x @ last["kernel"] + last["bias"])[:, 0]
        return value

    both_values: jax.Array = jax.vmap(one)(critic)
    return both_values


def loss(
    params: Params, target: Params, batch: ReplayRows, noise: Noise, recipe: PublishedRecipe
) -> jax.Array:
    """The sum of the critics', the actor's and the temperature's losses.

    Gradients stay apart: the critics' target and the values that the actor raises are constants
    to the other's part.
    """
    fixed = jax.lax.stop_gradient(params)
    alpha = jnp.exp(fixed["log_alpha"])
    action, log_prob = squashed(fixed["actor"], batch.following, noise.following)
    soft = q_values(target, batch.following, action).min(axis=0) - alpha * log_prob
    wanted = batch.rewards + recipe.discount * batch.masks * soft
    found = q_values(params["critic"], batch.observations, batch.actions)
    critic_loss = ((found - wanted) ** 2).mean()

    action, log_prob = squashed(params["actor"], batch.observations, noise.here)
    value = q_values(fixed["critic"], batch.observations, action).min(axis=0)
    actor_loss = (alpha * log_prob - value).mean()
    surplus = -jax.lax.stop_gradient(log_prob).mean() - recipe.entropy * action.shape[1]
    return critic_loss + actor_loss + jnp.exp(params["log_alpha"]) * surplus


class PublishedSAC:
    """The learner of one body."""

    def __init__(self, body: str, recipe: PublishedRecipe) -> None:
        kind = body_named(body)
        self.recipe, self.observation, self.action = recipe, kind.observation_size, kind.action_size
        self._adam = optax.adam(recipe.rate)
        self.act: Callable[..., tuple[jax.Array, jax.Array]] = jax.jit(self._act)
        self.insert: Callable[..., ReplayRows] = jax.jit(self._insert, donate_argnums=0)
        self.update: Callable[..., LearnerState] = jax.jit(self._update, donate_argnums=0)

    def init(self, seed: int) -> LearnerState:
        key, own = jax.random.split(jax.random.key(seed))
        params = init_params(self.recipe, self.observation, self.action, own)
        target = jax.tree.map(jnp.copy, params["critic"])
        return LearnerState(params, target, self._adam.init(params), key)

    def empty(self) -> ReplayRows:
        widths = (self.observation, self.action, None, None, self.observation)
        n = self.recipe.replay
        return ReplayRows(*(jnp.zeros((n,) if w is None else (n, w)) for w in widths))

    def _act(
        self, actor: Params, key: jax.Array, observations: jax.Array, uniform: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        key, own, random_key = jax.random.split(key, 3)
        shape = (observations.shape[0], self.action)
        drawn, _ = squashed(actor, observations, jax.random.normal(own, shape))
        random = jax.random.uniform(random_key, shape, minval=-1.0, maxval=1.0)
        return jnp.where(uniform, random, drawn), key

    def _insert(self, replay: ReplayRows, new: ReplayRows, at: jax.Array) -> ReplayRows:
        stored: ReplayRows = jax.tree.map(
            lambda rows, row: jax.lax.dynamic_update_slice_in_dim(rows, row, at, 0), replay, new
        )
        return stored

    def _update(self, state: LearnerState, replay: ReplayRows, filled: jax.Array) -> LearnerState:
        recipe = self.recipe

        def one(state: LearnerState, _: None) -> tuple[LearnerState, None]:
            key, draw_key, *noise_keys = jax.random.split(state.key, 4)
            rows = jax.random.randint(draw_key, (recipe.batch,), 0, filled)
            batch = jax.tree.map(lambda column: column[rows], replay)
            noise = Noise(*(jax.random.normal(k, (recipe.batch, self.action)) for k in noise_keys))
            grads = jax.grad(loss)(state.params, state.target, batch, noise, recipe)
            # The targets move towards the critics from before the update, as OGBench's do.
            target = jax.tree.map(
                lambda slow, now: slow + recipe.target_rate * (now - slow),
                state.target,
                state.params["critic"],
            )
            step, moments = self._adam.update(grads, state.moments)
            return LearnerState(optax.apply_updates(state.params, step), target, moments, key), None

        count = recipe.environments // recipe.interval
        return jax.lax.scan(one, state, None, length=count)[0]

    def walker(self, body: str, state: LearnerState) -> Walker:
        layers = jax.device_get(state.params["actor"])
        size = self.observation
        return Walker(
            body,
            np.zeros(size, np.float32),
            np.ones(size, np.float32),
            tuple(layer["kernel"] for layer in layers),
            tuple(layer["bias"] for layer in layers),
            published=True,
        )


def train_published(
    body: str,
    out: Path,
    seed: int = 0,
    recipe: PublishedRecipe | None = None,
    threads: int | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Train a walker by the published recipe, and store ``actor.safetensors`` and ``record.json``.

    A state every two minutes (with the replay) lets a stopped training go on; its episodes begin
    anew. Returns what the record holds, acceptance numbers among it: 128 episodes of the package's
    own starts with the collection noise, seed 7.
    """
    if body not in RECIPES:
        raise InputError(f"'{body}' has no published recipe here; {', '.join(RECIPES)} have one.")
    recipe = recipe or RECIPES[body]
    cores = threads or available_threads()
    out.mkdir(parents=True, exist_ok=True)
    learner, kept = PublishedSAC(body, recipe), out / "state.npz"
    state, replay, done, seconds = learner.init(seed), learner.empty(), 0, 0.0
    if kept.exists():
        state, replay, done, seconds = _load(kept, state, replay)
    simulations = body_named(body)(recipe.environments, cores)
    episodes = RunningEpisodes(
        simulations, np.random.default_rng([seed, done]), recipe.environments, stagger=False
    )
    begun = saved = told = monotonic()
    size, yes, no = recipe.environments, jnp.asarray(True), jnp.asarray(False)
    curve: list[dict[str, Any]] = []
    observations = jnp.asarray(episodes.observations)
    while done < recipe.steps:
        uniform = yes if done < recipe.random_steps else no
        actions, key = learner.act(state.params["actor"], state.key, observations, uniform)
        state = state._replace(key=key)
        if done >= recipe.random_steps:
            # Queued behind the choice of actions: it runs while the simulator steps.
            state = learner.update(state, replay, jnp.asarray(min(done, recipe.replay)))
        new = _stepped(episodes, np.asarray(actions))
        replay = learner.insert(replay, new, jnp.asarray(done % recipe.replay))
        observations = jnp.asarray(episodes.observations)
        done += size
        if monotonic() - told > 15 or done >= recipe.steps:
            told = monotonic()
            point = {"steps": done, **episodes.tally.numbers(simulations.seconds)}
            curve.append(point)
            tell(json.dumps(point))
            episodes.tally = Tally()
        if monotonic() - saved > _SAVE_SECONDS:
            saved = monotonic()
            _save(kept, state, replay, done, seconds + saved - begun)
    walker = learner.walker(body, state)
    walker.save(out / "actor.safetensors")
    record = {
        "body": body,
        "recipe": "published",
        "settings": asdict(recipe),
        "seed": seed,
        "seconds": seconds + monotonic() - begun,
        "acceptance": evaluate([walker], 128, 7, cores)[0],
        "curve": curve,
        "commit": commit(),
        "machine": machine(),
        "made": now(),
    }
    write_json(out / "record.json", record)
    kept.unlink(missing_ok=True)
    return record


def _stepped(episodes: RunningEpisodes, actions: np.ndarray) -> ReplayRows:
    """Take one step everywhere; what follows has the new command where one was drawn."""
    body, before = episodes.body, episodes.observations
    outcome = episodes.step(actions)
    seen = body.observation_size
    after, features = outcome[:, :seen], outcome[:, seen : seen + 3]
    ended, cut = outcome[:, -2], outcome[:, -1]
    running = (ended + cut == 0)[:, None]
    following = np.where(running, episodes.observations, after)
    rewards = np.asarray(body.reward(features, before[:, -2:]), np.float32)
    return ReplayRows(
        *map(jnp.asarray, (before, actions, rewards, 1.0 - ended, following.astype(np.float32)))
    )


def _save(path: Path, state: LearnerState, replay: ReplayRows, done: int, seconds: float) -> None:
    leaves = jax.tree.leaves((state._replace(key=jax.random.key_data(state.key)), replay))
    arrays = {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)}

    def write(target: Path) -> None:
        with target.open("wb") as file:
            np.savez(file, done=done, seconds=seconds, **arrays)  # type: ignore[arg-type]

    atomic(path, write)


def _load(
    path: Path, state: LearnerState, replay: ReplayRows
) -> tuple[LearnerState, ReplayRows, int, float]:
    with np.load(path) as file:
        like = (state._replace(key=jax.random.key_data(state.key)), replay)
        leaves, structure = jax.tree.flatten(like)
        found = [jnp.asarray(file[str(i)]) for i in range(len(leaves))]
        done, seconds = int(file["done"]), float(file["seconds"])
    state, replay = jax.tree.unflatten(structure, found)
    return state._replace(key=jax.random.wrap_key_data(state.key)), replay, done, seconds
