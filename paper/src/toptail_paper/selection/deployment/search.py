"""Best-of-K at every step of an episode, for all K and all episodes at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from toptail.lab.critics.base import TARGET, Critic, Params, TrainedCritic, in_blocks
from toptail.lab.proposals.denoiser import Diffusion, denoise, row_keys, sampling_path
from toptail.lab.proposals.diffusion import DiffusionPolicy
from toptail_paper.selection.deployment.config import SearchConfig
from toptail_paper.selection.deployment.episodes import Episodes, Share, follow, success

EXACT = "highest"
"""Precision of the products when candidates are scored.

Scores that hardly differ over the actions are compared here. A GPU's default rounds the factors
to ten bits, which would decide between candidates.
"""


def search_episodes(
    config: SearchConfig,
    critic: TrainedCritic,
    policy: DiffusionPolicy,
    episodes: Episodes,
    tick: Share | None = None,
) -> dict[str, dict[str, Any]]:
    """Run every episode once for every K; each K's success, by K.

    All draws depend on the episode and the step alone: episodes of different K, or of different
    critics, that have not parted yet meet the same behaviour sample and the same candidates.
    """
    chooser = Chooser(config, critic, policy, episodes.goals)
    every = episodes.take(np.tile(np.arange(len(episodes)), len(config.ks)))
    reached = follow(every, chooser, tick).reshape(len(config.ks), -1)
    return {
        str(k): success(episodes.goal, own, episodes.limit)
        for k, own in zip(config.ks, reached, strict=True)
    }


class Chooser:
    """The policy that searches; see `choose` for the order of its rows.

    It is called once per step. Only states go to the device, and only actions come back.
    """

    def __init__(
        self,
        config: SearchConfig,
        critic: TrainedCritic,
        policy: DiffusionPolicy,
        goals: NDArray[np.float32],
    ) -> None:
        readout = critic.readout or critic.critic.deployed
        self._fixed = (config, policy.model, policy.action_dim, critic.critic, readout)
        params = policy.model.compute_params(policy.params[TARGET])
        self._params = jax.device_put((params, critic.params))
        self._goals, self._episode = jax.device_put((goals, np.arange(len(goals))))
        self._step = jnp.int32(0)

    def __call__(self, states: NDArray[np.float32]) -> NDArray[np.float32]:
        about = self._goals, self._episode, self._step
        actions, self._step = choose(*self._fixed, self._params, *about, states)
        return np.asarray(actions)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def choose(
    config: SearchConfig,
    model: Diffusion,
    dim: int,
    critic: Critic,
    readout: str,
    params: tuple[Params, Params],
    goals: jax.Array,
    episode: jax.Array,
    step: jax.Array,
    states: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """One step of all episodes: actions [len(ks) n, a], and the next step's number.

    Parameters
    ----------
    model, dim, critic, readout, params
        The behaviour model and the width a of an action; the critic's family and the name of its
        scalar; the parameters of both.
    goals, episode, states
        [n, g] goals of the n episodes, and their numbers [n]; [len(ks) n, s] states: n rows for the
        first K, n for the second, and so on.
    """
    ks, n = config.ks, goals.shape[0]
    key_base, key_noise = jax.random.split(jax.random.key(config.seed))
    keys = jnp.tile(row_keys(key_base, episode, step), len(ks))
    context = jnp.concatenate([states, jnp.tile(goals, (len(ks), 1))], axis=-1)

    def predict(x: jax.Array, level: jax.Array) -> jax.Array:
        return model.predict(params[0], x, level, context)

    way = sampling_path(model.schedule, config.ddim_steps)
    base = denoise(predict, way, keys, dim, fresh_noise=False).reshape(len(ks), n, dim)

    def draw(key: jax.Array) -> jax.Array:
        return jax.random.normal(key, (ks[-1], dim))

    noise = config.noise * jax.vmap(draw)(row_keys(key_noise, episode, step))
    if config.keep_base:
        noise *= (jnp.arange(ks[-1]) > 0)[:, None]

    candidates = [jnp.clip(base[i][:, None] + noise[:, :k], -1, 1) for i, k in enumerate(ks)]
    states = states.reshape(len(ks), n, -1)
    # One call of the critic for all candidates: K of them for each row of that K.
    rows = [
        (jnp.repeat(states[i], k, 0), candidates[i].reshape(n * k, dim), jnp.repeat(goals, k, 0))
        for i, k in enumerate(ks)
    ]
    with jax.default_matmul_precision(EXACT):
        columns = (jnp.concatenate(column) for column in zip(*rows, strict=True))
        scores = in_blocks(critic.readouts()[readout])(params[1], *columns)
    ends = np.cumsum([n * k for k in ks])
    chosen = []
    for k, own, end in zip(ks, candidates, ends, strict=True):
        best = jnp.argmax(scores[end - n * k : end].reshape(n, k), axis=1)
        chosen.append(own[jnp.arange(n), best])
    return jnp.concatenate(chosen), step + 1
