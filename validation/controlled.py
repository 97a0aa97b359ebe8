"""``python -m validation controlled``: seconds per critic, and what the fused loop is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from toptail_paper.controlled.config import HERE
from validation.clock import seconds, stepwise_seconds
from validation.table import Row

if TYPE_CHECKING:
    from toptail.lab.critics.base import Batch
    from toptail.lab.training.loop import TrainConfig

STEPS = 500
"""Steps that a rate is measured on, after compilation."""


def bench(steps: int = STEPS, critics: Sequence[str] = tuple(HERE)) -> Iterator[Row]:
    """Measure every critic of the controlled study at its own sizes, five seeds together.

    The other side is the loop that most code bases have: one seed, NumPy draws the batch, one
    jitted update per step. Both sides are warmed up before the clock starts. The last two critics
    also run at the same time, one per thread.
    """
    from toptail.lab.training.loop import TrainConfig
    from toptail_paper.controlled.cells import training_data
    from toptail_paper.controlled.config import StudyConfig

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
    together = seconds(lambda: _both(pair, data))
    apart = seconds(lambda: [_fused(config, data) for config in pair])
    yield Row(
        f"{' and '.join(critics[-2:])} in two threads",
        f"{together:.1f} s",
        f"one after the other {apart:.1f} s: {apart / together:.2f} times ({2 * steps} steps each)",
    )


def _fused(config: TrainConfig, data: dict[int, Batch]) -> tuple[float, float]:
    """Seconds of compilation and of ``config.steps`` fused steps of all seeds."""
    from dataclasses import replace

    from toptail_paper.study.batches import train_seeds

    # Two equal halves: the first also compiles, so what it takes longer is compilation.
    halves = [config.steps, 2 * config.steps]
    run = train_seeds(replace(config, steps=halves[1]), data, halves)
    first, second = (seconds(lambda: next(run)) for _ in halves)
    return max(first - second, 0.0), second


def _stepwise(config: TrainConfig, data: Batch) -> float:
    """Seconds of ``config.steps`` separate updates of one seed, batches drawn by NumPy."""
    import jax
    import numpy as np

    rng = np.random.default_rng(0)

    def draw() -> Batch:
        rows = rng.integers(0, len(data.states), config.batch_size)
        batch: Batch = jax.tree.map(lambda column: column[rows], data)
        return batch

    return stepwise_seconds(config, draw, config.steps)


def _both(configs: list[TrainConfig], data: dict[int, Batch]) -> None:
    with ThreadPoolExecutor(len(configs)) as pool:
        list(pool.map(lambda config: _fused(config, data), configs))
