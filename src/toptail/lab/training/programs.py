"""The compiled parts of a session: fresh states, and a chunk of steps for all seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from toptail.lab.critics.learner import Info, Params
from toptail.lab.training.loop import TrainConfig, TrainState, init_state, run_steps
from toptail.lab.training.offline import OfflineData

Advance: TypeAlias = Callable[[TrainState, OfflineData], tuple[TrainState, Info]]
"""(joint state, data) -> (joint state some steps later, info: each entry [seeds, steps])."""


def width(seeds: int) -> int:
    """Rows of the joint state of so many seeds.

    XLA compiles a map of width 1 differently from a wider one, so a seed that runs alone is
    given a twin: then it ends with the same bits as in company.
    """
    return max(seeds, 2)


def with_twin(seeds: Sequence[int]) -> list[int]:
    """The seed of each row of a joint state."""
    return [*seeds, *seeds][: width(len(seeds))]


def take_row(params: Params, row: int) -> Params:
    """One seed's parameters out of stacked ones on the host."""
    own: Params = jax.tree.map(lambda leaf: np.array(leaf[row]), params)
    return own


def state_shapes(config: TrainConfig, rows: int, data: OfflineData) -> TrainState:
    """Shapes of a joint state; ``data`` may hold shapes alone."""
    return _state_shapes(config, rows, shapes_of(data))


def fresh_state(config: TrainConfig, seeds: Sequence[int], data: OfflineData) -> TrainState:
    """The joint state of seeds before their first step, one row per seed and twin."""
    state: TrainState = _init(config)(keys_of(with_twin(seeds)), data)
    return state


def keys_of(seeds: Sequence[int]) -> jax.Array:
    """The key of each seed."""
    return jnp.stack([jax.random.key(seed) for seed in seeds])


@lru_cache(maxsize=4)
def compile_chunk(config: TrainConfig, steps: int, rows: int, shapes: OfflineData) -> Any:
    """Compile ``steps`` steps of a joint state of ``rows`` rows, before there is any memory in use.

    Returns
    -------
    A compiled `Advance` that takes over its state's memory.
    """
    advance = jax.vmap(lambda s, d: run_steps(config, s, d, steps), in_axes=(0, None))
    lowered = jax.jit(advance, donate_argnums=0).lower(state_shapes(config, rows, shapes), shapes)
    return lowered.compile()


def shapes_of(data: OfflineData) -> OfflineData:
    """The shapes of a data set on the device."""
    shapes: OfflineData = jax.eval_shape(lambda rows: rows, data)
    return shapes


@lru_cache(maxsize=16)
def _state_shapes(config: TrainConfig, rows: int, data: OfflineData) -> TrainState:
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    shapes: TrainState = jax.eval_shape(_init(config), keys, data)
    return shapes


@lru_cache(maxsize=16)
def _init(config: TrainConfig) -> Callable[..., Any]:
    return jax.jit(jax.vmap(partial(init_state, config), in_axes=(0, None)))
