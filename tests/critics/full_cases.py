"""Small versions of every critic, compiled once per process, with batches for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.critics.examples import EXAMPLES, class_of
from tests.critics.slow_full import Rows, Scalars, Settings, Tree
from toptail.lab.critics.base import Batch, Critic, Info, Params
from toptail.lab.critics.networks import StackedEncoders
from toptail.lab.critics.registry import full_size, with_settings

DIMS = (5, 2, 3)
"""Widths of states, actions and goals: all different, so that no mix-up goes unnoticed."""

BATCH = 16
SLOW = Settings()
TAU = 0.1
KEY = jax.random.key(0)


def make(name: str, **changes: Any) -> Critic:
    """A critic whose settings all differ from their defaults; all other rows are negatives."""
    settings: dict[str, Any] = {
        "hidden": (16, 16),
        "embed_dim": SLOW.embed_dim,
        "ensemble": SLOW.members,
        "alpha": SLOW.alpha,
        "value_range": SLOW.value_range,
        "td_weight": SLOW.td_weight,
        "temperature": SLOW.temperature,
        "negatives": BATCH - 1,
        "gamma": SLOW.gamma,
        "expectile": SLOW.expectile,
        "tau": TAU,
        "group": SLOW.group,
    }
    if name in EXAMPLES:
        return with_settings(class_of(name)(), settings | changes)
    return full_size(name, **(settings | changes))


def random_batch(
    seed: int = 1,
    size: int = BATCH,
    scale: float = 1.0,
    further: Mapping[str, int] = MappingProxyType({}),
) -> Batch:
    """Normal rows; about a third of them reach the goal. ``further`` columns have these widths."""
    rng = np.random.default_rng(seed)
    s, a, g = DIMS

    def rows(width: int) -> jax.Array:
        return jnp.asarray(scale * rng.normal(size=(size, width)), jnp.float32)

    reached = jnp.asarray(rng.random(size) < 1 / 3, jnp.float32)
    steps = (rows(s), rows(a), rows(g), reached - 1.0, rows(g), rows(s), 1.0 - reached)
    offsets = jnp.asarray(rng.integers(1, 60, size), jnp.float32)
    batch = Batch(*steps, offsets, rows(g), rows(g))
    return batch._replace(further={name: rows(width) for name, width in further.items()})


def rough(params: Params, seed: int = 2) -> Params:
    """Add noise to every leaf: fresh parameters are zero, one, or equal to their targets."""
    rng = np.random.default_rng(seed)
    noisy: Params = jax.tree.map(
        lambda x: jnp.asarray(x + 0.3 * rng.normal(size=x.shape), jnp.float32), params
    )
    return noisy


def random_params(of: Critic | StackedEncoders) -> Params:
    """Noise in the shape of the parameters; a fresh start would have to be compiled."""
    shapes = jax.eval_shape(lambda key: of.init(key, *DIMS), KEY)
    return rough(jax.tree.map(lambda x: np.zeros(x.shape), shapes))


def double(tree: Any) -> Tree:
    """A parameter tree in float64 NumPy."""
    wide: Tree = jax.tree.map(lambda x: np.asarray(x, np.float64), tree)
    return wide


def slow_rows(batch: Batch) -> Rows:
    own = Rows._fields[:-2]
    columns = {name: np.asarray(getattr(batch, name), np.float64) for name in own}
    further = {name: np.asarray(x, np.float64) for name, x in (batch.further or {}).items()}
    return Rows(**columns, further=further, key=KEY)


@contextmanager
def no_promotion() -> Iterator[None]:
    """No implicit change of type or rank."""
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


class Case:
    """One critic with fresh and rough parameters and its compiled functions."""

    def __init__(self, critic: Critic, fresh: Params | None = None) -> None:
        self.critic = critic
        self.fresh = critic.init(KEY, *DIMS) if fresh is None else fresh
        self.params = rough(self.fresh)
        self.traces = 0

    @cached_property
    def _gradient(self) -> Any:
        def loss(params: Params, batch: Batch, key: jax.Array) -> tuple[jax.Array, Info]:
            self.traces += 1
            return self.critic.loss(params, batch, key)

        return quick_jit(jax.value_and_grad(loss, has_aux=True))

    def gradient(
        self, params: Params, batch: Batch, key: jax.Array = KEY
    ) -> tuple[dict[str, float], Params]:
        """The loss with everything that is logged, and the gradient."""
        (loss, info), grads = self._gradient(params, batch, key)
        return {"loss": float(loss), **{k: float(v) for k, v in info.items()}}, grads

    @cached_property
    def read(self) -> Any:
        """All readouts in one compiled call: (params, *pool(batch)) -> name to scores [2, 3]."""
        readouts = self.critic.readouts()
        return quick_jit(lambda *args: {name: read(*args) for name, read in readouts.items()})


@cache
def case(name: str, half: bool) -> Case:
    """Both precisions start from the same float32 parameters."""
    return Case(make(name, bfloat16=half), case(name, False).fresh if half else None)


def quick_jit(function: Callable[..., Any]) -> Any:
    """Compile without optimization: compiling takes nearly all of the time here."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": 0})


def pool(batch: Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Two queries of one state and goal each, with three candidates: leading axes [2, 3]."""
    return batch.states[:2, None], batch.actions[:6].reshape(2, 3, -1), batch.goals[:2, None]


def flat(tree: Any) -> np.ndarray[Any, Any]:
    """All leaves of a tree as one float64 vector."""
    return np.concatenate([np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)])


def target_source(name: str, params: Params) -> Params:
    """The trained tree that a critic's target network follows."""
    if name == "spectral":  # one step of power iteration, from ones
        kernels = {key: np.asarray(x) for key, x in params.items() if key.startswith("kernel")}
        moved = {key: [w.T @ (w @ np.ones(w.shape[1])) for w in x] for key, x in kernels.items()}
        return {
            key.replace("kernel", "vector"): [v / np.linalg.norm(v) for v in x]
            for key, x in moved.items()
        }
    own = params["value"] if name == "two_head_separate" else params
    return {key: own[key] for key in params["target"]}


# The gradient check of the contract, which also holds for losses with kinks.

STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
SETTLED = 1e-5


def gradient_gap(case: Case, slow_loss: Callable[..., Scalars], batch: Batch) -> float:
    """The largest relative difference of a critic's gradient and the slow loss's, in 3 directions.

    The slow loss reads whatever must not carry a gradient from the unmoved parameters: a missing
    stop_gradient would show.
    """
    wide, rows = double(case.params), slow_rows(batch)
    _, grads = case.gradient(case.params, batch)
    scale = float(np.linalg.norm(flat(grads)))
    rng, gaps = np.random.default_rng(4), []
    for _ in range(3):
        move = jax.tree.map(lambda x: rng.normal(size=x.shape), wide)

        def loss(t: float, move: Any = move) -> float:
            moved = jax.tree.map(lambda x, d: x + t * d, wide, move)
            return slow_loss(moved, wide, rows, SLOW)["loss"]

        expected = derivative(loss, scale)
        gaps.append(abs(flat(grads) @ flat(move) - expected) / max(abs(expected), scale))
    return float(max(gaps))


def derivative(function: Callable[[float], float], scale: float) -> float:
    """The central difference at 0, at the first step from which a smaller one changes nothing.

    A step across a kink (max, relu, a sort) gives a wrong slope; a smaller step does not reach it.
    """
    before = np.inf
    for step in STEPS:
        found = (function(step) - function(-step)) / (2 * step)
        if abs(found - before) <= SETTLED * max(abs(found), scale):
            return found
        before = found
    raise AssertionError(f"the difference quotient does not settle down to steps of {STEPS[-1]}")
