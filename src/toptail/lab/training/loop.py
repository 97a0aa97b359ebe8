"""One training run as a pure function of a key and a data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import optax

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
    """Optimizer steps."""
    batch_size: int = 256
    """Rows per step."""
    learning_rate: float = 1e-3
    """Adam's step size."""
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
    """Optimizer steps done."""
    params: Params
    """The learner's parameters."""
    opt_state: optax.OptState
    """Adam's moments."""


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
