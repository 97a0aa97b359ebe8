"""``toptail bench controlled``: seconds per critic, and what the fused loop is worth."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from toptail.bench.table import Row
from toptail.lab.critics.registry import one_step_names

if TYPE_CHECKING:
    from toptail.lab.critics.learner import Batch
    from toptail.lab.training.loop import TrainConfig

SHORT = 500
"""Steps that a rate is measured on, after compilation."""

CRITICS = one_step_names()
"""The critics of the study; the last two also run at the same time, one per thread."""


def bench(steps: int = SHORT, critics: Sequence[str] = CRITICS) -> Iterator[Row]:
    """Measure every critic of the controlled study at its own sizes, five seeds together.

    The other side is the loop that most code bases have: one seed, NumPy draws the batch, one
    jitted update per step. Both sides are warmed up before the clock starts.
    """
    from toptail.lab.studies.controlled.cells import training_data
    from toptail.lab.studies.controlled.config import StudyConfig
    from toptail.lab.training.loop import TrainConfig

    study = StudyConfig()
    data = {seed: training_data(study, study.world, seed) for seed in study.seeds}
    configs = {
        name: TrainConfig(study.critics.make(name), steps, study.batch_size, study.learning_rate)
        for name in critics
    }
    for name, config in configs.items():
        compile_s, fused = _fused(config, data)
        stepwise = _stepwise(config, data[study.seeds[0]])
        per_seed = fused / len(data)
        whole = compile_s + fused * study.steps / steps
        yield Row(
            f"{name}, {len(data)} seeds x {study.steps:,} steps",
            f"{whole:.1f} s",
            f"compilation {compile_s:.1f} s; {1e6 * per_seed / steps:.0f} us per seed-step, "
            f"step by step {1e6 * stepwise / steps:.0f} us: {stepwise / per_seed:.1f} times",
        )
    pair = [configs[name] for name in critics[-2:]]
    together = _time(lambda: _both(pair, data))
    apart = _time(lambda: [_fused(config, data) for config in pair])
    yield Row(
        f"{' and '.join(critics[-2:])} in two threads",
        f"{together:.1f} s",
        f"one after the other {apart:.1f} s: {apart / together:.2f} times ({2 * steps} steps each)",
    )


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _fused(config: TrainConfig, data: dict[int, Batch]) -> tuple[float, float]:
    """Seconds of compilation and of ``config.steps`` fused steps of all seeds."""
    from dataclasses import replace

    from toptail.lab.training.seeds import train_seeds

    # Two equal halves: the first also compiles, so what it takes longer is compilation.
    halves = [config.steps, 2 * config.steps]
    run = train_seeds(replace(config, steps=halves[1]), data, halves)
    first, second = (_time(lambda: next(run)) for _ in halves)
    return max(first - second, 0.0), second


def _stepwise(config: TrainConfig, data: Batch) -> float:
    """Seconds of ``config.steps`` separate updates of one seed, batches drawn by NumPy."""
    from dataclasses import replace
    from functools import partial

    import jax
    import numpy as np

    from toptail.lab.training.loop import init_state, train_step

    def given(key: jax.Array, batch: Batch, size: int) -> Batch:
        """Take the batch as it comes: NumPy has drawn it."""
        del key, size
        return batch

    plain = replace(config, sample=given)
    state = init_state(plain, jax.random.key(0), data)
    update = jax.jit(partial(train_step, plain))
    rng = np.random.default_rng(0)

    def run(steps: int) -> None:
        nonlocal state
        for _ in range(steps):
            rows = rng.integers(0, len(data.states), config.batch_size)
            batch: Batch = jax.tree.map(lambda column: column[rows], data)  # noqa: B023
            state, _ = update(state, batch)
        jax.block_until_ready(state)

    run(1)
    return _time(lambda: run(config.steps))


def _both(configs: list[TrainConfig], data: dict[int, Batch]) -> None:
    with ThreadPoolExecutor(len(configs)) as pool:
        list(pool.map(lambda config: _fused(config, data), configs))
