"""All seeds of a run at once, in chunks that a progress bar and snapshots can step between."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from toptail.errors import InputError
from toptail.lab.critics.learner import Batch, Info, Params
from toptail.lab.training.loop import TrainConfig, init_state, run_steps
from toptail.lab.training.programs import keys_of, take_row, with_twin
from toptail.progress import Tick

CHUNK = 500
"""Steps between two ticks, at most."""


@dataclass(frozen=True)
class Snapshot:
    """Every seed's parameters after some number of steps."""

    step: int
    """Optimizer steps done."""

    params: dict[int, Params]
    """Parameters by seed."""

    info: dict[int, dict[str, float]]
    """By seed: each logged scalar, mean over the chunk of steps that ended here."""


def train_seeds(
    config: TrainConfig,
    data: dict[int, Batch],
    snapshots: Sequence[int] | None = None,
    tick: Tick | None = None,
) -> Iterator[Snapshot]:
    """Train one run per seed, all in one jitted scan, and yield a snapshot at each wanted step.

    The seeds do not touch: a seed's parameters are the same to the last bit whichever other
    seeds it runs with (see `programs.width`).

    The seeds' data sets are of one size. The wanted steps ascend, and the last one, which is the
    only one by default, is ``config.steps``.
    """
    wanted = list(snapshots) if snapshots else [config.steps]
    if wanted != sorted(set(wanted)) or wanted[0] < 1 or wanted[-1] != config.steps:
        raise InputError(
            f"Snapshots must ascend from at least 1 to the run's length {config.steps}, "
            f"but they are {wanted}."
        )
    seeds = list(data)
    rows = with_twin(seeds)
    stacked = jax.tree.map(lambda *columns: jnp.stack(columns), *(data[s] for s in rows))
    chunk = math.gcd(CHUNK, *wanted)
    advance = _advance(replace(config, steps=chunk))
    # Not compiled as a whole: drawing the weights piece by piece gives the same bits, and the
    # pieces serve every critic with layers of the same size.
    state = jax.vmap(partial(init_state, config))(keys_of(rows), stacked)
    for done in range(chunk, config.steps + 1, chunk):
        state, info = advance(state, stacked)
        jax.block_until_ready(state)
        if tick is not None:
            tick("training", done / config.steps)
        if done in wanted:
            yield _snapshot(done, seeds, state.params, info)


@lru_cache(maxsize=16)
def _advance(config: TrainConfig) -> Any:
    """The compiled function (state, data) -> (state, info) of ``config.steps`` steps, seeds mapped.

    It does not depend on the run's length, so that every run with the same settings in a process
    compiles once.
    """
    steps = jax.vmap(lambda state, data: run_steps(config, state, data, config.steps))
    return jax.jit(steps, donate_argnums=0)


def _snapshot(step: int, seeds: list[int], params: Params, info: Info) -> Snapshot:
    """Bring the parameters to the host and take the seeds apart."""
    host: Params = jax.tree.map(np.asarray, params)
    means = {name: np.asarray(values, np.float64).mean(axis=1) for name, values in info.items()}
    return Snapshot(
        step,
        {seed: take_row(host, i) for i, seed in enumerate(seeds)},
        {seed: {k: float(v[i]) for k, v in means.items()} for i, seed in enumerate(seeds)},
    )
