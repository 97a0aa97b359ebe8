"""All seeds of a run at once, in chunks that a progress bar and snapshots can step between."""

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
from toptail.lab.training.checkpoints import arrays_of, find_joint, save_joint
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, run_steps
from toptail.lab.training.offline import OfflineData
from toptail.lab.training.programs import (
    check_fits,
    free_bytes,
    keys_of,
    program_bytes,
    shapes_of,
    take_row,
    width,
    with_twin,
)
from toptail.lab.training.run_files import digest
from toptail.progress import Tick

CHUNK = 500
"""Steps between two ticks, at most."""


@dataclass(frozen=True)
class Snapshot:
    """Every seed's parameters after some number of steps."""

    step: int
    """Optimizer steps done."""

    params: dict[int, Params]
    """Parameters by seed."""

    info: dict[int, dict[str, float]]
    """By seed: each logged scalar, mean over the chunk of steps that ended here."""


def train_seeds(
    config: TrainConfig,
    data: dict[int, Batch],
    snapshots: Sequence[int] | None = None,
    tick: Tick | None = None,
) -> Iterator[Snapshot]:
    """Train one run per seed, all in one jitted scan, and yield a snapshot at each wanted step.

    The seeds do not touch: a seed's parameters are the same to the last bit whichever other
    seeds it runs with (see `programs.width`).

    The seeds' data sets are of one size. The wanted steps ascend, and the last one, which is the
    only one by default, is ``config.steps``.
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
    # Not compiled as a whole: drawing the weights piece by piece gives the same bits, and the
    # pieces serve every critic with layers of the same size.
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
    """The compiled function (state, data) -> (state, info) of ``config.steps`` steps, seeds mapped.

    It does not depend on the run's length, so that every run with the same settings in a process
    compiles once.
    """
    steps = jax.vmap(lambda state, data: run_steps(config, state, data, config.steps))
    return jax.jit(steps, donate_argnums=0)


def _snapshot(step: int, seeds: list[int], params: Params, info: Info) -> Snapshot:
    """Bring the parameters to the host and take the seeds apart."""
    host: Params = jax.tree.map(np.asarray, params)
    means = {name: np.asarray(values, np.float64).mean(axis=1) for name, values in info.items()}
    return Snapshot(
        step,
        {seed: take_row(host, i) for i, seed in enumerate(seeds)},
        {seed: {k: float(v[i]) for k, v in means.items()} for i, seed in enumerate(seeds)},
    )


NUMBERS: Final = frozenset(
    {"temperature", "alpha", "td_weight", "positive_weight", "expectile", "gamma"}
    | {"positive_gamma", "current", "future", "learning_rate"}
)
"""Settings whose value may differ from lane to lane."""

Numbers: TypeAlias = dict[str, Any]
"""Where a number stands (``learner.bellman.gamma``) -> one number, or one for each lane."""


@dataclass(frozen=True)
class Lane:
    """One run of a group."""

    config: TrainConfig
    """The learner and how it is trained."""

    seed: int
    """What its first weights and its batches follow from."""


def numbers_of(config: Any, at: str = "") -> dict[str, float]:
    """Every number of a configuration that may differ from lane to lane, by its place."""
    found: dict[str, float] = {}
    for field in fields(config):
        value, place = getattr(config, field.name), f"{at}{field.name}"
        if is_dataclass(value):
            found |= numbers_of(value, f"{place}.")
        elif field.name in NUMBERS and isinstance(value, float | int):
            found[place] = float(value)
    return found


def with_numbers(config: Any, numbers: Mapping[str, Any]) -> Any:
    """A configuration with other numbers, which may be traced; nothing is checked again."""
    changed = copy.copy(config)
    for place, value in numbers.items():
        name, _, rest = place.partition(".")
        inner = with_numbers(getattr(changed, name), {rest: value}) if rest else value
        object.__setattr__(changed, name, inner)
    return changed


def groups(configs: Sequence[TrainConfig]) -> list[list[int]]:
    """Which of the configurations run as one program, by their places in the list."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for place, config in enumerate(configs):
        numbers = numbers_of(config)
        alike = with_numbers(config, dict.fromkeys(numbers, 0.0))
        found.setdefault((alike, *numbers), []).append(place)
    return list(found.values())


def train_lanes(
    lanes: Sequence[Lane], data: OfflineData, steps: Sequence[int], folder: Path, data_hash: str
) -> Iterator[tuple[int, list[Params]]]:
    """Train the lanes of one group together; yields every lane's parameters at each wanted step.

    The state is stored in ``folder`` every few minutes, and when the caller asks for what comes
    after a wanted step, so what was yielded is done with by then. Killed at any moment, the same
    call goes on from there, and what it yielded before is not yielded again.
    """
    group = digest({"lanes": [repr(lane) for lane in lanes], "data": data_hash})
    attempts = dict.fromkeys(range(len(lanes)), 1)
    config, numbers = _shared([lane.config for lane in lanes])
    rows = [i % len(lanes) for i in range(width(len(lanes)))]
    own = {at: jnp.asarray([xs[i] for i in rows], jnp.float32) for at, xs in numbers.items()}
    keys = keys_of([lanes[i].seed for i in rows])
    stored = next((x for x in find_joint(folder) if x.config_hash == group and x.sound()), None)
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
            # Waiting for the device after every chunk, as reading the clock asks for, costs little.
            jax.block_until_ready(state.params)
            if time.monotonic() - saved > SAVE_SECONDS and done < wanted:
                save_joint(folder, group, attempts, done, arrays_of(state, len(lanes)))
                saved = time.monotonic()
        host: Params = jax.tree.map(np.asarray, state.params)
        yield done, [take_row(host, i) for i in range(len(lanes))]
        if wanted < steps[-1]:
            save_joint(folder, group, attempts, done, arrays_of(state, len(lanes)))
            saved = time.monotonic()


BATCH_CHUNK: Final = 1_000
"""Steps of one compiled program, at most."""

SAVE_SECONDS: Final = 150.0
"""How long a training goes on before its state is stored again."""


def _chunks(steps: int) -> list[int]:
    """How many steps to run at once, in order: whole chunks, then the rest."""
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
    """The compiled program of so many steps, if it fits the device."""
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
