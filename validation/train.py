"""How fast the fused trainer is, against a step-by-step loop, and whether speed costs quality."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toptail.lab.critics import registry
from toptail.lab.critics.base import Batch, Critic
from toptail.lab.critics.registry import MAIN, full_size, names
from toptail.lab.tasks.trajectories import IntArray, Trajectories
from toptail.lab.training.data import GoalSampling, OfflineData, device_data
from toptail.lab.training.loop import (
    TrainConfig,
    TrainState,
    init_state,
    keys_of,
    make_train,
    run_steps,
    train_step,
)
from validation.clock import seconds, stepwise_seconds
from validation.table import Row

BATCH = 1024
CRITICS = tuple(name for name in MAIN if registry.CRITICS[name].trained_by != "both")
"""The main critics of one objective."""

MEASURE = "raw"
"""The critic that the others' rates are compared with."""


def bench_train(
    seeds: tuple[int, ...] = (1, 3, 12), critics: Sequence[str] = names()
) -> Iterator[Row]:
    """Rows of the benchmark: each critic and number of seeds, fused, against one by one.

    Beside it stands its rate as a share of the raw critic's, which is measured first.

    Full size: batch 1024, three hidden layers of 512, d = 512, data of 1,000,000 rows with 29
    state and 8 action dimensions (random numbers: speed does not depend on them).
    """
    gpu = jax.default_backend() == "gpu"
    ceiling = _matmul_ceiling(8192 if gpu else 1024)
    yield Row("device", jax.devices()[0].device_kind, f"jax {jax.__version__}")
    yield Row("bfloat16 matrix product", f"{ceiling / 1e12:.3g} TFLOP/s", "measured ceiling")
    trajectories = _random_trajectories(1_000_000)
    data = device_data(trajectories)
    steps = 400 if gpu else 1
    measure: dict[int, float] = {}
    for name in dict.fromkeys([MEASURE, *critics]):
        loop = _step_by_step(name, trajectories, 200 if gpu else 2)
        yield Row(
            f"{name}, step by step", f"{loop:,.2f} steps/s", "NumPy sampling, one jitted update"
        )
        for count in seeds:
            rate, compile_time = fused_rate(name, data, count, steps)
            flops = matmul_flops(_config(full_size(name, bfloat16=True)), data) * rate
            share = rate / measure.setdefault(count, rate)  # of the first critic's
            yield Row(
                f"{name}, fused, {count} seed{'s' if count > 1 else ''}",
                f"{rate:,.3g} seed-steps/s" if rate < 100 else f"{rate:,.0f} seed-steps/s",
                f"{count / rate * 1e6:,.0f} us per step, compiled in {compile_time:.0f} s, "
                f"{flops / 1e12:.3g} TFLOP/s ({flops / ceiling:.0%} of the ceiling), "
                f"{rate / loop:.1f} times step by step, {share:.2f} of {MEASURE}'s rate",
            )


def _config(critic: Critic) -> TrainConfig:
    return TrainConfig(critic, steps=1, batch_size=BATCH, learning_rate=3e-4, sample=GoalSampling())


def _random_trajectories(rows: int, observation: int = 29, action: int = 8) -> Trajectories:
    rng = np.random.default_rng(0)
    return Trajectories(
        rng.standard_normal((rows, observation), dtype=np.float32),
        rng.uniform(-1, 1, (rows, action)).astype(np.float32),
        np.arange(rows) % 1000 == 999,
    )


def fused_rate(name: str, data: OfflineData, seeds: int, steps: int) -> tuple[float, float]:
    """Seed-steps per second of the fused loop (best of three runs), and seconds to compile."""
    config = _config(full_size(name, bfloat16=True))
    keys = jax.random.split(jax.random.key(0), seeds)
    state = jax.jit(jax.vmap(lambda key: init_state(config, key, data)))(keys)

    def advance(state: TrainState, data: OfflineData) -> tuple[TrainState, jax.Array]:
        state, info = jax.vmap(lambda one: run_steps(config, one, data, steps))(state)
        return state, info["loss"]

    start = time.perf_counter()
    compiled = jax.jit(advance, donate_argnums=0).lower(state, data).compile()
    compile_time = time.perf_counter() - start

    def run() -> None:
        nonlocal state
        state, loss = compiled(state, data)
        loss.block_until_ready()

    return seeds * steps / min(seconds(run) for _ in range(4)), compile_time  # the first warms up


def _step_by_step(name: str, trajectories: Trajectories, steps: int) -> float:
    """Steps per second of the usual loop: NumPy draws, then one jitted float32 update."""
    rng = np.random.default_rng(0)
    draw = partial(_numpy_batch, trajectories, rng)
    return steps / stepwise_seconds(_config(full_size(name)), draw, steps)


def _geometric_goals(data: Trajectories, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Later rows at geometric distances, cut at the trajectory's end."""
    return rows + np.minimum(rng.geometric(1.0 - 0.99, size=len(rows)), data.remaining(rows))


def _numpy_batch(trajectories: Trajectories, rng: np.random.Generator) -> Batch:
    """The same batch as `GoalSampling` draws, by NumPy on the host."""
    rows = rng.choice(trajectories.transitions, BATCH)
    goal = _geometric_goals(trajectories, rows, rng)
    kind = rng.random(BATCH)
    anywhere = rng.integers(len(trajectories), size=BATCH)
    future = _geometric_goals(trajectories, rows, rng)
    value_goal = np.where(kind < 0.2, rows, np.where(kind < 0.7, future, anywhere))
    reached = (rows == value_goal).astype(np.float32)
    o, a = trajectories.observations, trajectories.actions
    columns: dict[str, Any] = {
        "states": o[rows],
        "actions": a[rows],
        "goals": o[goal],
        "rewards": reached - 1,
        "value_goals": o[value_goal],
        "next_states": o[rows + 1],
        "masks": 1 - reached,
        "offsets": (goal - rows).astype(np.float32),
        "next_goals": o[rows + 1],
        "random_goals": o[anywhere],
    }
    batch: Batch = jax.tree.map(jnp.asarray, Batch(**columns))
    return batch


def _matmul_ceiling(n: int) -> float:
    """FLOP/s of a large bfloat16 matrix product, best of ten."""
    x = jax.random.normal(jax.random.key(0), (n, n)).astype(jnp.bfloat16)
    product = jax.jit(lambda x: x @ x)
    best = min(seconds(lambda: product(x).block_until_ready()) for _ in range(11))  # one compiles
    return 2 * n**3 / best


def matmul_flops(config: TrainConfig, data: OfflineData) -> int:
    """Floating-point operations of one step's matrix products, counted from the program itself."""
    state = jax.eval_shape(lambda: init_state(config, jax.random.key(0), data))
    program = jax.make_jaxpr(lambda s, d: train_step(config, s, d))(state, data)
    return _count(program.jaxpr)


def _count(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            ((contracted, _), _) = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            depth = int(np.prod([shape[axis] for axis in contracted]))
            total += 2 * depth * int(np.prod(equation.outvars[0].aval.shape))
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "jaxpr"):
                    total += _count(inner.jaxpr)
                elif hasattr(inner, "eqns"):
                    total += _count(inner)
    return total


def bench_quality(
    task: str, steps: int = 20_000, seeds: tuple[int, ...] = (0, 1, 2)
) -> Iterator[Row]:
    """Whether bfloat16 and the fused kernels cost quality: tau_b and AUC against float32.

    Both are measured on 3,000 triples of the validation split of ``task``, after ``steps`` steps.
    """
    from toptail.lab.tasks.files import load
    from toptail.lab.tasks.triples import negatives, sample_triples
    from toptail.stats import auc, kendall_tau_b

    dataset = load(task)
    data = device_data(dataset.train)
    rng = np.random.default_rng(0)
    triples = sample_triples(dataset.val, 3_000, rng)
    other = negatives(triples, 1, rng)[:, 0]
    o, a = dataset.val.observations, dataset.val.actions
    for name in CRITICS:
        measured = {}
        for bfloat16 in (True, False):
            critic = full_size(name, bfloat16=bfloat16)
            config = replace(_config(critic), steps=steps)
            train = jax.jit(jax.vmap(make_train(config), in_axes=(0, None)))
            params = train(keys_of(seeds), data)[0].params
            score = jax.jit(jax.vmap(critic.score, in_axes=(0, None, None, None)))
            own = np.asarray(score(params, o[triples.rows], a[triples.rows], o[triples.goal_rows]))
            neg = np.asarray(score(params, o[triples.rows], a[triples.rows], o[other]))
            value = np.broadcast_to(triples.value, own.shape)
            label = np.repeat([True, False], len(triples))
            tau = kendall_tau_b(own, value)
            area = np.array([auc(np.concatenate(x), label) for x in zip(own, neg, strict=True)])
            measured[bfloat16] = (tau, area)
        (t16, a16), (t32, a32) = measured[True], measured[False]
        yield Row(
            f"{name}, {steps:,} steps, {len(seeds)} seeds",
            f"tau_b {_spread(t16)}, AUC {_spread(a16)}",
            f"in float32: tau_b {_spread(t32)}, AUC {_spread(a32)}",
        )


def _spread(x: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    return f"{x.mean():.3f} ± {x.std(ddof=1):.3f}"
