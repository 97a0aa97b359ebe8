"""``toptail bench score``: full-size critics read in blocks of rows, against all rows at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from toptail.bench.table import Row

CRITICS = ("raw", "cosine", "tdq", "hybrid")
STATE, ACTION = 29, 8
"""Columns of a state (and of a goal) and of an action: AntMaze's."""


def bench_score(
    critics: tuple[str, ...] = CRITICS,
    rows: int = 16_384,
    rounds: int = 5,
    hidden: tuple[int, ...] = (512, 512, 512),
) -> Iterator[Row]:
    """Rows of the benchmark table, each as soon as it is measured.

    Both sides read the deployed scalar of the same untrained critic in float32 on the same rows:
    the plain readout, and the readout as `TrainedCritic` reads it. They take turns, and medians
    over the rounds are reported.
    """
    import jax
    import jax.numpy as jnp

    from toptail.critics.base import in_blocks
    from toptail.critics.full import full_size

    draw = np.random.default_rng(0)
    data = [jnp.asarray(draw.normal(size=(rows, n)), jnp.float32) for n in (STATE, ACTION, STATE)]
    for name in critics:
        critic = full_size(name, hidden=hidden)
        params = critic.init(jax.random.key(0), STATE, ACTION, STATE)
        plain = critic.readouts()[critic.deployed]
        sides = [jax.jit(read) for read in (plain, in_blocks(plain))]
        rounds_taken = [
            [_seconds(partial(side, params, *data)) for side in sides] for _ in range(rounds + 1)
        ]
        took = np.array(rounds_taken[1:])  # the first one compiles
        whole, blocks = np.median(took, axis=0)
        yield Row(
            f"{name}, {rows:,} rows on {jax.default_backend()}",
            f"{blocks:.3f} s, {np.median(took[:, 0] / took[:, 1]):.1f} times as fast",
            f"{whole:.3f} s for all rows at once",
        )


def _seconds(call: Callable[[], object]) -> float:
    import jax

    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start
