"""Runs that differ in numbers alone, side by side in one compiled program.

Seeds of one configuration are rows of a joint state already. Here each row, a lane, may also have
its own temperature, weights, discounts, goal shares or learning rate: the numbers that differ are
arrays that the program is mapped over, and everything else is compiled in. What changes shapes or
the program itself (widths, the loss, LayerNorm, the reward) makes another group.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from toptail.lab.critics.learner import Params
from toptail.lab.training.joint import arrays_of, find_joint, save_joint
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, run_steps
from toptail.lab.training.memory import check_fits, free_bytes, program_bytes
from toptail.lab.training.offline import OfflineData
from toptail.lab.training.programs import keys_of, shapes_of, take_row, width
from toptail.lab.training.run_files import digest

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


CHUNK: Final = 1_000
"""Steps of one compiled program, at most."""

SAVE_SECONDS: Final = 150.0
"""How long a training goes on before its state is stored again."""


def _chunks(steps: int) -> list[int]:
    """How many steps to run at once, in order: whole chunks, then the rest."""
    return [CHUNK] * (steps // CHUNK) + ([steps % CHUNK] if steps % CHUNK else [])


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
