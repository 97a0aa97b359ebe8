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
import numpy as np
import optax

from toptail.commands.terminal import say
from toptail.errors import InputError
from toptail.io.arrays import read_arrays, write_arrays
from toptail.io.files import staged_folder
from toptail.io.json_files import read_json, write_json
from toptail.lab.critics.base import Params, TrainedCritic
from toptail.lab.critics.embedding import EmbeddingCritic
from toptail.lab.critics.networks import Stack, join
from toptail.lab.tasks.files import TaskDataset
from toptail.lab.tasks.queries import load_queries
from toptail.lab.training.data import GoalSampling, OfflineData, device_data
from toptail.lab.training.runs import load_run, read_run, run_folder
from toptail_paper.zoo.leaderboard import EVERY
from toptail_paper.zoo.scores import SOURCES
from toptail_paper.zoo.summary import FROM_INPUTS, FROM_PHI

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
    learning_rate: float = 3e-4,
) -> Read:
    """A network of ``inputs`` that is fitted to ``values`` by least squares.

    Transitions and goals are drawn as for TD-Q; every second action is uniform in the box.
    """
    sampler = GoalSampling()

    def draw(key: jax.Array, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
        rows, uniform, chosen = jax.random.split(key, 3)
        batch = sampler(rows, data, size)
        box = jax.random.uniform(uniform, batch.actions.shape, minval=-1.0, maxval=1.0)
        recorded = jax.random.bernoulli(chosen, 0.5, (size, 1))
        return batch.states, jnp.where(recorded, batch.actions, box), batch.td_goals

    first, key = jax.random.split(key)
    measured = draw(first, MEASURED)
    x, y = inputs(*measured), values(*measured)
    centre, spread = x.mean(axis=0), jnp.maximum(x.std(axis=0), 1e-6)
    mean, deviation = y.mean(), y.std()
    network = Stack((("q", 1),), hidden, 1)
    params = network.init(first, {"q": x.shape[1]})
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


def _embedded(raw: TrainedCritic) -> Read:
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
        for critic in ("tdq", "raw")
    )
    config = read_run(run_folder(runs / task / "tdq", seed)).config
    values = partial(tdq.critic.readouts()["q"], tdq.params)
    sizes = {name: config[name] for name in ("steps", "batch_size")}
    sizes["hidden"] = tuple(config["critic_fields"]["hidden"])
    kinds = {FROM_PHI: _embedded(raw), FROM_INPUTS: join}
    return {
        name: fit(inputs, values, data, jax.random.key(seed), **sizes)
        for name, inputs in kinds.items()
    }


def write_fitted(out: Path, task: str) -> Path:
    """Fit to every seed of TD-Q below ``out``, score the candidates of its check; the folder."""
    folders = [out / "check" / task / name for name in (EVERY, "tdq")]
    checked = next((each for each in folders if (each / "check.json").is_file()), None)
    if checked is None:
        raise InputError(f"{folders[0]} has no check of TD-Q: run 'toptail-paper zoo' first.")
    data = device_data(TaskDataset.load(str(out / "data" / f"{task}.npz")).data.train)
    queries = load_queries(checked / "queries.npz")
    scores: dict[str, dict[str, Any]] = {source: {} for source in SOURCES}
    pools = {source: read_arrays(checked / source / "pools.npz") for source in SOURCES}
    for folder in sorted((out / "runs" / task / "raw").glob("seed-*")):
        seed = int(folder.name.removeprefix("seed-"))
        for name, score in fitted_scores(out / "runs", task, seed, data).items():
            say(f"{name} of seed {seed} is fitted.")
            for source in SOURCES:
                actions = pools[source]["actions"]
                count, size = actions.shape[:2]
                states, goals = (jnp.repeat(x, size, 0) for x in (queries.states, queries.goals))
                found = score(states, jnp.asarray(actions.reshape(count * size, -1)), goals)
                scores[source][f"scores/{name}@{seed}"] = np.asarray(found).reshape(count, size)
    home = out / "check" / task / FOLDER
    check = read_json(checked / "check.json")
    with staged_folder(home) as stage:
        for source in SOURCES:
            (stage / source).mkdir()
            table = (checked / source / "table.parquet").read_bytes()
            (stage / source / "table.parquet").write_bytes(table)
            arrays = {"actions": pools[source]["actions"], **scores[source]}
            write_arrays(stage / source / "pools.npz", arrays)
        (stage / "queries.npz").write_bytes((checked / "queries.npz").read_bytes())
        kept = {key: check[key] for key in ("record", "settings")}
        write_json(stage / "check.json", kept | {"scorers": {}})
    return home


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m toptail_paper.zoo.fitted OUT DATASET")
    say(str(write_fitted(Path(sys.argv[1]), sys.argv[2])))
