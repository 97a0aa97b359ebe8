"""One training run as a pure function of a key and a data set, and compiled batches of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from toptail.errors import NotDoneError
from toptail.lab.critics.base import Batch, Info, Learner, Params, trained_only

Sampler: TypeAlias = Callable[[jax.Array, Any, int], Batch]
"""(key, data set, batch size) -> batch, drawn inside the jitted step."""


def uniform_rows(key: jax.Array, data: Batch, size: int) -> Batch:
    """Draw ``size`` rows of the data set uniformly, with replacement."""
    rows = jax.random.randint(key, (size,), 0, data.states.shape[0])
    batch: Batch = jax.tree.map(lambda column: column[rows], data)
    return batch


@dataclass(frozen=True)
class TrainConfig:
    """A learner and its optimizer, batch size and sampler."""

    learner: Learner
    """A critic or another learner, with its settings."""
    steps: int = 10_000
    batch_size: int = 256
    """Rows per step."""
    learning_rate: float = 1e-3
    sample: Sampler = uniform_rows
    """How a batch is drawn from the data set."""

    @property
    def optimizer(self) -> optax.GradientTransformation:
        """Adam with its usual decay rates."""
        return optax.adam(self.learning_rate)


class TrainState(NamedTuple):
    """Everything a run carries from step to step."""

    key: jax.Array
    """The run's key; step t uses fold_in(key, t), so that chunking cannot change a draw."""
    step: jax.Array
    params: Params
    opt_state: optax.OptState


def init_state(config: TrainConfig, key: jax.Array, data: Any) -> TrainState:
    """A run before its first step; the data set only gives the dimensions."""
    key_init, key_run = jax.random.split(key)
    dims = (data.states.shape[-1], data.actions.shape[-1], data.goals.shape[-1])
    params = config.learner.init(key_init, *dims)
    return TrainState(key_run, jnp.int32(0), params, config.optimizer.init(trained_only(params)))


def train_step(
    config: TrainConfig, state: TrainState, data: Any, compute: Params | None = None
) -> tuple[TrainState, Info]:
    """One draw, one gradient, one Adam update.

    ``compute`` is ``config.learner.compute_params(state.params)`` where the caller has it already.
    """
    key_batch, key_loss = jax.random.split(jax.random.fold_in(state.key, state.step))
    batch = config.sample(key_batch, data, config.batch_size)
    learner, trained = config.learner, trained_only(state.params)
    if further := learner.further(jax.random.fold_in(key_batch, 1), data, batch):
        batch = batch._replace(further=further)
    if compute is None:
        compute = learner.compute_params(state.params)

    def loss_of(params: Params) -> tuple[jax.Array, Info]:
        return learner.loss({**compute, **params}, batch, key_loss)

    (loss, info), grads = jax.value_and_grad(loss_of, has_aux=True)(trained_only(compute))
    grads = jax.tree.map(lambda g, p: g.astype(p.dtype), grads, trained)
    updates, opt_state = config.optimizer.update(grads, state.opt_state, trained)
    moved = optax.apply_updates(trained, updates)
    params = learner.after_update({**state.params, **moved})
    return TrainState(state.key, state.step + 1, params, opt_state), {"loss": loss, **info}


def run_steps(
    config: TrainConfig, state: TrainState, data: Any, steps: int
) -> tuple[TrainState, Info]:
    """Scan ``steps`` steps; the info comes back per step: each entry [steps].

    The scan carries the copy that the loss computes with (`Learner.compute_params`), so that it is
    made in the pass that updates the parameters.
    """

    def body(carry: tuple[TrainState, Params], _: None) -> tuple[tuple[TrainState, Params], Info]:
        state, copies = carry
        own = {name: state.params[name] for name in copies}
        compute = jax.tree.map(lambda it, copy: it if copy is None else copy, own, copies)
        state, info = train_step(config, state, data, compute)
        return (state, _copies(config.learner, state.params)), info

    start = (state, _copies(config.learner, state.params))
    (state, _), info = jax.lax.scan(body, start, None, length=steps)
    return state, info


def _copies(learner: Learner, params: Params) -> Params:
    """The copies that the loss computes with; None where a parameter is used as it is.

    A parameter that the scan carried twice would be copied in every step.
    """
    compute = learner.compute_params(params)
    own = {name: params[name] for name in compute}  # compute may lack the target
    copies: Params = jax.tree.map(lambda it, copy: None if copy is it else copy, own, compute)
    return copies


def make_train(config: TrainConfig) -> Callable[[jax.Array, Any], tuple[TrainState, Info]]:
    """Return ``train(key, data)``: a whole run, pure, ready for `jax.jit` and `jax.vmap`."""

    def train(key: jax.Array, data: Any) -> tuple[TrainState, Info]:
        return run_steps(config, init_state(config, key, data), data, config.steps)

    return train


_MEMINFO = Path("/proc/meminfo")


def tree_bytes(tree: Any) -> int:
    """Bytes of all arrays of a tree, or of arrays with its shapes."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def free_bytes(device: jax.Device | None = None) -> int | None:
    """Free memory of the device, or of the machine on a CPU; None where it is not known."""
    device = device or jax.devices()[0]
    stats = device.memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    if device.platform != "cpu" or not _MEMINFO.is_file():
        return None
    lines = (line.split() for line in _MEMINFO.read_text().splitlines())
    kilobytes = {parts[0]: int(parts[1]) for parts in lines if len(parts) > 1}
    available = kilobytes.get("MemAvailable:")
    return None if available is None else 1024 * available


def program_bytes(compiled: Any) -> int:
    """Memory of a compiled program in addition to its arguments, by the compiler's analysis."""
    stats = compiled.memory_analysis()
    if stats is None:
        return 0
    new = stats.output_size_in_bytes - stats.alias_size_in_bytes
    return int(stats.temp_size_in_bytes + max(new, 0))


def check_fits(what: str, needed: int, free: int | None) -> None:
    """Raise :class:`NotDoneError` where less is free than needed."""
    if free is None or needed <= free:
        return
    raise NotDoneError(
        f"{what} needs {_gigabytes(needed)} of memory and {_gigabytes(free)} are free on "
        f"{jax.devices()[0]}: {_gigabytes(needed - free)} are missing; train fewer seeds at a "
        "time, choose a smaller batch size, or use a larger device."
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.2f} GB"


Advance: TypeAlias = Callable[[TrainState, Any], tuple[TrainState, Info]]
"""(state, data) -> (state some steps later, info); states have one row per run, info [runs, steps].
"""


def width(seeds: int) -> int:
    """Rows of the state of a batch of so many seeds: at least two.

    XLA compiles a map of width 1 differently from a wider one. A seed that runs alone therefore
    gets a twin, and ends with the same bits as in a larger batch.
    """
    return max(seeds, 2)


def with_twin(seeds: Sequence[int]) -> list[int]:
    """The seed of each row of a batch's state: a single seed twice."""
    return [*seeds, *seeds][: width(len(seeds))]


def take_row(params: Params, row: int) -> Params:
    """One seed's parameters out of stacked ones on the host."""
    own: Params = jax.tree.map(lambda leaf: np.array(leaf[row]), params)
    return own


def state_shapes(config: TrainConfig, rows: int, data: Any) -> TrainState:
    """Shapes of a batch's state; ``data`` may hold shapes alone."""
    return _state_shapes(config, rows, shapes_of(data))


def fresh_state(config: TrainConfig, seeds: Sequence[int], data: Any) -> TrainState:
    """The state of a batch before its first step, one row per seed."""
    state: TrainState = _init(config)(keys_of(with_twin(seeds)), data)
    return state


def keys_of(seeds: Sequence[int]) -> jax.Array:
    return jnp.stack([jax.random.key(seed) for seed in seeds])


@lru_cache(maxsize=4)
def compile_chunk(config: TrainConfig, steps: int, rows: int, shapes: Any) -> Any:
    """Compile ``steps`` steps of a batch of ``rows`` rows, given only shapes.

    Returns
    -------
    A compiled `Advance` that takes over its state's memory.
    """
    advance = jax.vmap(lambda s, d: run_steps(config, s, d, steps), in_axes=(0, None))
    lowered = jax.jit(advance, donate_argnums=0).lower(state_shapes(config, rows, shapes), shapes)
    return lowered.compile()


Data = TypeVar("Data")


def shapes_of(data: Data) -> Data:
    shapes: Data = jax.eval_shape(lambda rows: rows, data)
    return shapes


@lru_cache(maxsize=16)
def _state_shapes(config: TrainConfig, rows: int, data: Any) -> TrainState:
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), rows))
    shapes: TrainState = jax.eval_shape(_init(config), keys, data)
    return shapes


@lru_cache(maxsize=16)
def _init(config: TrainConfig) -> Callable[..., Any]:
    return jax.jit(jax.vmap(partial(init_state, config), in_axes=(0, None)))
