"""Why a value head falls short: TD-Q's own values, fitted from what the head may read.

    python -m toptail_paper.zoo.fitted OUT DATASET

A network of the head's shape is fitted to the scores of TD-Q by regression, once from phi(s, a) and
psi(g) of the raw critic and once from state, action and goal, at recorded and at uniform actions.
No target is bootstrapped and no action is missing, so what the first lacks of the second is not in
phi and psi, or cannot be read from them by such a network; what the head lacks of the first is its
own training. Writes ``OUT/check/DATASET/fitted``, whose scores join the leaderboard.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import optax

from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.io.files import entries
from toptail.lab.critics.base import Params, TrainedCritic
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.networks import Stack, join
from toptail.lab.critics.value_head import SMALLEST_SPREAD
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.training.data import GoalSampling, OfflineData, device_data
from toptail.lab.training.runs import load_run, read_run, run_folder
from toptail_paper.zoo.answers import FROM_INPUTS, FROM_PHI, RAW, TDQ
from toptail_paper.zoo.beside import checked_folder, write_beside

Read = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]
"""(states, actions, goals) ``[n, ...]`` -> what is computed of them, ``[n, ...]``."""

FOLDER: Final = "fitted"
MEASURED: Final = 10_000
"""Rows by which inputs and values are scaled to unit variance."""


def fit(
    inputs: Read,
    values: Read,
    data: OfflineData,
    key: jax.Array,
    *,
    hidden: tuple[int, ...],
    steps: int,
    batch_size: int,
    learning_rate: float,
) -> Read:
    """A network of ``inputs`` that is fitted to ``values`` by least squares.

    Transitions and goals are drawn as for TD-Q; half of the actions, at random, are uniform in the
    box instead of recorded.
    """
    sampler = GoalSampling()

    def draw(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows, uniform, chosen = jax.random.split(key, 3)
        batch = sampler(rows, data, size)
        box = jax.random.uniform(uniform, batch.actions.shape, minval=-1.0, maxval=1.0)
        recorded = jax.random.bernoulli(chosen, 0.5, (size, 1))
        return batch.states, jnp.where(recorded, batch.actions, box), batch.td_goals

    scaling, initial, key = jax.random.split(key, 3)
    measured = draw(scaling, MEASURED)
    x, y = inputs(*measured), values(*measured)
    centre, spread = x.mean(axis=0), x.std(axis=0)
    spread = jnp.where(spread > SMALLEST_SPREAD, spread, 1.0)
    mean, deviation = y.mean(), y.std()
    network = Stack((("q", 1),), hidden, 1)
    params = network.init(initial, {"q": x.shape[1]})
    adam = optax.adam(learning_rate)

    def predict(params: Params, *rows: jax.Array) -> jax.Array:
        out: jax.Array = network.apply(params, {"q": (inputs(*rows) - centre) / spread})["q"]
        return out[0, :, 0]

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        params, state = carry
        rows = draw(key, batch_size)
        wanted = (values(*rows) - mean) / deviation
        grads = jax.grad(lambda p: jnp.mean((predict(p, *rows) - wanted) ** 2))(params)
        updates, state = adam.update(grads, state)
        return (optax.apply_updates(params, updates), state), None

    train = jax.jit(lambda carry, keys: jax.lax.scan(step, carry, keys)[0])
    params, _ = train((params, adam.init(params)), jax.random.split(key, steps))
    return jax.jit(partial(predict, params))


def embedded(raw: TrainedCritic) -> Read:
    """phi(s, a) and psi(g) of every copy of the encoders, side by side."""
    critic = raw.critic
    assert isinstance(critic, EmbeddingCritic)

    def embed(s: jax.Array, a: jax.Array, g: jax.Array) -> jax.Array:
        phi, psi = critic.embed(raw.params, s, a, g)
        return jnp.concatenate([*phi, *psi], axis=-1)

    return embed


def fitted_scores(runs: Path, task: str, seed: int, data: OfflineData) -> dict[str, Read]:
    """Both fits to the TD-Q of a seed, with its shape, steps and batch."""
    tdq, raw = (
        load_run(run_folder(runs / task / critic, seed), task, in_float32=True)
        for critic in (TDQ, RAW)
    )
    config = read_run(run_folder(runs / task / TDQ, seed)).config
    values = partial(tdq.critic.readouts()["q"], tdq.params)
    sizes = {name: config[name] for name in ("steps", "batch_size", "learning_rate")}
    sizes["hidden"] = tuple(config["critic_fields"]["hidden"])
    kinds = {FROM_PHI: embedded(raw), FROM_INPUTS: join}
    return {
        name: fit(inputs, values, data, jax.random.key(seed), **sizes)
        for name, inputs in kinds.items()
    }


def write_fitted(out: Path, task: str) -> Path:
    """Fit to every seed of TD-Q and raw below ``out``, score the candidates; returns the folder."""
    checked_folder(out, task)  # refused before anything is trained
    folders = entries(out / "runs" / task / TDQ, "seed-*")
    seeds = [int(folder.name.removeprefix("seed-")) for folder in folders]
    seeds = [seed for seed in seeds if run_folder(out / "runs" / task / RAW, seed).is_dir()]
    if not seeds:
        raise InputError(f"{out / 'runs' / task} has no seed of both TD-Q and raw: train them.")
    data = device_data(TaskDataset.load(str(out / "data" / f"{task}.npz")).data.train)
    scores: dict[str, Read] = {}
    for seed in seeds:
        for name, score in fitted_scores(out / "runs", task, seed, data).items():
            say(f"{name} of seed {seed} is fitted.")
            scores[f"{name}@{seed}"] = score
    return write_beside(out, task, FOLDER, scores)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m toptail_paper.zoo.fitted OUT DATASET")
    say(str(write_fitted(Path(sys.argv[1]), sys.argv[2])))
