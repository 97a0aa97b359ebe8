"""The clock of the benchmarks, and the loop that most code bases have."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toptail.lab.critics.base import Batch
    from toptail.lab.training.loop import TrainConfig


def seconds(work: Callable[[], object]) -> float:
    """Wall seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def stepwise_seconds(config: TrainConfig, draw: Callable[[], Batch], steps: int) -> float:
    """Seconds of separate jitted updates of one seed, each with a batch that NumPy draws.

    One update before the clock starts compiles.
    """
    from dataclasses import replace
    from functools import partial

    import jax

    from toptail.lab.training.loop import init_state, train_step

    first = draw()
    plain = replace(config, sample=lambda _key, batch, _size: batch)
    update = jax.jit(partial(train_step, plain), donate_argnums=0)
    state, _ = update(init_state(plain, jax.random.key(0), first), first)
    jax.block_until_ready(state)

    def run() -> None:
        nonlocal state
        for _ in range(steps):
            state, _ = update(state, draw())
        jax.block_until_ready(state)

    return seconds(run)
