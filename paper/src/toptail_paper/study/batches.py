"""Batches of runs without folders of their own, each trained by one compiled program.

`train_seeds` trains the seeds of one configuration, each on its own data. `train_batch` trains runs
whose configurations differ in numbers alone (temperature, weights, discounts, goal shares, learning
rate): these numbers are arrays that the program is mapped over, everything else is compiled in.
What changes shapes or the program itself (widths, the loss, LayerNorm, the reward) needs another
batch: `batches` says which configurations belong together.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError
from toptail.lab.critics.base import Batch, Info, Params
from toptail.lab.training.checkpoints import arrays_of, find_checkpoints, save_checkpoint
from toptail.lab.training.data import OfflineData
from toptail.lab.training.loop import (
    TrainConfig,
    TrainState,
    check_fits,
    free_bytes,
    init_state,
    keys_of,
    program_bytes,
    run_steps,
    shapes_of,
    take_row,
    width,
    with_twin,
)
from toptail.lab.training.runs import digest
from toptail.progress import Tick

CHUNK = 500
"""Steps between two ticks, at most."""


@dataclass(frozen=True)
class Snapshot:
    """Every seed's parameters after some number of steps."""

    step: int
    """Optimizer steps done."""
    params: dict[int, Params]
    info: dict[int, dict[str, float]]
    """By seed: each logged scalar, mean over the chunk of steps that ended here."""


def train_seeds(
    config: TrainConfig,
    data: dict[int, Batch],
    snapshots: Sequence[int] | None = None,
    tick: Tick | None = None,
) -> Iterator[Snapshot]:
    """Train one run per seed, all in one jitted scan, and yield a snapshot at each given step.

    A seed's parameters are the same to the last bit whichever other seeds are in the batch (see
    `programs.width`). The seeds' data sets have one size. The steps of ``snapshots`` ascend to
    ``config.steps``, which is the only one by default.
    """
    wanted = list(snapshots) if snapshots else [config.steps]
    if wanted != sorted(set(wanted)) or wanted[0] < 1 or wanted[-1] != config.steps:
        raise InputError(
            f"Snapshots must ascend from at least 1 to the run's length {config.steps}, "
            f"but they are {wanted}."
        )
    seeds = list(data)
    rows = with_twin(seeds)
    stacked = jax.tree.map(lambda *columns: jnp.stack(columns), *(data[s] for s in rows))
    chunk = math.gcd(CHUNK, *wanted)
    advance = _advance(replace(config, steps=chunk))
    # Not compiled as a whole: drawing the weights layer by layer gives the same bits, and the
    # compiled draws serve every critic with layers of the same size.
    state = jax.vmap(partial(init_state, config))(keys_of(rows), stacked)
    for done in range(chunk, config.steps + 1, chunk):
        state, info = advance(state, stacked)
        jax.block_until_ready(state)
        if tick is not None:
            tick("training", done / config.steps)
        if done in wanted:
            yield _snapshot(done, seeds, state.params, info)


@lru_cache(maxsize=16)
def _advance(config: TrainConfig) -> Any:
    """The compiled function (state, data) -> (state, info) of ``config.steps`` steps of all seeds.

    ``config.steps`` is a chunk's length here: runs that differ in their length share the program.
    """
    steps = jax.vmap(lambda state, data: run_steps(config, state, data, config.steps))
    return jax.jit(steps, donate_argnums=0)


def _snapshot(step: int, seeds: list[int], params: Params, info: Info) -> Snapshot:
    host: Params = jax.tree.map(np.asarray, params)
    means = {name: np.asarray(values, np.float64).mean(axis=1) for name, values in info.items()}
    return Snapshot(
        step,
        {seed: take_row(host, i) for i, seed in enumerate(seeds)},
        {seed: {k: float(v[i]) for k, v in means.items()} for i, seed in enumerate(seeds)},
    )


NUMBERS: Final = frozenset(
    {"temperature", "alpha", "td_weight", "positive_weight", "expectile", "gamma"}
    | {"value_range", "positive_gamma", "current", "future", "learning_rate"}
)
"""Settings whose value may differ within a batch."""

Numbers: TypeAlias = dict[str, Any]
"""Path of a setting (``learner.bellman.gamma``) to its value, or to one value for each run."""


@dataclass(frozen=True)
class BatchRun:
    """One run of a batch."""

    config: TrainConfig
    seed: int
    """Seed of the first weights and of the batches."""


def numbers_of(config: Any, at: str = "") -> dict[str, float]:
    """Every setting of a configuration that may differ within a batch, by its path."""
    found: dict[str, float] = {}
    for field in fields(config):
        value, place = getattr(config, field.name), f"{at}{field.name}"
        if is_dataclass(value):
            found |= numbers_of(value, f"{place}.")
        elif field.name in NUMBERS and isinstance(value, float | int):
            found[place] = float(value)
    return found


def with_numbers(config: Any, numbers: Mapping[str, Any]) -> Any:
    """A copy of a configuration with other numbers, which may be traced; they are not checked."""
    changed = copy.copy(config)
    for place, value in numbers.items():
        name, _, rest = place.partition(".")
        inner = with_numbers(getattr(changed, name), {rest: value}) if rest else value
        object.__setattr__(changed, name, inner)
    return changed


def batches(configs: Sequence[TrainConfig]) -> list[list[int]]:
    """Which configurations can run as one program, as lists of their places in ``configs``."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, config in enumerate(configs):
        numbers = numbers_of(config)
        alike = with_numbers(config, dict.fromkeys(numbers, 0.0))
        found.setdefault((alike, *numbers), []).append(place)
    return list(found.values())


def train_batch(
    runs: Sequence[BatchRun], data: OfflineData, steps: Sequence[int], folder: Path, data_hash: str
) -> Iterator[tuple[int, list[Params]]]:
    """Train the runs of one batch together; yields all runs' parameters at each of ``steps``.

    The state is stored in ``folder`` every few minutes, and after each yield when the caller asks
    for the next one. Killed at any moment, the same call resumes from the stored state, and does
    not yield again what the caller has dealt with.
    """
    batch = digest({"runs": [repr(run) for run in runs], "data": data_hash})
    attempts = dict.fromkeys(range(len(runs)), 1)
    config, numbers = _shared([run.config for run in runs])
    rows = [i % len(runs) for i in range(width(len(runs)))]
    own = {at: jnp.asarray([xs[i] for i in rows], jnp.float32) for at, xs in numbers.items()}
    keys = keys_of([runs[i].seed for i in rows])
    stored = next(
        (x for x in find_checkpoints(folder) if x.config_hash == batch and x.is_sound()), None
    )
    if stored is None:
        state, done = _start(config)(keys, own, data), 0
    else:
        state, done = stored.load(_shapes(config, keys, own, data), rows), stored.step
    saved = time.monotonic()
    for wanted in steps:
        if wanted <= done:
            continue
        for length in _chunks(wanted - done):
            state = _program(config, length, state, own, data)(state, own, data)
            done += length
            # The clock is read once the device is done; waiting after every chunk costs little.
            jax.block_until_ready(state.params)
            if time.monotonic() - saved > SAVE_SECONDS and done < wanted:
                save_checkpoint(folder, batch, attempts, done, arrays_of(state, len(runs)))
                saved = time.monotonic()
        host: Params = jax.tree.map(np.asarray, state.params)
        yield done, [take_row(host, i) for i in range(len(runs))]
        if wanted < steps[-1]:
            save_checkpoint(folder, batch, attempts, done, arrays_of(state, len(runs)))
            saved = time.monotonic()


BATCH_CHUNK: Final = 1_000
"""Steps of one compiled program, at most."""

SAVE_SECONDS: Final = 150.0
"""Seconds between two stored states."""


def _chunks(steps: int) -> list[int]:
    """Lengths of the programs that add up to ``steps``: whole chunks, then the rest."""
    return [BATCH_CHUNK] * (steps // BATCH_CHUNK) + (
        [steps % BATCH_CHUNK] if steps % BATCH_CHUNK else []
    )


def _shared(configs: Sequence[TrainConfig]) -> tuple[TrainConfig, dict[str, list[float]]]:
    """The configuration that the program is compiled for, and the numbers that differ."""
    each = [numbers_of(config) for config in configs]
    columns = {place: [numbers[place] for numbers in each] for place in each[0]}
    return configs[0], {place: xs for place, xs in columns.items() if len(set(xs)) > 1}


@lru_cache(maxsize=8)
def _start(config: TrainConfig) -> Any:
    def init(key: jax.Array, numbers: Numbers, data: OfflineData) -> TrainState:
        return init_state(with_numbers(config, numbers), key, data)

    return jax.jit(jax.vmap(init, in_axes=(0, 0, None)))


def _shapes(config: TrainConfig, keys: jax.Array, numbers: Numbers, data: OfflineData) -> Any:
    return jax.eval_shape(_start(config), keys, numbers, data)


def _program(
    config: TrainConfig, steps: int, state: TrainState, numbers: Numbers, data: OfflineData
) -> Any:
    shapes = jax.eval_shape(lambda *x: x, state, numbers)
    leaves, tree = jax.tree.flatten((*shapes, shapes_of(data)))
    return _compiled(config, steps, tuple(leaves), tree)


@lru_cache(maxsize=4)
def _compiled(config: TrainConfig, steps: int, leaves: tuple[Any, ...], tree: Any) -> Any:
    def advance(state: TrainState, numbers: Numbers, data: OfflineData) -> TrainState:
        return run_steps(with_numbers(config, numbers), state, data, steps)[0]

    shapes = jax.tree.unflatten(tree, leaves)
    mapped = jax.jit(jax.vmap(advance, in_axes=(0, 0, None)), donate_argnums=0)
    program = mapped.lower(*shapes).compile()
    check_fits("Training these runs at once", program_bytes(program), free_bytes())
    return program
